import type { ClaimedItem } from '../../ports/item.js'
import { DEPENDENCY_TYPE } from '../define/dependency.js'

// The backend counts the crashes of an item, when a lease lapses whose last heartbeat said that it ran; route.ts applies the limit.

/** Fewer crashes than this are taken for deploys and kills, not for something that the item causes. */
const CRASH_LIMIT = 3

/** Whether runs of this item ended with their process too often for another one. `attempts`: what its retry policy allows. */
export function isOverCrashLimit({ envelope, crashes }: ClaimedItem, attempts: number): boolean {
  // A gate runs no user code: it was only in the same process when another item crashed it.
  if (envelope.type === DEPENDENCY_TYPE) return false
  return crashes >= CRASH_LIMIT && envelope.attempt + crashes > attempts
}

/** Whether the next crash may end the item. */
export function isLastChance({ crashes }: ClaimedItem): boolean {
  return crashes >= CRASH_LIMIT - 1
}
