import type { AsyncResource } from 'node:async_hooks'
import type { ScopedTaskOptions } from '../../core/doer/bounded.js'
import type { Doer } from '../../core/doer/doer.js'
import { nestedDoer } from '../../core/doer/nested.js'
import { priorityDoer } from '../../core/doer/priority.js'
import type { ClaimedItem, Envelope } from '../../ports/item.js'
import type { Registry } from '../define/registry.js'
import { isLastChance } from '../run/crash-limit.js'

/** How many tasks the doer of a `concurrency` takes beyond its places. The prefetch window decides how many there are. */
const GLOBAL_BUFFER = 8_192
/** The same for a type with its own limit, if that is lower. */
const LEAST_AT_HAND = 16

/** A doer that we make: its places, and how many tasks it takes beyond them. */
interface Made {
  readonly places: Doer
  readonly buffer: number
  /** The doer whose places its tasks need too: it is a limit within that doer. */
  readonly within?: Doer
}

/** Who shares the window. */
interface Parties {
  /** Every distinct doer with its types. */
  readonly byDoer: ReadonlyMap<Doer, readonly string[]>
  /** Batched types. */
  readonly batched: readonly string[]
}

/** The doers of a system: which one decides when an item runs, and how much each wants. */
export class Doers {
  readonly #global: Doer
  readonly #registry: Registry
  readonly #made = new Map<Doer, Made>()
  /** Doers of types that have a `concurrency`, within the doer that they would have otherwise. */
  readonly #limited = new Map<string, Doer>()
  /** One place for all items that may have crashed their process, whatever their type. */
  readonly #single = priorityDoer({ max: 1 })
  readonly #singleWithin = new Map<Doer, Doer>()
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
   * Where an item waits for its turn. An item that the next crash would end runs while no other such item runs: it must not be
   * dead-lettered for a crash that its neighbour caused.
   */
  forItem(item: ClaimedItem): Doer {
    const own = this.of(item.envelope.type)
    if (!isLastChance(item)) return own
    let single = this.#singleWithin.get(own)
    if (single === undefined) {
      single = nestedDoer(this.#single, own)
      this.#singleWithin.set(own, single)
    }
    return single
  }

  /**
   * How many more tasks a doer wants. One that we make wants as many as it can start, and at most `ahead` more; a user's doer
   * decides itself.
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
   * How many tasks of a doer run at the same time. If it has no `concurrency`: the tasks it has (`inside`) and those it still
   * wants.
   */
  concurrencyOf(doer: Doer, inside: number): number {
    return doer.concurrency ?? Math.max(1, inside + Math.max(0, doer.available()))
  }

  /** How much to hold for a doer besides what runs in it: its buffer, or what it asks for. */
  atHandOf(doer: Doer): number {
    const made = this.#made.get(doer)
    if (made === undefined) return Math.max(0, doer.available())
    return doer === this.#global ? 0 : made.buffer
  }

  /** Every handler runs in a doer with a known number of places. */
  get haveAllPlaces(): boolean {
    const { byDoer, batched } = this.parties
    const hasPlaces = ({ concurrency }: Doer) => concurrency !== undefined && Number.isFinite(concurrency)
    return [...byDoer.keys()].every(hasPlaces) && batched.every((type) => hasPlaces(this.of(type)))
  }

  /** The system's doer is the user's. */
  get isGlobalGiven(): boolean {
    return !this.#made.has(this.#global)
  }

  /** The types of each doer. Every claim needs them, so they are made again only when a type was added. */
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

/** What a doer may know of an item. `scope`: what its handler starts in. Default: that of the caller. */
export function hintsOf({ priority, queueAt: createdAt, group }: Envelope, scope?: AsyncResource): ScopedTaskOptions {
  const hints = scope === undefined ? { priority, createdAt } : { priority, createdAt, scope }
  return group === undefined ? hints : { ...hints, group }
}
