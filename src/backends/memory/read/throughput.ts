import type { At } from '../../../core/time/time.js'
import type { Throughput } from '../../../ports/inspect.js'
import type { ItemRecord } from '../items/item-record.js'
import type { ItemTable } from '../items/item-table.js'
import { COMPLETED, DEAD, WAITING } from '../items/state-index.js'
import type { SlotList } from '../queue/slot-list.js'

/** What ended after an instant and since when the oldest waits, for each queue and type. */
export function throughputOf(table: ItemTable, after: At): Throughput[] {
  const pauses = [...table.pauses.all()]
  const isPaused = (what: 'queue' | 'type', name: string) =>
    pauses.some((pause) => pause.what === what && pause.name === name)
  return [...table.index.queueTypes()].flatMap(({ queue, type, lists }) => {
    const completed = endedAfter(lists[COMPLETED], after)
    const failed = endedAfter(lists[DEAD], after)
    const canRun = !isPaused('queue', queue.name) && !isPaused('type', type)
    const oldestDueAt = canRun ? oldestIn(lists[WAITING]) : undefined
    if (completed + failed === 0 && oldestDueAt === undefined) return []
    return [{ queue: queue.name, type, completed, failed, ...(oldestDueAt === undefined ? {} : { oldestDueAt }) }]
  })
}

/** The list is in the order of ends: from its newest on, no further than the window reaches. */
function endedAfter(list: SlotList<ItemRecord> | undefined, after: At): number {
  if (list === undefined) return 0
  let count = 0
  for (const { endAt } of list.backwards(() => false)) {
    if (endAt === undefined || endAt <= after) break
    count += 1
  }
  return count
}

/** Waiting items are in the order in which they became ready, which a released item is not due in: all are read. */
function oldestIn(list: SlotList<ItemRecord> | undefined): At | undefined {
  let oldest: At | undefined
  for (const { message } of list?.values() ?? []) {
    if (message?.place === 'ready' && (oldest === undefined || message.dueAt < oldest)) oldest = message.dueAt
  }
  return oldest
}
