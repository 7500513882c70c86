import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import type { Held } from '../../source/loop/stages.js'

/** The most that one claim asks for. */
export const CLAIM_CAP = 256
/** The most that is held besides what runs: one full commit in flight, and another that is being gathered. */
const MOST_ITEMS = 2_048
/** The most text of inputs and results that is held, estimated by the largest of late. */
const MOST_BYTES = 128 * 1024 * 1024
/** More than what comes through meanwhile, so the pace can rise. */
const MARGIN = 1.5
/** How much longer the held work should last than claims and commits take. */
const SLACK_MS = 10
/** What waits for a place is at most what starts within this share of a lease. */
const LEASE_SHARE = 0.25
/** An outcome waits for the commit before it, and then for its own. */
const COMMITS_WAITED_FOR = 2
/** The pace is measured over at least this long. */
const PACE_OVER_MS = 50
/** How fast the largest text is forgotten. */
const FORGETS = 0.999

/** What the doers of a system can run, and what they want. */
export interface Places {
  /** How many handlers run at the same time, over all doers. `Infinity` where one of them has no limit. */
  readonly concurrency: number
  /** What else to hold so that every type is served: batches that are gathered, buffers of types. */
  readonly atHand: number
  /** How many more the doers want now. */
  readonly wanted: number
  /** The text of all inputs that are held. */
  readonly bytes: number
}

/**
 * How much a process may claim ahead of what it has settled durably. By Little's law that is what comes through while a claim and
 * a commit are in flight; more would only age here, kept from other processes. Held is what waits for a place, what runs, and
 * what has ended and is not written yet. With an unlimited doer what runs does not count.
 */
export class PrefetchWindow {
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
   * Items that come through, per ms: started and written, whichever is less. Claims come in bursts, and so do commits after an
   * outage, and neither is a pace that lasts. Slow commits come in bursts too, so the pace is measured over several of them.
   */
  get #pace(): number {
    const overMs = Math.max(PACE_OVER_MS, this.#aroundMs)
    return Math.min(this.#begun.perMs(overMs), this.#written.perMs(overMs))
  }

  /** How long an item is held besides its run. */
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

  /** How many items may wait for a place: as many as start well within a lease, and none while the pace is unknown. */
  ahead(): number {
    return Math.min(MOST_ITEMS, Math.floor(this.#pace * this.#leaseMs * LEASE_SHARE))
  }

  /** How many more to claim. Also 0 where work is waiting and the little room is not worth a claim yet. */
  room(held: Held, places: Places): number {
    const size = this.size(places)
    const counted = held.waiting + held.ended + (places.concurrency === Infinity ? 0 : held.running)
    const room = Math.max(0, Math.min(CLAIM_CAP, size - counted, places.wanted, this.#roomInBytes(places)))
    const worth = Math.min(size, this.ahead(), CLAIM_CAP) / 4
    return held.waiting + held.ended > 0 && room < worth ? 0 : room
  }

  /** What runs in a doer without a limit does not count by number, but its inputs are in memory. */
  #roomInBytes({ concurrency, bytes }: Places): number {
    if (concurrency < Infinity) return Infinity
    const room = Math.floor((MOST_BYTES - bytes) / Math.max(1, this.#largest))
    return bytes === 0 ? Math.max(1, room) : room
  }

  #met(size: number): void {
    this.#largest = Math.max(size, this.#largest * FORGETS)
  }
}

/** How often something happens, smoothed over time. */
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
