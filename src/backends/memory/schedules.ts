import type { At, Ms } from '../../core/time.js'
import type { ScheduleRecord } from '../../ports/ledger.js'
import type { Book } from './book.js'
import { FLAG } from './group-record.js'

/** How long a claim of an instant stands. */
const FIRE_MS: Ms = 90_000

/** Schedules are texts, under the key that a plain system uses too: a fleet in both modes fires once. */
export function scheduleOf(book: Book, name: string, now: At): ScheduleRecord | undefined {
  return read(book.shelf.keys.text(book.names.schedule(name), now)?.value)
}

/** All of them, for people. */
export function schedulesOf(book: Book): readonly (ScheduleRecord & { readonly name: string })[] {
  // The key of a name that stands for every name: what is before and after it.
  const [before = '', after = ''] = book.names.schedule('\u0000').split('\u0000')
  return book.shelf.keys.textsUnder(before).flatMap(({ key, value }) => {
    const record = key.endsWith(after) ? read(value) : undefined
    return record === undefined ? [] : [{ name: key.slice(before.length, -after.length), ...record }]
  })
}

function read(text: string | undefined): ScheduleRecord | undefined {
  if (text === undefined) return undefined
  try {
    const { nextAt, spec } = (JSON.parse(text) ?? {}) as Partial<ScheduleRecord>
    return typeof nextAt === 'number' && typeof spec === 'string' ? { spec, nextAt } : undefined
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
