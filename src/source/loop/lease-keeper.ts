import type { Clock } from '../../core/time/clock.js'
import type { EventLoopTurns } from '../../core/time/event-loop-turns.js'
import type { Ms } from '../../core/time/time.js'
import type { Delivery } from './delivery.js'
import { CancelledError, HeartbeatTimeoutError } from './errors.js'
import type { Feed } from './feed.js'

/** Most leases that one call extends: a call that takes long holds up what a backend does for others. */
const MOST_PER_CALL = 1_000
/** How many such calls of one heartbeat may be in flight together. */
const CALLS_AT_ONCE = 4
/** Over how many calls those are spread whose last call hung: what made it hang takes few others along the next time. */
const CALLS_AFTER_A_HANG = 16
/** How many leases are held at most before a large beat has shown how many the backend can extend in time. */
const FIRST_CAPACITY = 4_096
/** The share of the time between two beats that one beat may take. */
const BEAT_SHARE = 0.5
/** After which share of that time a lease is asked for again that could be neither extended nor lost: another transaction held it for a moment. */
const AGAIN_SHARE = 0.25

export interface LeaseKeeperOptions<D, R> {
  readonly clock: Clock
  readonly lease: NonNullable<Feed<D, R>['lease']>
  readonly turns: EventLoopTurns
  readonly onError: (error: unknown) => void
}

/**
 * Keeps every held lease alive with batched calls, from fetch to settlement. What could not be extended for a whole lease
 * counts as lost at the moment when the lease ends, whatever the backend says later: by then another process may hold it.
 */
export class LeaseKeeper<D, R> {
  readonly #o: LeaseKeeperOptions<D, R>
  readonly #leaseMs: Ms
  readonly #everyMs: Ms
  readonly #held = new Set<Delivery<D>>()
  #cancelTick: (() => void) | undefined
  /** When the next beat comes. */
  #tickAt: Ms = Infinity
  #cancelEnd: (() => void) | undefined
  /** When the lease was taken that the timer waits for. */
  #oldest: Ms = Infinity
  #capacity = FIRST_CAPACITY
  /** A backend that hangs, or refuses, is reported once, until it answers again. */
  #hasReported = false
  #hasReportedRefusal = false

  constructor(options: LeaseKeeperOptions<D, R>) {
    this.#o = options
    this.#leaseMs = options.lease.ms
    this.#everyMs = options.lease.everyMs ?? options.lease.ms / 3
  }

