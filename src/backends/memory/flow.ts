import type { At } from '../../core/time.js'
import type { Flow } from '../../ports/ledger.js'
import type { Book } from './book.js'
import type { Fifo } from './fifo.js'
import type { ItemRecord } from './item-record.js'
import { COMPLETED, DEAD, WAITING } from './state-index.js'

/** What ended after an instant and since when the oldest waits, for each queue and type. */
export function flowOf(book: Book, after: At): Flow[] {
  const pauses = [...book.pauses.all()]
  const isPaused = (what: 'queue' | 'type', name: string) =>
    pauses.some((pause) => pause.what === what && pause.name === name)
  return [...book.index.homes()].flatMap(({ queue, type, lists }) => {
    const completed = endedAfter(lists[COMPLETED], after)
    const failed = endedAfter(lists[DEAD], after)
    const canRun = !isPaused('queue', queue.name) && !isPaused('type', type)
    const oldestDueAt = canRun ? oldestIn(lists[WAITING]) : undefined
    if (completed + failed === 0 && oldestDueAt === undefined) return []
    return [{ queue: queue.name, type, completed, failed, ...(oldestDueAt === undefined ? {} : { oldestDueAt }) }]
  })
}

/** The list is in the order of ends: from its newest on, no further than the window reaches. */
function endedAfter(list: Fifo<ItemRecord> | undefined, after: At): number {
  if (list === undefined) return 0
  let count = 0
  for (const { endAt } of list.backwards(() => false)) {
    // What a plain system wrote may not say when it ended.
    if (endAt === undefined) continue
    if (endAt <= after) break
    count += 1
  }
  return count
}

/** Those that wait stand in the order in which they came to wait, which a put-back is not due in: all are looked at. */
function oldestIn(list: Fifo<ItemRecord> | undefined): At | undefined {
  let oldest: At | undefined
  for (const { message } of list?.values() ?? []) {
    if (message?.place === 'ready' && (oldest === undefined || message.dueAt < oldest)) oldest = message.dueAt
  }
  return oldest
}
