import type { At } from '../../core/time.js'
import type { CommitResult, Effect } from '../../ports/settlement.js'
import { deadLetterOf } from './adopt.js'
import type { Book } from './book.js'
import { groupValue } from './group-record.js'

/** What keeps a settlement from happening as things stand: a group whose value moved on, an item that cannot be opened again. */
export function hindranceOf(book: Book, effects: readonly Effect[], now: At): CommitResult | undefined {
  for (let index = 0; index < effects.length; index += 1) {
    const effect = effects[index]!
    if (effect.do === 'contribute' && effect.expect !== undefined) {
      const found = conflict(book, effects, index, now)
      if (found !== undefined) return found
    } else if (effect.do === 'reopen' && !canReopen(book, effect.id, now)) return { kind: 'stale' }
  }
  return undefined
}

/** The version is that which the group will have when this effect's turn comes. */
function conflict(book: Book, effects: readonly Effect[], index: number, now: At): CommitResult | undefined {
  const effect = effects[index]
  if (effect?.do !== 'contribute') return undefined
  const { groupId, expect } = effect
  const group = book.group(groupId, now)
  const isLocked = group?.final !== undefined
  let version = group?.version ?? 0
  for (let before = 0; before < index && !isLocked; before += 1) {
    const earlier = effects[before]!
    if (earlier.do === 'contribute' && earlier.groupId === groupId) version += 1
  }
  return version === expect ? undefined : { kind: 'conflict', groupId, now: groupValue(group) }
}

/** Not what is open already, nor what has nothing to run again because its input was not kept. */
function canReopen(book: Book, id: string, now: At): boolean {
  const record = book.item(id, now)
  if (record === undefined || !record.hasEnded) return false
  return record.hasInput || deadLetterOf(book, id) !== undefined
}
