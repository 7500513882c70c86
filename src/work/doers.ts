import type { Doer } from '../core/doer/doer.js'
import { nestedDoer } from '../core/doer/nested.js'
import { priorityDoer } from '../core/doer/priority.js'
import type { Claimed } from '../ports/item.js'
import type { Registry } from './registry.js'
import { isLastChance } from './route.js'

/** How many tasks the doer of a `concurrency` takes beyond its places. How many there are is decided by the window. */
const GLOBAL_BUFFER = 8_192
/** The same of a type with a limit of its own, if that is lower. */
const LEAST_AT_HAND = 16

/** Of a doer that we make ourselves: the places it has, and how many tasks it takes beyond them. */
interface Made {
  readonly places: Doer
  readonly buffer: number
  /** The doer whose places it needs as well: it is a limit within that one's. */
  readonly within?: Doer
}

/** Who shares the window. */
interface Parties {
  /** Every distinct doer with its types. */
  readonly byDoer: ReadonlyMap<Doer, readonly string[]>
  /** Batched types, each of which has a batcher to ask for it. */
  readonly batched: readonly string[]
}

/** The doers of a system: which one decides when an item runs, and how much each wants. */
export class Doers {
  readonly #global: Doer
  readonly #registry: Registry
  readonly #made = new Map<Doer, Made>()
  /** Doers of types that have a `concurrency`, within the doer that they would have otherwise. */
  readonly #limited = new Map<string, Doer>()
  /** One place for all items that may have brought down their process, whatever their type. */
  readonly #alone = priorityDoer({ max: 1 })
  readonly #aloneWithin = new Map<Doer, Doer>()
  #parties: (Parties & { readonly size: number }) | undefined

  constructor(given: Doer | undefined, concurrency: number, registry: Registry) {
    this.#registry = registry
    this.#global = given ?? priorityDoer({ max: concurrency, buffer: GLOBAL_BUFFER })
    if (given === undefined) this.#made.set(this.#global, { places: this.#global, buffer: GLOBAL_BUFFER })
  }

  of(type: string): Doer {
    const options = this.#registry.find(type)?.options
    const own = options?.doer ?? this.#global
    if (options?.concurrency === undefined) return own
    let limited = this.#limited.get(type)
    if (limited === undefined) {
      const max = options.concurrency
      const buffer = Math.max(max, LEAST_AT_HAND)
      const places = priorityDoer({ max, buffer })
      limited = nestedDoer(places, own)
      this.#limited.set(type, limited)
      this.#made.set(limited, { places, buffer, within: own })
    }
    return limited
  }

  /**
   * Where an item waits for its turn. One that the next crash would end runs while no other such item runs, so that it is
   * not condemned for what its neighbour does.
   */
  forItem(item: Claimed): Doer {
    const own = this.of(item.envelope.type)
    if (!isLastChance(item)) return own
    let alone = this.#aloneWithin.get(own)
    if (alone === undefined) {
      alone = nestedDoer(this.#alone, own)
      this.#aloneWithin.set(own, alone)
    }
    return alone
  }

  /**
   * How many more tasks a doer wants. One that we make wants as many as it can begin, and `ahead` more at most; one of the
   * user's own says it himself.
   */
  wants(doer: Doer, ahead: number): number {
    const made = this.#made.get(doer)
    if (made === undefined) return Math.max(0, doer.available())
    const spare = made.buffer - Math.min(made.buffer, ahead)
    const own = Math.max(0, Math.min(made.places.available() - spare, doer.available()))
    return made.within === undefined ? own : Math.min(own, this.wants(made.within, ahead))
  }

  /** Its tasks run in the places of another doer. */
  isWithin(doer: Doer): boolean {
    return this.#made.get(doer)?.within !== undefined
  }

  /**
   * How many tasks of a doer run at once, `inside` being how many it has. One that does not say so is taken at its word: what it
   * has, and what it still wants.
   */
  concurrencyOf(doer: Doer, inside: number): number {
    return doer.concurrency ?? Math.max(1, inside + Math.max(0, doer.available()))
  }

  /** What has to be at hand of a doer beside what runs in it: its buffer, or what it asks for. */
  atHandOf(doer: Doer): number {
    const made = this.#made.get(doer)
    if (made === undefined) return Math.max(0, doer.available())
    return doer === this.#global ? 0 : made.buffer
  }

  /** Each handler has a place in a doer that tells how many it has. */
  get haveAllPlaces(): boolean {
    const { byDoer, batched } = this.parties
    const hasPlaces = ({ concurrency }: Doer) => concurrency !== undefined && Number.isFinite(concurrency)
    return [...byDoer.keys()].every(hasPlaces) && batched.every((type) => hasPlaces(this.of(type)))
  }

  /** The user's own doer decides about most of what waits. */
  get isGlobalGiven(): boolean {
    return !this.#made.has(this.#global)
  }

  /** Which types each doer decides about. Every claim asks, so it is made anew only when a type was learnt. */
  get parties(): Parties {
    if (this.#parties?.size !== this.#registry.size) this.#parties = this.#arrange()
    return this.#parties
  }

  #arrange(): Parties & { readonly size: number } {
    const byDoer = new Map<Doer, string[]>([[this.#global, []]])
    const batched: string[] = []
    for (const { type, batch } of this.#registry.definitions) {
      if (batch !== undefined) {
        batched.push(type)
        continue
      }
      const doer = this.of(type)
      const types = byDoer.get(doer)
      if (types === undefined) byDoer.set(doer, [type])
      else types.push(type)
    }
    return { byDoer, batched, size: this.#registry.size }
  }
}
