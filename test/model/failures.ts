import { listedError } from '../../src/core/text/error-text.js'
import type { At } from '../../src/core/time/time.js'
import type { FailureGroup } from '../../src/ports/inspect.js'
import type { ItemState } from '../../src/ports/words.js'
import type { Book } from './book.js'
import { fingerprintOf, type Row } from './row.js'

/** Dead and retrying items that failed alike, the largest groups first. */
export function failuresOf(book: Book, wordOf: (row: Row) => ItemState): FailureGroup[] {
  const found = new Map<string, FailureGroup>()
  for (const row of book.rows.values()) {
    const word = wordOf(row)
    const fingerprint = fingerprintOf(row)
    if (fingerprint === undefined || (word !== 'dead' && word !== 'retrying')) continue
    const last = row.attempts.at(-1)
    const isDead = word === 'dead'
    const of = isDead ? row.class : last?.class
    const at: At = (isDead ? row.endAt : last?.endedAt) ?? 0
    const { id, type } = row.envelope
    const key = JSON.stringify([fingerprint, of ?? null, type])
    const known = found.get(key)
    found.set(key, {
      fingerprint,
      ...(of === undefined ? {} : { class: of }),
      type,
      dead: (known?.dead ?? 0) + Number(isDead),
      retrying: (known?.retrying ?? 0) + Number(!isDead),
      firstAt: Math.min(known?.firstAt ?? at, at),
      lastAt: Math.max(known?.lastAt ?? at, at),
      sample:
        known !== undefined && known.lastAt > at
          ? known.sample
          : { id, error: listedError((isDead ? row.error : last?.error) ?? '') },
    })
  }
  return [...found.values()].toSorted(
    (a, b) =>
      b.dead + b.retrying - (a.dead + a.retrying) || b.lastAt - a.lastAt || (a.fingerprint < b.fingerprint ? -1 : 1),
  )
}
