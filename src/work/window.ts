import type { Clock } from '../core/clock.js'
import type { Ms } from '../core/time.js'
import type { Held } from '../source/loop/stages.js'

/** The most that one claim asks for. */
export const CLAIM_CAP = 256
/** The most that is held beside what runs: one full commit under way, and another that is being gathered. */
const MOST_ITEMS = 2_048
/** The most text of inputs and results that is held, reckoned by the largest that was met lately. */
const MOST_BYTES = 128 * 1024 * 1024
/** More than what comes through meanwhile, so that the pace can rise. */
const MARGIN = 1.5
/** Work for so long is kept at hand beyond what claims and commits take, where handlers are quick. */
const SLACK_MS = 10
/** What waits for a place is at most what begins within this share of a lease. */
const LEASE_SHARE = 0.25
/** An outcome waits for the commit before it, and then for its own. */
const COMMITS_WAITED_FOR = 2
/** The pace is reckoned over stretches of at least this length. */
const PACE_OVER_MS = 50
/** How fast the largest text that was met is forgotten. */
const FORGETS = 0.999

/** What the doers of a system can run, and what they want. */
export interface Places {
  /** How many handlers run at once, over all doers. `Infinity` where one of them has no limit. */
  readonly concurrency: number
  /** What has to be held beside that for every type to be served: batches that are gathered, buffers of types. */
  readonly atHand: number
  /** How many more the doers want now. */
  readonly wanted: number
  /** The text of all inputs that are held. */
  readonly bytes: number
}

/**
 * How much a process may hold that it has claimed and not settled durably. By Little's law it is what comes through while a
 * claim and a commit are under way; more would only age here, kept from other processes. Held is what waits for a place,
 * what runs, and what has ended and is not written yet. With an unlimited doer what runs does not count, the other two do.
 */
export class Window {
  readonly #leaseMs: Ms
  readonly #begun: Pace
  readonly #written: Pace
  #claimMs: Ms = 0
  #commitMs: Ms = 0
  #largest = 0

  constructor(clock: Clock, leaseMs: Ms) {
    this.#leaseMs = leaseMs
    this.#begun = new Pace(clock)
    this.#written = new Pace(clock)
  }

  /** A handler was called. */
  started(): void {
    this.#begun.count(1)
  }

  claimed(tookMs: Ms, sizes: Iterable<number>): void {
    this.#claimMs = smooth(this.#claimMs, tookMs)
    for (const size of sizes) this.#met(size)
  }

  committed(tookMs: Ms, sizes: Iterable<number>): void {
    this.#commitMs = smooth(this.#commitMs, tookMs)
    let count = 0
    for (const size of sizes) {
      count += 1
      this.#met(size)
    }
    this.#written.count(count)
  }

  /**
   * Items that come through, per ms: begun and written, whichever is less. Claims come in bursts, and so do commits after a
   * backend was away, and neither is a pace that lasts. Slow commits come in bursts, too: a stretch takes in more than one of them.
   */
  get #pace(): number {
    const overMs = Math.max(PACE_OVER_MS, this.#aroundMs)
    return Math.min(this.#begun.perMs(overMs), this.#written.perMs(overMs))
  }

  /** How long an item is held beside its run. */
  get #aroundMs(): Ms {
    return this.#claimMs + COMMITS_WAITED_FOR * this.#commitMs
  }

  /** How many items may be held. */
  size({ concurrency, atHand }: Pick<Places, 'concurrency' | 'atHand'>): number {
    const running = concurrency === Infinity ? 0 : concurrency
    const least = 2 * running + atHand
    const flow = Math.ceil(MARGIN * this.#pace * (this.#aroundMs + SLACK_MS))
    const byBytes = Math.max(1, Math.floor(MOST_BYTES / Math.max(1, this.#largest)))
    return Math.min(Math.max(least, Math.min(flow, MOST_ITEMS)), Math.max(byBytes, running))
  }

  /** How many items may wait at hand for a place: as many as begin well within a lease, and none while the pace is unknown. */
  ahead(): number {
    return Math.min(MOST_ITEMS, Math.floor(this.#pace * this.#leaseMs * LEASE_SHARE))
  }

  /** How many more to claim. 0 also where there is work at hand and the little that is left is not worth a claim yet. */
  room(held: Held, places: Places): number {
    const size = this.size(places)
    const counted = held.waiting + held.ended + (places.concurrency === Infinity ? 0 : held.running)
    const room = Math.max(0, Math.min(CLAIM_CAP, size - counted, places.wanted, this.#roomInBytes(places)))
    const worth = Math.min(size, this.ahead(), CLAIM_CAP) / 4
    return held.waiting + held.ended > 0 && room < worth ? 0 : room
  }

  /** What runs in a doer without a limit does not count by number. Its inputs are in memory all the same. */
  #roomInBytes({ concurrency, bytes }: Places): number {
    if (concurrency < Infinity) return Infinity
    const room = Math.floor((MOST_BYTES - bytes) / Math.max(1, this.#largest))
    return bytes === 0 ? Math.max(1, room) : room
  }

  #met(size: number): void {
    this.#largest = Math.max(size, this.#largest * FORGETS)
  }
}

/** How often something happens, over the last stretches of time. */
class Pace {
  readonly #clock: Clock
  #perMs = 0
  #sinceMs: Ms
  #count = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#sinceMs = clock.monotonic()
  }

  count(times: number): void {
    this.#count += times
  }

  perMs(overMs: Ms): number {
    const now = this.#clock.monotonic()
    const pastMs = now - this.#sinceMs
    if (pastMs >= overMs) {
      this.#perMs = smooth(this.#perMs, this.#count / pastMs)
      this.#count = 0
      this.#sinceMs = now
    }
    return this.#perMs
  }
}

function smooth(before: number, now: number): number {
  return before === 0 ? now : before + (now - before) * 0.5
}
