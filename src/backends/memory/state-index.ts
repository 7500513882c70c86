import { ITEM_STATE_WORDS, type ItemStateWord } from '../../ports/words.js'
import { Fifo } from './fifo.js'
import type { ItemRecord, RecordKeeper } from './item-record.js'
import type { MessageQueue } from './message-queue.js'

/** A state by its position in `ITEM_STATE_WORDS`: what the lists are kept by. */
export type StateCode = number

export const [WAITING, SCHEDULED, RETRYING, BLOCKED, ACTIVE, COMPLETED, DEAD, CANCELLED] = ITEM_STATE_WORDS.map(
  (_, code) => code,
) as [StateCode, StateCode, StateCode, StateCode, StateCode, StateCode, StateCode, StateCode]

export const codeOf = (word: ItemStateWord): StateCode => ITEM_STATE_WORDS.indexOf(word)

/** The items of one queue and type, by state, each list in the order in which they entered that state. */
export class Home {
  readonly queue: MessageQueue
  readonly type: string
  /** Whom its records report to. Here, so that not each of them has to remember it. */
  readonly keeper: RecordKeeper
  readonly lists: (Fifo<ItemRecord> | undefined)[] = ITEM_STATE_WORDS.map(() => undefined)
  size = 0

  constructor(queue: MessageQueue, type: string, keeper: RecordKeeper) {
    this.queue = queue
    this.type = type
    this.keeper = keeper
  }

  list(state: StateCode): Fifo<ItemRecord> {
    let list = this.lists[state]
    if (list === undefined) {
      list = new Fifo<ItemRecord>((record, position) => {
        record.homeSlot = position
      })
      this.lists[state] = list
    }
    return list
  }
}

/** That an item has some tag, class or fingerprint. */
export interface Facet {
  readonly record: ItemRecord
  readonly trait: Trait
  slot: number
}

/** The items that share a tag, a class or a fingerprint, by state. */
export interface Trait {
  readonly name: string
  readonly lists: (Fifo<Facet> | undefined)[]
  size: number
}

export const tagTrait = (tag: string): string => `tag ${tag}`
export const classTrait = (name: string): string => `class ${name}`
export const fingerprintTrait = (fingerprint: string): string => `fingerprint ${fingerprint}`

/**
 * Which items are in which state, so that people's questions are answered without a scan. Every item stands in the list of
 * its queue and type; only those that have tags or have failed stand in further ones, so that an item that simply succeeds
 * costs next to nothing here.
 */
export class StateIndex {
  readonly traits = new Map<string, Trait>()
  readonly #byQueue = new Map<MessageQueue, Map<string, Home>>()
  readonly #keeper: RecordKeeper
  #last: Home | undefined
  /** Rises with every entry into a list: the order of the lists, and the cursor of a page. */
  #entries = 0

  constructor(keeper: RecordKeeper) {
    this.#keeper = keeper
  }

  /** How many items have not ended. */
  get open(): number {
    let open = 0
    for (const { lists } of this.homes())
      for (let state = 0; state < COMPLETED; state += 1) open += lists[state]?.size ?? 0
    return open
  }

  /** Every queue and type that has items. */
  *homes(): IterableIterator<Home> {
    for (const types of this.#byQueue.values()) yield* types.values()
  }

  home(queue: MessageQueue, type: string): Home {
    const last = this.#last
    if (last !== undefined && last.queue === queue && last.type === type) return last
    let types = this.#byQueue.get(queue)
    if (types === undefined) {
      types = new Map()
      this.#byQueue.set(queue, types)
    }
    let home = types.get(type)
    if (home === undefined) {
      home = new Home(queue, type, this.#keeper)
      types.set(type, home)
    }
    this.#last = home
    return home
  }

  enter(record: ItemRecord, state: StateCode): void {
    this.#entries += 1
    record.entered = this.#entries
    record.state = state
    record.homeSlot = record.home.list(state).append(record)
    record.home.size += 1
    const facets = record.extras?.facets
    if (facets !== undefined) for (const facet of facets) this.#enterTrait(facet, state)
  }

  leave(record: ItemRecord): void {
    record.home.list(record.state).remove(record.homeSlot)
    record.home.size -= 1
    const facets = record.extras?.facets
    if (facets !== undefined) for (const facet of facets) this.#leaveTrait(facet, record.state)
  }

  /** It is gone for good; a queue and type without items is forgotten with its last one. */
  remove(record: ItemRecord): void {
    this.leave(record)
    const { home } = record
    if (home.size > 0) return
    this.#byQueue.get(home.queue)?.delete(home.type)
    if (this.#last === home) this.#last = undefined
  }

  move(record: ItemRecord, state: StateCode): void {
    if (record.state === state) return
    this.leave(record)
    this.enter(record, state)
  }

  /** Replaces what the item is listed under. It enters its lists anew, so that they stay in order. */
  relist(record: ItemRecord, traits: readonly string[]): void {
    this.leave(record)
    if (traits.length > 0 || record.extras !== undefined) record.withExtras().facets = this.facets(record, traits)
    this.enter(record, record.state)
  }

  /** What an item is to be listed under, when it enters. */
  facets(record: ItemRecord, traits: readonly string[]): Facet[] | undefined {
    if (traits.length === 0) return undefined
    return traits.map((name) => ({ record, trait: this.#trait(name), slot: -1 }))
  }

  #trait(name: string): Trait {
    let trait = this.traits.get(name)
    if (trait === undefined) {
      trait = { name, lists: ITEM_STATE_WORDS.map(() => undefined), size: 0 }
      this.traits.set(name, trait)
    }
    return trait
  }

  #enterTrait(facet: Facet, state: StateCode): void {
    const { trait } = facet
    trait.lists[state] ??= new Fifo<Facet>((moved, position) => {
      moved.slot = position
    })
    // A trait that lost its last item was dropped from the map: it is listed again with the first one.
    if (trait.size === 0) this.traits.set(trait.name, trait)
    trait.size += 1
    facet.slot = trait.lists[state].append(facet)
  }

  #leaveTrait(facet: Facet, state: StateCode): void {
    const { trait } = facet
    trait.lists[state]?.remove(facet.slot)
    trait.size -= 1
    if (trait.size === 0) this.traits.delete(trait.name)
  }
}
