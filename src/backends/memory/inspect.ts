import { MillraceError } from '../../core/error.js'
import { Heap } from '../../core/heap.js'
import type { At } from '../../core/time.js'
import type { Counted, Inspect, ItemQuery } from '../../ports/ledger.js'
import { ITEM_STATE_WORDS, type ItemStateWord } from '../../ports/words.js'
import { readUnread } from './adopt.js'
import type { Book } from './book.js'
import { failuresOf } from './failures.js'
import type { Fifo } from './fifo.js'
import { flowOf } from './flow.js'
import type { ItemRecord } from './item-record.js'
import { schedulesOf } from './schedules.js'
import {
  ACTIVE,
  classTrait,
  codeOf,
  type Facet,
  fingerprintTrait,
  RETRYING,
  SCHEDULED,
  type StateCode,
  tagTrait,
  WAITING,
} from './state-index.js'
import type { Time } from './time.js'
import { summaryOf } from './view-of.js'

/** A page looks at no more than this many items beyond those it returns, when filters have no index of their own. */
const MAX_SCANNED = 1_000

/** What people can ask of a book. The newest of a list come first. */
export function inspectBook(book: Book, time: Time): Inspect {
  /** Brings the lists up to date: what is due is waiting, what has expired is gone. */
  const upToDate = (): At => {
    const now = time.wall()
    readUnread(book, now)
    book.pauses.freeAll(now)
    for (const queue of book.shelf.queues.all()) queue.promote(now)
    book.sweep(now, Number.POSITIVE_INFINITY)
    return now
  }
  return {
    list: async (query) => {
      const now = upToDate()
      return page(book, query, now, statesOf(query), (record) => fits(record, query))
    },
    summaries: async (ids) => {
      const now = upToDate()
      return ids.map((id) => {
        const record = book.item(id, now)
        return record === undefined ? undefined : summaryOf(book, record, now)
      })
    },
    openCounts: async (ids) => {
      const now = time.wall()
      return ids.map((id) => {
        const lone = book.loneItem(id, now)
        return lone === undefined ? book.group(id, now)?.open : lone.lone === 'open' ? 1 : 0
      })
    },
    count: async (query) => {
      upToDate()
      return countOf(book, query)
    },
    flow: async (windowMs) => {
      const now = upToDate()
      return flowOf(book, now - windowMs)
    },
    failures: async (limit) => {
      upToDate()
      return failuresOf(book).slice(0, Math.max(0, limit))
    },
    strays: async (ask) => {
      const now = upToDate()
      return page(book, ask, now, STRAY_STATES, isStray)
    },
    attempts: async (id) => [...(book.item(id, time.wall())?.attempts() ?? [])],
    counts: async () => {
      upToDate()
      return counted(book)
    },
    workers: async () => book.workers.all(time.wall()),
    schedules: async () => schedulesOf(book),
    input: async (id) => {
      const record = book.item(id, time.wall())
      return record?.hasInput === true ? record.envelope.input : undefined
    },
    gate: async (key) => {
      const gate = book.gates.find(key)
      if (gate === undefined) return undefined
      const { holds, need, of, waiting } = gate
      return { key, holds, need, of, waiting: [...waiting] }
    },
    log: async (limit) => book.log.all().toReversed().slice(0, limit),
  }
}

function page(
  book: Book,
  query: ItemQuery,
  now: At,
  states: readonly StateCode[],
  isWanted: (record: ItemRecord) => boolean,
): Awaited<ReturnType<Inspect['list']>> {
  const cursor = cursorOf(query)
  const merged = merge(listsFor(book, query, states, cursor))
  const found: ItemRecord[] = []
  let scanned = 0
  let last = cursor
  for (const record of merged) {
    if (found.length >= query.limit || scanned >= MAX_SCANNED) {
      return { items: found.map((one) => summaryOf(book, one, now)), next: String(last) }
    }
    last = record.entered
    if (isWanted(record)) found.push(record)
    else scanned += 1
  }
  return { items: found.map((one) => summaryOf(book, one, now)) }
}

function statesOf({ state }: Pick<ItemQuery, 'state'>): readonly StateCode[] {
  return state === undefined ? ITEM_STATE_WORDS.map((_, code) => code) : [codeOf(state)]
}

