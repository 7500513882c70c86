import type { Clock } from '../../core/clock.js'
import type { Ms } from '../../core/time.js'
import type { Delivery } from './delivery.js'
import { CancelledError } from './errors.js'
import type { Feed } from './feed.js'

/**
 * Keeps every held lease alive with one batched call per beat, from fetch to settlement. What could not be
 * extended for a whole lease counts as lost, whatever the backend says later: by then somebody else may hold it.
 */
export class LeaseKeeper<D, R> {
  readonly #clock: Clock
  readonly #lease: NonNullable<Feed<D, R>['lease']>
  readonly #everyMs: Ms
  readonly #held = new Set<Delivery<D>>()
  readonly #onError: (error: unknown) => void
  #cancelTick: (() => void) | undefined
  /** When the beat that is still unanswered began. */
  #beatingSince: Ms | undefined

  constructor(clock: Clock, lease: NonNullable<Feed<D, R>['lease']>, onError: (error: unknown) => void) {
    this.#clock = clock
    this.#lease = lease
    this.#everyMs = lease.everyMs ?? lease.ms / 3
    this.#onError = onError
  }

  hold(delivery: Delivery<D>): void {
    this.#held.add(delivery)
    if (this.#cancelTick === undefined) this.#arm()
  }

  drop(delivery: Delivery<D>): void {
    // The tick stays armed: with nothing held it lapses by itself, and a busy loop does not re-arm for every delivery.
    this.#held.delete(delivery)
  }

  /** Its lease may have run out, whether or not anybody has said so. */
  isOverdue(delivery: Delivery<D>, now: Ms): boolean {
    return now - delivery.leasedAt >= this.#lease.ms
  }

  /** A process that stood still finds its leases overdue before its heartbeat does: nothing is started on them. */
  loseOverdue(deliveries: readonly Delivery<D>[]): void {
    const now = this.#clock.monotonic()
    for (const delivery of deliveries) if (this.isOverdue(delivery, now)) this.#lose(delivery)
  }

  close(): void {
    this.#held.clear()
    this.#cancelTick?.()
    this.#cancelTick = undefined
  }

  #arm(): void {
    this.#cancelTick = this.#clock.after(this.#everyMs, () => {
      this.#cancelTick = undefined
      if (this.#held.size === 0) return
      this.#arm()
      // A beat that outlasts the interval is not overtaken: two at once would only load a backend that is slow already.
      // But one that outlasts the lease will hardly be answered any more, and must not be the last one ever.
      const beatingMs = this.#beatingSince === undefined ? Infinity : this.#clock.monotonic() - this.#beatingSince
      if (beatingMs < this.#lease.ms) this.#loseOverdue()
      else void this.#beat()
    })
  }

  async #beat(): Promise<void> {
    const now = this.#clock.monotonic()
    this.#beatingSince = now
    // What was leased or extended a moment ago waits for the next tick; it is then at most one and a half beats old.
    const due = [...this.#held].filter((x) => now - x.leasedAt >= this.#everyMs / 2)
    try {
      const words = due.length === 0 ? [] : await this.#lease.extend(due)
      due.forEach((delivery, i) => {
        const word = words[i] ?? 'unknown'
        if (word === 'lost') this.#lose(delivery)
        else if (word !== 'unknown') delivery.leasedAt = Math.max(delivery.leasedAt, now)
        if (word === 'cancelled') delivery.abort(new CancelledError())
      })
      this.#loseOverdue()
    } catch (error) {
      this.#onError(error)
      this.#loseOverdue(error)
    } finally {
      if (this.#beatingSince === now) this.#beatingSince = undefined
    }
  }

  #loseOverdue(cause?: unknown): void {
    const now = this.#clock.monotonic()
    for (const delivery of this.#held) {
      if (this.isOverdue(delivery, now)) this.#lose(delivery, cause)
    }
  }

  #lose(delivery: Delivery<D>, cause?: unknown): void {
    if (this.#held.delete(delivery)) delivery.lose(cause)
  }
}
