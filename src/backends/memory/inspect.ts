import { MillraceError } from '../../core/error.js'
import { Heap } from '../../core/heap.js'
import type { At } from '../../core/time.js'
import type { Counted, Inspect, ItemQuery } from '../../ports/ledger.js'
import { ITEM_STATE_WORDS, type ItemStateWord } from '../../ports/words.js'
import { readUnread } from './adopt.js'
import type { Book } from './book.js'
import type { Fifo } from './fifo.js'
import type { ItemRecord } from './item-record.js'
import { classTrait, codeOf, type Facet, fingerprintTrait, tagTrait } from './state-index.js'
import type { Time } from './time.js'
import { viewOf } from './view-of.js'

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
      return page(book, query, now)
    },
    attempts: async (id) => [...(book.item(id, time.wall())?.attempts() ?? [])],
    counts: async () => {
      upToDate()
      return counted(book)
    },
    workers: async () => book.workers.all(time.wall()),
  }
}

function page(book: Book, query: ItemQuery, now: At): Awaited<ReturnType<Inspect['list']>> {
  const cursor = cursorOf(query)
  const merged = merge(listsFor(book, query, cursor))
  const found: ItemRecord[] = []
  let scanned = 0
  let last = cursor
  for (const record of merged) {
    if (found.length >= query.limit || scanned >= MAX_SCANNED) {
      return { items: found.map((one) => viewOf(book, one, now)), next: String(last) }
    }
    last = record.entered
    if (fits(record, query)) found.push(record)
    else scanned += 1
  }
  return { items: found.map((one) => viewOf(book, one, now)) }
}

/** The lists that hold everything the query can find, each from its newest item below the cursor on. */
function* listsFor(book: Book, query: ItemQuery, cursor: number): IterableIterator<Iterator<ItemRecord>> {
  const states = query.state === undefined ? ITEM_STATE_WORDS.map((_, code) => code) : [codeOf(query.state)]
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
function traitOf({ fingerprint, tag, class: of }: ItemQuery): string | undefined {
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

function fits(record: ItemRecord, query: ItemQuery): boolean {
  const { envelope } = record
  return (
    (query.type === undefined || envelope.type === query.type) &&
    (query.queue === undefined || record.queue.name === query.queue) &&
    (query.groupId === undefined || envelope.groupId === query.groupId) &&
    (query.tag === undefined || envelope.tags?.includes(query.tag) === true) &&
    (query.class === undefined || record.extras?.class === query.class) &&
    (query.fingerprint === undefined || record.lastAttempt?.fingerprint === query.fingerprint) &&
    (query.before === undefined || (record.endAt ?? envelope.queueAt) < query.before)
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