  /** How many more leases can be kept alive, as far as the beats have shown, beside so many that do not count. */
  room(uncounted = 0): number {
    return Math.max(0, this.#capacity + uncounted - this.#held.size)
  }

  hold(delivery: Delivery<D>): void {
    this.#held.add(delivery)
    // A claim that took long brings leases that are old already: they cannot wait for a whole pause between two beats.
    if (delivery.leasedAt + this.#everyMs < this.#tickAt) this.#armTick(delivery.leasedAt + this.#everyMs)
    if (delivery.leasedAt < this.#oldest) this.#armEnd(delivery.leasedAt)
  }

  drop(delivery: Delivery<D>): void {
    // The timers stay armed: with nothing held they lapse by themselves, and a busy loop does not re-arm for every delivery.
    this.#held.delete(delivery)
  }

  /** Its lease may have run out, whether or not the backend has answered so. */
  isOverdue(delivery: Delivery<D>, now: Ms): boolean {
    return now - delivery.leasedAt >= this.#leaseMs
  }

  /** A process that stood still finds its leases overdue before its timers do: nothing is started on them. */
  loseOverdue(deliveries: readonly Delivery<D>[]): void {
    const now = this.#o.clock.monotonic()
    for (const delivery of deliveries) if (this.isOverdue(delivery, now)) this.#lose(delivery)
  }

  close(): void {
    this.#held.clear()
    this.#cancelTick?.()
    this.#tickAt = Infinity
    this.#cancelEnd?.()
    this.#oldest = Infinity
  }

  // ── beats ──

  #armTick(at: Ms): void {
    this.#tickAt = at
    this.#cancelTick?.()
    const now = this.#o.clock.monotonic()
    this.#cancelTick = this.#o.clock.after(Math.max(0, at - now), () => {
      this.#tickAt = Infinity
      if (this.#held.size === 0) return
      this.#armTick(this.#o.clock.monotonic() + this.#everyMs)
      this.#beat()
    })
  }

  #askAgain(): void {
    const at = this.#o.clock.monotonic() + this.#everyMs * AGAIN_SHARE
    if (this.#held.size > 0 && at < this.#tickAt) this.#armTick(at)
  }

  /** Asks for all leases that are old enough and are not being asked for. A call that hangs holds up its own leases only. */
  #beat(): void {
    const now = this.#o.clock.monotonic()
    const due: Delivery<D>[] = []
    // Apart from the others: what hung once may hang again, and must not take its neighbours along.
    const hung: Delivery<D>[] = []
    for (const delivery of this.#held) {
      if (delivery.askedMs !== undefined) {
        if (now - delivery.askedMs < this.#everyMs) continue
        // Given up: its answer still counts should it come, but nothing waits for it any more.
        delivery.askedMs = undefined
        delivery.hasHung = true
      }
      if (delivery.hasHung) hung.push(delivery)
      // What was leased or extended a moment ago waits for the next tick; it is then at most one and a half beats old.
      else if (now - delivery.leasedAt >= this.#everyMs / 2) due.push(delivery)
    }
    if (hung.length > 0 && !this.#hasReported) {
      this.#hasReported = true
      this.#o.onError(new HeartbeatTimeoutError(this.#everyMs))
    }
    void this.#extendAll(due, now, hung.length > 0)
    const share = Math.ceil(hung.length / CALLS_AFTER_A_HANG)
    while (hung.length > 0) void this.#extend(hung.splice(-share))
  }

  async #extendAll(due: Delivery<D>[], startedMs: Ms, areSomeHung: boolean): Promise<void> {
    const count = due.length
    const calls = Math.min(CALLS_AT_ONCE, Math.ceil(count / MOST_PER_CALL))
    await Promise.all(Array.from({ length: calls }, () => this.#extendSome(due)))
    const tookMs = Math.max(1, this.#o.clock.monotonic() - startedMs)
    if (count < MOST_PER_CALL) {
      // A small beat is all round trip, and says nothing of a large one; but a backend that was slow once may be tried again.
      const isInTime = !areSomeHung && tookMs <= this.#everyMs * BEAT_SHARE
      if (isInTime) this.#capacity = Math.max(this.#capacity, Math.min(FIRST_CAPACITY, 2 * this.#capacity))
      return
    }
    this.#capacity = Math.max(MOST_PER_CALL, Math.floor((count * this.#everyMs * BEAT_SHARE) / tookMs))
  }

  /** Takes one share after the other, until none is left. */
  async #extendSome(due: Delivery<D>[]): Promise<void> {
    while (due.length > 0) {
      // A backend that answers in microtasks would extend all of them before anything else in the process got a word in. Checked here
      // and not in a call that is awaited: several of these run together, and each has to see what the one before took.
      for (let turn = this.#o.turns.due(); turn !== undefined; turn = this.#o.turns.due()) await turn
      const share = due.splice(-MOST_PER_CALL).filter((delivery) => this.#held.has(delivery))
      if (share.length > 0) await this.#extend(share)
    }
  }

  async #extend(share: readonly Delivery<D>[]): Promise<void> {
    const extending = this.#extendNow(share)
    for (const delivery of share) delivery.extending = extending
    await extending
    for (const delivery of share) if (delivery.extending === extending) delivery.extending = undefined
  }

  async #extendNow(share: readonly Delivery<D>[]): Promise<void> {
    const askedMs = this.#o.clock.monotonic()
    for (const delivery of share) delivery.askedMs = askedMs
    try {
      const words = await this.#o.lease.extend(share)
      this.#hasReportedRefusal = false
      this.#hasReported &&= !share.some(({ hasHung }) => hasHung)
      for (const delivery of share) delivery.hasHung = false
      share.forEach((delivery, i) => {
        const word = words[i] ?? 'unknown'
        if (word === 'lost') this.#lose(delivery)
        else if (word !== 'unknown') delivery.leasedAt = Math.max(delivery.leasedAt, askedMs)
        if (word === 'cancelled') delivery.abort(new CancelledError())
      })
      // A whole pause later it may be held for a moment once more, and its lease would end in between.
      if (words.includes('unknown')) this.#askAgain()
    } catch (error) {
      if (!this.#hasReportedRefusal) this.#o.onError(error)
      this.#hasReportedRefusal = true
      for (const delivery of share) delivery.beatError = error
    } finally {
      for (const delivery of share) if (delivery.askedMs === askedMs) delivery.askedMs = undefined
    }
  }

  // ── ends ──

  /** One timer, for the lease that ends first. What is extended meanwhile is found alive when it fires. */
  #armEnd(leasedAt: Ms): void {
    this.#oldest = leasedAt
    this.#cancelEnd?.()
    const leftMs = Math.max(0, leasedAt + this.#leaseMs - this.#o.clock.monotonic())
    this.#cancelEnd = this.#o.clock.after(leftMs, () => {
      this.#oldest = Infinity
      this.#endOverdue()
    })
  }

  #endOverdue(): void {
    const now = this.#o.clock.monotonic()
    let oldest = Infinity
    for (const delivery of this.#held) {
      if (this.#isBeyondLosing(delivery)) continue
      if (this.isOverdue(delivery, now)) this.#lose(delivery, delivery.beatError)
      else oldest = Math.min(oldest, delivery.leasedAt)
    }
    if (oldest < Infinity) this.#armEnd(oldest)
  }

  #isBeyondLosing(delivery: Delivery<D>): boolean {
    return this.#o.lease.isGuarded === true && delivery.hasEnded
  }

  #lose(delivery: Delivery<D>, cause?: unknown): void {
    if (this.#held.delete(delivery) && !this.#isBeyondLosing(delivery)) delivery.lose(cause)
  }
}
