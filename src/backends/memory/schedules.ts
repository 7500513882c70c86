import type { At, Ms } from '../../core/time.js'
import type { Book } from './book.js'
import { FLAG } from './group-record.js'

/** How long a claim of an instant stands. */
const FIRE_MS: Ms = 90_000

export interface ScheduleRecord {
  readonly spec: string
  readonly nextAt: At
}

/** Schedules are texts, under the key that a plain system uses too: a fleet in both modes fires once. */
function scheduleOf(book: Book, name: string, now: At): ScheduleRecord | undefined {
  const text = book.shelf.keys.text(book.names.schedule(name), now)
  if (text === undefined) return undefined
  try {
    const read = JSON.parse(text.value) as Partial<ScheduleRecord> | null
    if (typeof read?.nextAt !== 'number' || typeof read.spec !== 'string') return undefined
    return { spec: read.spec, nextAt: read.nextAt }
  } catch {
    return undefined
  }
}

/**
 * Whether this instant of a schedule is still to be fired. A plain system claims it by a key before it enqueues and moves the
 * record on afterwards: in between, the key is what tells.
 */
export function canFire(book: Book, name: string, at: At | undefined, now: At): boolean {
  if (scheduleOf(book, name, now)?.nextAt !== at) return false
  return book.shelf.keys.text(book.names.fire(name, at ?? 0), now) === undefined
}

/** Keeps plain systems from firing what they saw before it was fired here. */
export function claimFire(book: Book, name: string, at: At | undefined, now: At): void {
  book.shelf.keys.keepText(book.names.fire(name, at ?? 0), FLAG, now + FIRE_MS)
}

export function setSchedule(book: Book, name: string, schedule: ScheduleRecord): void {
  book.shelf.keys.keepText(book.names.schedule(name), JSON.stringify(schedule), Number.POSITIVE_INFINITY)
}
