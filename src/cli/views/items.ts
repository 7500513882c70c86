import type { At } from '../../core/time/time.js'
import type { ListedItem } from '../../ops/api.js'
import type { Cell, Column } from '../terminal/table.js'
import { classCell, stateCell } from './states.js'
import { agoText } from './times.js'

export const ITEM_COLUMNS: readonly Column[] = [
  { title: 'id', isId: true, spare: 0, below: '' },
  { title: 'state' },
  { title: 'type', min: 16, keep: 18 },
  { title: 'queue', min: 10, spare: 4 },
  { title: 'attempt', align: 'right', spare: 2 },
  { title: 'when', spare: 1 },
  { title: 'class', spare: 3 },
  { title: 'error', min: 30, spare: 5, below: '' },
]

/** An item in one line. `when` depends on the state: its end, its next run, or since when it runs or waits. */
export function itemCells(item: ListedItem, now: At): Cell[] {
  const { envelope } = item
  return [
    item.id,
    stateCell(item.state),
    item.type,
    item.queue ?? 'default',
    String(envelope.attempt),
    whenText(item, now),
    classCell(item.class),
    item.error ?? '',
  ]
}

function whenText(item: ListedItem, now: At): string {
  switch (item.state) {
    case 'completed':
    case 'dead':
    case 'cancelled':
      return agoText(item.endAt, now)
    case 'scheduled':
    case 'retrying':
      return agoText(item.dueAt, now)
    case 'active':
      return agoText(item.runAt, now)
    case 'waiting':
    case 'blocked':
      return agoText(item.envelope.queueAt, now)
  }
}
