import type { Clock } from '../core/clock.js'
import type { Doer } from '../core/doer/doer.js'
import type { Maybe, Ms } from '../core/time.js'
import type { Claimed } from '../ports/item.js'
import type { Admission, Carry } from '../source/loop/admission.js'
import type { Delivery } from '../source/loop/delivery.js'
import { DoerLane } from './doer-lane.js'
import type { Route } from './route.js'
import { hintsOf } from './submitter.js'

/** The most that one look at the queues asks for. */
const POLL_BATCH_CAP = 512

export interface DoerAdmissionOptions {
  readonly global: Doer
  /** The doer of a type that has one of its own. */
  readonly doerOf: (type: string) => Doer | undefined
  /** Every distinct doer: together they say how much to fetch. Types that are learnt bring theirs. */
  readonly doers: () => Iterable<Doer>
  readonly clock: Clock
  readonly pollInterval: Ms
  /** How long to pause before fetching. */
  readonly backpressure: () => Maybe<Ms>
  /** Where a delivery goes, and why not to its handler. */
  readonly route: (delivery: Delivery<Claimed>) => Route
  readonly taken: (delivery: Delivery<Claimed>) => void
  readonly left: (delivery: Delivery<Claimed>) => void
  /** Told before each look whether there was room for anything. */
  readonly asked: (appetite: number) => void
  readonly failed: (error: unknown) => void
}

/** Doers as the loop's policy: they say how much to fetch, and which of what was fetched runs next. */
export class DoerAdmission implements Admission<Claimed> {
  readonly #o: DoerAdmissionOptions
  /** Taken and not started, in a doer or beside it. */
  readonly #waiting = new Set<Delivery<Claimed>>()
  readonly #lanes = new Map<Doer, DoerLane>()
  #offs: ((() => void) | undefined)[] = []
  #carry: Carry<Claimed> | undefined
  #wake: (() => void) | undefined
  #isDraining = false
  #wasFull = false

  constructor(options: DoerAdmissionOptions) {
    this.#o = options
  }

  attach(carry: Carry<Claimed>): void {
    this.#carry = carry
  }

  appetite(): Maybe<number | { readonly askAgainInMs: Ms }> {
    const pause = this.#o.backpressure()
    if (typeof pause === 'number') return pause > 0 ? { askAgainInMs: pause } : this.#room()
    return pause.then((ms) => (ms > 0 ? { askAgainInMs: ms } : this.#room()))
  }

  onRoom(wake: () => void): () => void {
    this.#wake = wake
    for (const doer of this.#o.doers()) this.#laneOf(doer)
    return () => {
      this.#wake = undefined
      for (const off of this.#offs.splice(0)) off?.()
    }
  }

  offer(delivery: Delivery<Claimed>): 'taken' | { readonly giveBackAfterMs: Ms } {
    const route = this.#o.route(delivery)
    if (route.kind === 'back') return { giveBackAfterMs: route.afterMs }
    this.#o.taken(delivery)
    if (route.kind === 'end') {
      // It has ended already and needs nobody's place to be settled.
      void this.#carry!([delivery])
      return 'taken'
    }
    const lane = this.#laneOf(this.#o.doerOf(delivery.item.envelope.type) ?? this.#o.global)
    this.#pump(lane)
    if (!lane.hasRoom) {
      const answer = lane.wait(delivery, this.#o.clock.monotonic())
      if (answer === 'taken') this.#waiting.add(delivery)
      else this.#o.left(delivery)
      return answer
    }
    this.#waiting.add(delivery)
    try {
      this.#hand(lane, delivery)
    } catch (error) {
      this.#waiting.delete(delivery)
      this.#o.left(delivery)
      throw error
    }
    return 'taken'
  }

  finish(): void {
    // A ledger is never drained by itself, so there is nothing to hurry.
  }

  drain(): readonly Delivery<Claimed>[] {
    this.#isDraining = true
    const left = [...this.#waiting]
    this.#waiting.clear()
    for (const lane of this.#lanes.values()) lane.clear()
    for (const delivery of left) this.#o.left(delivery)
    return left
  }

  #room(): number {
    let room = 0
    for (const doer of this.#o.doers()) {
      this.#pump(this.#laneOf(doer))
      room += Math.max(0, doer.available())
    }
    room = Math.min(POLL_BATCH_CAP, room)
    this.#wasFull = room === 0
    this.#o.asked(room)
    return room
  }

  #laneOf(doer: Doer): DoerLane {
    let lane = this.#lanes.get(doer)
    if (lane === undefined) {
      const fresh = new DoerLane(doer, this.#o.pollInterval)
      lane = fresh
      this.#lanes.set(doer, fresh)
      this.#offs.push(
        doer.onAvailable?.(() => {
          this.#pump(fresh)
          if (fresh.hasRoom) this.#wake?.()
        }),
      )
    }
    return lane
  }

  /** Hands over what waits beside a doer, as far as that has room. */
  #pump(lane: DoerLane): void {
    for (let next = lane.next(); next !== undefined; next = lane.next()) {
      try {
        this.#hand(lane, next)
      } catch (error) {
        // Still ours and alive: handed over at the next look, or given back at the end.
        lane.putBack(next)
        this.#o.failed(error)
        return
      }
    }
  }

  #hand(lane: DoerLane, delivery: Delivery<Claimed>): void {
    lane.doer.do(() => this.#run(lane, delivery), hintsOf(delivery.item.envelope))
    lane.entered()
  }

  /** The doer's task: it holds its place while the handler runs, not while the outcome is written. */
  #run(lane: DoerLane, delivery: Delivery<Claimed>): Promise<void> {
    if (!this.#waiting.delete(delivery) || this.#isDraining) {
      lane.ended()
      return Promise.resolve()
    }
    return new Promise((executed) => {
      void this.#carry!([delivery], () => {
        lane.ended()
        executed()
        // A doer of the user's own may not tell when it has room again.
        queueMicrotask(() => {
          this.#pump(lane)
          if (this.#wasFull) this.#wake?.()
        })
      })
    })
  }
}
