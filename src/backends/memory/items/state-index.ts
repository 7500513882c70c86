import { ITEM_STATES, type ItemState } from '../../../ports/words.js'
import type { MessageQueue } from '../queue/message-queue.js'
import { SlotList } from '../queue/slot-list.js'
import type { ItemRecord, RecordKeeper } from './item-record.js'

/** A state by its position in `ITEM_STATE_WORDS`: what the lists are kept by. */
export type StateCode = number

export const [WAITING, SCHEDULED, RETRYING, BLOCKED, ACTIVE, COMPLETED, DEAD, CANCELLED] = ITEM_STATES.map(
  (_, code) => code,
) as [StateCode, StateCode, StateCode, StateCode, StateCode, StateCode, StateCode, StateCode]

export const codeOf = (word: ItemState): StateCode => ITEM_STATES.indexOf(word)

/** The items of one queue and type, by state, each list in the order in which they entered that state. */
export class QueueType {
  readonly queue: MessageQueue
  readonly type: string
  /** Whom its records report to. Here, so that not each of them has to remember it. */
  readonly keeper: RecordKeeper
  readonly lists: (SlotList<ItemRecord> | undefined)[] = ITEM_STATES.map(() => undefined)
  size = 0

  constructor(queue: MessageQueue, type: string, keeper: RecordKeeper) {
    this.queue = queue
    this.type = type
    this.keeper = keeper
  }

  list(state: StateCode): SlotList<ItemRecord> {
    let list = this.lists[state]
    if (list === undefined) {
      list = new SlotList<ItemRecord>((record, position) => {
        record.listSlot = position
      })
      this.lists[state] = list
    }
    return list
  }
}

/** That an item has some tag, class or fingerprint. */
export interface ListEntry {
  readonly record: ItemRecord
  readonly index: ListIndex
  slot: number
}

/** The items that share a tag, a class or a fingerprint, by state. */
export interface ListIndex {
  readonly name: string
  readonly lists: (SlotList<ListEntry> | undefined)[]
  size: number
}

export const tagIndex = (tag: string): string => `tag ${tag}`
export const classIndex = (name: string): string => `class ${name}`
export const fingerprintIndex = (fingerprint: string): string => `fingerprint ${fingerprint}`

/**
 * Which items are in which state, so that queries need no scan. Every item is in the list of its
 * queue and type; only those that have tags or have failed are in further ones, so that an item that simply completes
 * costs next to nothing here.
 */
export class StateIndex {
  readonly indexes = new Map<string, ListIndex>()
  readonly #byQueue = new Map<MessageQueue, Map<string, QueueType>>()
  readonly #keeper: RecordKeeper
  #last: QueueType | undefined
  /** Rises with every entry into a list: the order of the lists, and the cursor of a page. */
  #entries = 0

  constructor(keeper: RecordKeeper) {
    this.#keeper = keeper
  }

  /** How many items have not ended. */
  get open(): number {
    let open = 0
    for (const { lists } of this.queueTypes())
      for (let state = 0; state < COMPLETED; state += 1) open += lists[state]?.size ?? 0
    return open
  }

  /** Every queue and type that has items. */
  *queueTypes(): IterableIterator<QueueType> {
    for (const types of this.#byQueue.values()) yield* types.values()
  }

  queueType(queue: MessageQueue, type: string): QueueType {
    const last = this.#last
    if (last !== undefined && last.queue === queue && last.type === type) return last
    let types = this.#byQueue.get(queue)
    if (types === undefined) {
      types = new Map()
      this.#byQueue.set(queue, types)
    }
    let queueType = types.get(type)
    if (queueType === undefined) {
      queueType = new QueueType(queue, type, this.#keeper)
      types.set(type, queueType)
    }
    this.#last = queueType
    return queueType
  }

  enter(record: ItemRecord, state: StateCode): void {
    this.#entries += 1
    record.entered = this.#entries
    record.state = state
    record.listSlot = record.queueType.list(state).append(record)
    record.queueType.size += 1
    const entries = record.extras?.entries
    if (entries !== undefined) for (const entry of entries) this.#enterIndex(entry, state)
  }

  leave(record: ItemRecord): void {
    record.queueType.list(record.state).remove(record.listSlot)
    record.queueType.size -= 1
    const entries = record.extras?.entries
    if (entries !== undefined) for (const entry of entries) this.#leaveIndex(entry, record.state)
  }

  /** It is gone for good; a queue and type without items is forgotten with its last one. */
  remove(record: ItemRecord): void {
    this.leave(record)
    const { queueType } = record
    if (queueType.size > 0) return
    this.#byQueue.get(queueType.queue)?.delete(queueType.type)
    if (this.#last === queueType) this.#last = undefined
  }

  move(record: ItemRecord, state: StateCode): void {
    if (record.state === state) return
    this.leave(record)
    this.enter(record, state)
  }

  /** Replaces what the item is listed under. It enters its lists anew, so that they stay in order. */
  relist(record: ItemRecord, indexes: readonly string[]): void {
    this.leave(record)
    if (indexes.length > 0 || record.extras !== undefined) record.withExtras().entries = this.entries(record, indexes)
    this.enter(record, record.state)
  }

  /** What an item is to be listed under, when it enters. */
  entries(record: ItemRecord, indexes: readonly string[]): ListEntry[] | undefined {
    if (indexes.length === 0) return undefined
    return indexes.map((name) => ({ record, index: this.#index(name), slot: -1 }))
  }

  #index(name: string): ListIndex {
    let index = this.indexes.get(name)
    if (index === undefined) {
      index = { name, lists: ITEM_STATES.map(() => undefined), size: 0 }
      this.indexes.set(name, index)
    }
    return index
  }

  #enterIndex(entry: ListEntry, state: StateCode): void {
    const { index } = entry
    index.lists[state] ??= new SlotList<ListEntry>((moved, position) => {
      moved.slot = position
    })
    // A index that lost its last item was dropped from the map: it is listed again with the first one.
    if (index.size === 0) this.indexes.set(index.name, index)
    index.size += 1
    entry.slot = index.lists[state].append(entry)
  }

  #leaveIndex(entry: ListEntry, state: StateCode): void {
    const { index } = entry
    index.lists[state]?.remove(entry.slot)
    index.size -= 1
    if (index.size === 0) this.indexes.delete(index.name)
  }
}
