import { Fifo } from '../../core/collections/fifo.js'
import type { Delivery } from '../loop/delivery.js'

/** One ordering domain, as long as anything of it is in flight. */
export interface Lane<D> {
  readonly key: string
  readonly waiting: Fifo<Delivery<D>>
  /** Taken and not settled, the running ones included. */
  inFlight: number
  isRunning: boolean
  isQueued: boolean
  /** Partitions that are held back because of this lane. */
  paused: Set<string> | undefined
  cancelTimer: (() => void) | undefined
  /** The wait for a fuller batch is over. */
  isRipe: boolean
  /** Its place in the list of live lanes. */
  index: number
}

/**
 * The lanes that are live, by key. Keys have a lane each, and only beyond `maxLanes` do new ones share the lanes that
 * are there. A key is never on two lanes.
 */
export class LaneTable<D> {
  readonly #maxLanes: number
  readonly #lanes = new Map<string, Lane<D>>()
  /** The same lanes as a list, for folding a key onto one of them without a walk. */
  readonly #live: Lane<D>[] = []
  /** Keys that share a lane with others: they stay there as long as anything of theirs does. */
  readonly #folded = new Map<string, { readonly lane: Lane<D>; count: number }>()

  constructor(maxLanes: number) {
    this.#maxLanes = maxLanes
  }

  get size(): number {
    return this.#live.length
  }

  /** Some keys share lanes: whatever leaves must be reported by `left`. */
  get hasFolded(): boolean {
    return this.#folded.size > 0
  }

  live(): Lane<D>[] {
    return [...this.#live]
  }

  /** The lane of one more delivery with this key. */
  laneFor(key: string): Lane<D> {
    const folded = this.hasFolded ? this.#folded.get(key) : undefined
    if (folded !== undefined) {
      folded.count += 1
      return folded.lane
    }
    const exact = this.#lanes.get(key)
    if (exact !== undefined) return exact
    if (this.#live.length < this.#maxLanes) return this.#open(key)
    const lane = this.#live[hash(key) % this.#live.length]!
    this.#folded.set(key, { lane, count: 1 })
    return lane
  }

  /** One delivery with this key is settled. */
  left(key: string): void {
    const folded = this.#folded.get(key)
    if (folded === undefined) return
    folded.count -= 1
    if (folded.count === 0) this.#folded.delete(key)
  }

  /** Nothing of it is in flight any more. */
  close(lane: Lane<D>): void {
    lane.cancelTimer?.()
    this.#lanes.delete(lane.key)
    const last = this.#live.pop()!
    if (last === lane) return
    this.#live[lane.index] = last
    last.index = lane.index
  }

  #open(key: string): Lane<D> {
    const lane: Lane<D> = {
      key,
      waiting: new Fifo(),
      inFlight: 0,
      isRunning: false,
      isQueued: false,
      paused: undefined,
      cancelTimer: undefined,
      isRipe: false,
      index: this.#live.length,
    }
    this.#lanes.set(key, lane)
    this.#live.push(lane)
    return lane
  }
}

/** FNV-1a over UTF-16 units: only spreads folded keys, so it need not be the same anywhere else. */
function hash(key: string): number {
  let h = 0x811c9dc5
  for (let i = 0; i < key.length; i += 1) h = Math.imul(h ^ key.charCodeAt(i), 0x01000193)
  return h >>> 0
}
