import type { At } from '../../../core/time/time.js'
import type { ClosedGroup, CommitResult } from '../../../ports/settlement.js'
import type { CommitContext } from '../commit/commit-context.js'
import type { ItemRecord } from '../items/item-record.js'
import type { ItemTable } from '../items/item-table.js'

/** Compares the counts with 0 once the whole batch is applied: a group that one settlement empties and the next fills stays open. */
export function closeGroups(table: ItemTable, { moved, left, now }: CommitContext, results: CommitResult[]): void {
  for (const { record, by } of left) {
    if (record.single === 'closing') closeSingle(table, record, by, now, results)
    else if (record.group !== undefined && record.group.movedBy < 0) {
      // Others joined the group after the item had left it.
      record.group.movedBy = by
      moved.push(record.group)
    }
  }
  for (const group of moved) {
    const by = group.movedBy
    group.movedBy = -1
    if (group.open > 0) {
      if (group.keepUntil !== Number.POSITIVE_INFINITY) table.keepGroup(group, Number.POSITIVE_INFINITY)
      group.isClosed = false
      continue
    }
    if (group.isClosed) continue
    group.isClosed = true
    table.keepGroup(group, now + group.keepMs)
    const { watchers } = group
    addClosed(results, by, closedGroup(group.id, group.value, watchers !== undefined))
    if (watchers === undefined) continue
    group.watchers = undefined
    let isHeard = false
    for (const inbox of watchers) if (table.context.notifier.groupClosed(inbox, group.id)) isHeard = true
    if (isHeard) table.await(group, now)
  }
}

function closeSingle(table: ItemTable, record: ItemRecord, by: number, now: At, results: CommitResult[]): void {
  const { groupId, waiter } = record.envelope
  record.single = 'closed'
  addClosed(results, by, closedGroup(groupId, record.singleValue, waiter !== undefined))
  if (waiter !== undefined && table.context.notifier.groupClosed(waiter, groupId)) table.await(record, now)
}

function addClosed(results: CommitResult[], by: number, one: ClosedGroup): void {
  const result = results[by]
  const closed = result?.kind === 'applied' ? result.closed : []
  results[by] = { kind: 'applied', closed: closed.length === 0 ? [one] : [...closed, one] }
}

function closedGroup(groupId: string, value: string | undefined, watched: boolean): ClosedGroup {
  if (!watched) return value === undefined ? { groupId } : { groupId, value }
  return value === undefined ? { groupId, watched } : { groupId, value, watched }
}
