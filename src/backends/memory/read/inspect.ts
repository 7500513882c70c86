import { Heap } from '../../../core/collections/heap.js'
import { isWellFormed } from '../../../core/text/well-formed.js'
import type { At } from '../../../core/time/time.js'
import type { Inspect, ItemQuery, TypeCounts } from '../../../ports/inspect.js'
import { MAX_SCANNED } from '../../../ports/limits.js'
import { ITEM_STATES, type ItemState } from '../../../ports/words.js'
import { readNumberCursor } from '../../shared/cursor.js'
import { matchesQuery, narrowestIndex } from '../../shared/item-query.js'
import { readUnread } from '../items/adopt.js'
import type { ItemRecord } from '../items/item-record.js'
import type { ItemTable } from '../items/item-table.js'
import { summaryOf } from '../items/item-view.js'
import {
  ACTIVE,
  classIndex,
  codeOf,
  fingerprintIndex,
  type ListEntry,
  RETRYING,
  SCHEDULED,
  type StateCode,
  tagIndex,
  WAITING,
} from '../items/state-index.js'
import type { SlotList } from '../queue/slot-list.js'
import type { Time } from '../time.js'
import { failuresOf } from './failures.js'
import { throughputOf } from './throughput.js'

/** What operators can ask. Lists show the newest first. */
export function inspectTable(table: ItemTable, time: Time): Inspect {
  /** Brings the lists up to date: what is due is waiting, what has expired is gone. */
  const upToDate = (): At => {
    const now = time.wall()
    readUnread(table)
    table.pauses.freeAll(now)
    for (const queue of table.context.queues.all()) queue.promote(now)
    table.sweep(now, Number.POSITIVE_INFINITY)
    return now
  }
  return {
    list: async (query) => {
      upToDate()
      return page(table, 'list', query, statesOf(query), (record) => matches(record, query))
    },
    summaries: async (ids) => {
      const now = upToDate()
      return ids.map((id) => {
        const record = table.item(id, now)
        return record === undefined ? undefined : summaryOf(record)
      })
    },
    idsStartingWith: async (prefix, limit) => {
      upToDate()
      return { ids: isWellFormed(prefix) ? table.idsStartingWith(prefix, limit) : [], isComplete: true }
    },
    openCounts: async (ids) => {
      const now = time.wall()
      return ids.map((id) => {
        const single = table.singleItem(id, now)
        return single === undefined ? table.group(id, now)?.open : single.single === 'open' ? 1 : 0
      })
    },
    count: async (query) => {
      upToDate()
      return countOf(table, query)
    },
    throughput: async (windowMs) => {
      const now = upToDate()
      return throughputOf(table, now - windowMs)
    },
    failures: async (limit) => {
      upToDate()
      return failuresOf(table).slice(0, Math.max(0, limit))
    },
    stuckItems: async (ask) => {
      upToDate()
      return page(table, 'stuckItems', ask, STUCK_STATES, isStuck)
    },
    attempts: async (id) => [...(table.item(id, time.wall())?.attempts() ?? [])],
    counts: async () => {
      upToDate()
      return counted(table)
    },
    workers: async () => table.workers.all(time.wall()),
    schedules: async () => [...table.schedules].map(([name, schedule]) => ({ name, ...schedule })),
    input: async (id) => {
      const record = table.item(id, time.wall())
      return record?.hasInput === true ? record.envelope.input : undefined
    },
    gate: async (key) => {
      const gate = table.gates.find(key)
      if (gate === undefined) return undefined
      const { heldId, need, of, waiting } = gate
      return { key, heldId, need, of, waiting: [...waiting] }
    },
    log: async (limit) => table.log.all().toReversed().slice(0, limit),
  }
}

function page(
  table: ItemTable,
  call: 'list' | 'stuckItems',
  query: ItemQuery,
  states: readonly StateCode[],
  isWanted: (record: ItemRecord) => boolean,
): Awaited<ReturnType<Inspect['list']>> {
  const cursor = readNumberCursor(call, query.cursor)
  const merged = merge(listsFor(table, query, states, cursor))
  const found: ItemRecord[] = []
  let scanned = 0
  let last = cursor
  for (const record of merged) {
    if (found.length >= query.limit || scanned >= MAX_SCANNED) {
      return { items: found.map(summaryOf), next: String(last) }
    }
    last = record.entered
    if (isWanted(record)) found.push(record)
    else scanned += 1
  }
  return { items: found.map(summaryOf) }
}

function statesOf({ state }: Pick<ItemQuery, 'state'>): readonly StateCode[] {
  return state === undefined ? ITEM_STATES.map((_, code) => code) : [codeOf(state)]
}

