import type { Ms } from '../../src/core/time/time.js'
import type { Throughput } from '../../src/ports/inspect.js'
import type { ItemState } from '../../src/ports/words.js'
import type { Book } from './book.js'
import type { Row } from './row.js'

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** What ended lately and since when the oldest waits, for each queue and type. */
export function flowOf(book: Book, wordOf: (row: Row) => ItemState, windowMs: Ms): Throughput[] {
  const after = book.now() - windowMs
  const found = new Map<string, Writable<Throughput>>()
  for (const row of book.rows.values()) {
    const word = wordOf(row)
    const isLate = row.endAt !== undefined && row.endAt > after
    const completed = Number(word === 'completed' && isLate)
    const failed = Number(word === 'dead' && isLate)
    const isWaiting = word === 'waiting' && !book.isPaused(row)
    if (completed + failed === 0 && !isWaiting) continue
    const { queue, envelope, dueAt } = row
    const key = JSON.stringify([queue, envelope.type])
    const flow = found.get(key) ?? { queue, type: envelope.type, completed: 0, failed: 0 }
    flow.completed += completed
    flow.failed += failed
    if (isWaiting) flow.oldestDueAt = Math.min(flow.oldestDueAt ?? Infinity, dueAt)
    found.set(key, flow)
  }
  return [...found.values()]
}