/** The lists that hold everything the query can find, each from its newest item below the cursor on. */
function* listsFor(
  book: Book,
  query: Omit<ItemQuery, 'limit'>,
  states: readonly StateCode[],
  cursor: number,
): IterableIterator<IterableIterator<ItemRecord>> {
  const trait = traitOf(query)
  if (trait !== undefined) {
    const lists = book.index.traits.get(trait)?.lists
    for (const state of states) {
      const list = lists?.[state]
      if (list !== undefined) yield recordsOf(list.backwards(({ record }) => record.entered >= cursor))
    }
    return
  }
  for (const home of book.index.homes()) {
    if (query.queue !== undefined && home.queue.name !== query.queue) continue
    if (query.type !== undefined && home.type !== query.type) continue
    for (const state of states) {
      const list: Fifo<ItemRecord> | undefined = home.lists[state]
      if (list !== undefined && list.size > 0) yield list.backwards((record) => record.entered >= cursor)
    }
  }
}

function* recordsOf(facets: Iterable<Facet>): IterableIterator<ItemRecord> {
  for (const { record } of facets) yield record
}

/** The index that narrows most: there are more items of a class than of a fingerprint. */
function traitOf({ fingerprint, tag, class: of }: Omit<ItemQuery, 'limit'>): string | undefined {
  if (fingerprint !== undefined) return fingerprintTrait(fingerprint)
  if (tag !== undefined) return tagTrait(tag)
  return of === undefined ? undefined : classTrait(of)
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

/** Where the lists themselves are what is asked for, their sizes are the answer; otherwise what they hold is looked at. */
function countOf(book: Book, query: Omit<ItemQuery, 'limit' | 'cursor'>): number {
  const states = statesOf(query)
  const { groupId, before, after, tag, fingerprint, class: of, queue, type } = query
  const named = [tag, fingerprint, of].filter((given) => given !== undefined).length
  const isPlain = groupId === undefined && before === undefined && after === undefined
  let count = 0
  if (isPlain && named === 1 && queue === undefined && type === undefined) {
    const lists = book.index.traits.get(traitOf(query) ?? '')?.lists
    for (const state of states) count += lists?.[state]?.size ?? 0
  } else if (isPlain && named === 0) {
    for (const home of book.index.homes()) {
      if ((queue !== undefined && home.queue.name !== queue) || (type !== undefined && home.type !== type)) continue
      for (const state of states) count += home.lists[state]?.size ?? 0
    }
  } else {
    for (const list of listsFor(book, query, states, Number.POSITIVE_INFINITY))
      for (const record of list) count += Number(fits(record, query))
  }
  return count
}

/** Where an item can be that is in no index which ever gives it out. */
const STRAY_STATES: readonly StateCode[] = [WAITING, SCHEDULED, RETRYING, ACTIVE]

function isStray({ status, message }: ItemRecord): boolean {
  if (status === 'running') return message?.lease === undefined
  return message === undefined || (message.hold === undefined && message.dueAt === Number.POSITIVE_INFINITY)
}

function fits(record: ItemRecord, query: Omit<ItemQuery, 'limit'>): boolean {
  const { envelope } = record
  return (
    (query.type === undefined || envelope.type === query.type) &&
    (query.queue === undefined || record.queue.name === query.queue) &&
    (query.groupId === undefined || envelope.groupId === query.groupId) &&
    (query.tag === undefined || envelope.tags?.includes(query.tag) === true) &&
    (query.class === undefined || record.extras?.class === query.class) &&
    (query.fingerprint === undefined || record.fingerprint === query.fingerprint) &&
    (query.before === undefined || (record.endAt ?? envelope.queueAt) < query.before) &&
    (query.after === undefined || (record.endAt ?? envelope.queueAt) >= query.after)
  )
}

function cursorOf({ cursor }: ItemQuery): number {
  if (cursor === undefined) return Number.POSITIVE_INFINITY
  const at = Number(cursor)
  if (cursor.trim() !== '' && Number.isFinite(at)) return at
  throw new MillraceError(
    'BAD_CURSOR',
    `list({ cursor }): "${cursor}" is not a cursor. Give back \`next\` of the last page.`,
  )
}

function counted(book: Book): Counted[] {
  return [...book.index.homes()].flatMap(({ queue, type, lists }) => {
    const counts: Partial<Record<ItemStateWord, number>> = {}
    for (const [code, word] of ITEM_STATE_WORDS.entries()) {
      const size = lists[code]?.size ?? 0
      if (size > 0) counts[word] = size
    }
    return Object.keys(counts).length === 0 ? [] : [{ queue: queue.name, type, counts }]
  })
}