/** The lists that hold everything the query can find, each from its newest item below the cursor on. */
function* listsFor(
  table: ItemTable,
  query: Omit<ItemQuery, 'limit'>,
  states: readonly StateCode[],
  cursor: number,
): IterableIterator<IterableIterator<ItemRecord>> {
  const index = indexOf(query)
  if (index !== undefined) {
    const lists = table.index.indexes.get(index)?.lists
    for (const state of states) {
      const list = lists?.[state]
      if (list !== undefined) yield recordsOf(list.backwards(({ record }) => record.entered >= cursor))
    }
    return
  }
  for (const queueType of table.index.queueTypes()) {
    if (query.queue !== undefined && queueType.queue.name !== query.queue) continue
    if (query.type !== undefined && queueType.type !== query.type) continue
    for (const state of states) {
      const list: SlotList<ItemRecord> | undefined = queueType.lists[state]
      if (list !== undefined && list.size > 0) yield list.backwards((record) => record.entered >= cursor)
    }
  }
}

function* recordsOf(entries: Iterable<ListEntry>): IterableIterator<ItemRecord> {
  for (const { record } of entries) yield record
}

/** The name of the narrowest list that holds everything the query can find. */
function indexOf(query: Omit<ItemQuery, 'limit'>): string | undefined {
  const field = narrowestIndex(query, ['fingerprint', 'tag', 'class'])
  if (field === 'fingerprint') return fingerprintIndex(query.fingerprint ?? '')
  if (field === 'tag') return tagIndex(query.tag ?? '')
  return query.class === undefined ? undefined : classIndex(query.class)
}

/** Lists that are each in falling order, as one. */
function* merge(lists: Iterable<Iterator<ItemRecord>>): IterableIterator<ItemRecord> {
  const heads = new Heap<{ record: ItemRecord; readonly rest: Iterator<ItemRecord> }>(
    (a, b) => a.record.entered > b.record.entered,
  )
  for (const rest of lists) {
    const { value, done } = rest.next()
    if (done !== true) heads.push({ record: value, rest })
  }
  for (let head = heads.pop(); head !== undefined; head = heads.pop()) {
    yield head.record
    const { value, done } = head.rest.next()
    if (done !== true) heads.push({ record: value, rest: head.rest })
  }
}

/** Where the query asks for whole lists, their sizes are the answer; otherwise their items are read. */
function countOf(table: ItemTable, query: Omit<ItemQuery, 'limit' | 'cursor'>): number {
  const states = statesOf(query)
  const { groupId, before, after, tag, fingerprint, class: of, queue, type } = query
  const named = [tag, fingerprint, of].filter((given) => given !== undefined).length
  const isPlain = groupId === undefined && before === undefined && after === undefined
  let count = 0
  if (isPlain && named === 1 && queue === undefined && type === undefined) {
    const lists = table.index.indexes.get(indexOf(query) ?? '')?.lists
    for (const state of states) count += lists?.[state]?.size ?? 0
  } else if (isPlain && named === 0) {
    for (const queueType of table.index.queueTypes()) {
      if ((queue !== undefined && queueType.queue.name !== queue) || (type !== undefined && queueType.type !== type))
        continue
      for (const state of states) count += queueType.lists[state]?.size ?? 0
    }
  } else {
    for (const list of listsFor(table, query, states, Number.POSITIVE_INFINITY))
      for (const record of list) count += Number(matches(record, query))
  }
  return count
}

/** The states of an item that no claim will ever find. */
const STUCK_STATES: readonly StateCode[] = [WAITING, SCHEDULED, RETRYING, ACTIVE]

function isStuck({ status, message }: ItemRecord): boolean {
  if (status === 'running') return message?.lease === undefined
  return message === undefined || (message.hold === undefined && message.dueAt === Number.POSITIVE_INFINITY)
}

function matches(record: ItemRecord, query: Omit<ItemQuery, 'limit'>): boolean {
  const { envelope, queue, extras, fingerprint, endAt } = record
  return matchesQuery({ envelope, queue: queue.name, class: extras?.class, fingerprint, endAt }, query)
}

function counted(table: ItemTable): TypeCounts[] {
  return [...table.index.queueTypes()].flatMap(({ queue, type, lists }) => {
    const counts: Partial<Record<ItemState, number>> = {}
    for (const [code, word] of ITEM_STATES.entries()) {
      const size = lists[code]?.size ?? 0
      if (size > 0) counts[word] = size
    }
    return Object.keys(counts).length === 0 ? [] : [{ queue: queue.name, type, counts }]
  })
}
