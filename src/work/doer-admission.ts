import type { Clock } from '../core/clock.js'
import type { Doer } from '../core/doer/doer.js'
import type { Maybe, Ms } from '../core/time.js'
import type { Claimed } from '../ports/item.js'
import type { Admission, Carry } from '../source/loop/admission.js'
import type { Deliveries, Delivery } from '../source/loop/delivery.js'
import { Batcher } from './batcher.js'
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
  /** How items of this type are gathered, if they run together. */
  readonly batchOf: (type: string) => { readonly size: number; readonly maxWait: Ms } | undefined
  readonly batchTypes: () => readonly string[]
  /** Marks a delivery that is to go back to the queue instead of being run. */
  readonly putBack: (delivery: Delivery<Claimed>) => void
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
  /** When the place of a run that is over is free. Undefined: at once. */
  readonly placeFree: (delivery: Delivery<Claimed>) => Promise<void> | undefined
}

/** Doers as the loop's policy: they say how much to fetch, and which of what was fetched runs next. */
export class DoerAdmission implements Admission<Claimed> {
  readonly #o: DoerAdmissionOptions
  /** Taken and not started, in a doer or beside it. */
  readonly #waiting = new Set<Delivery<Claimed>>()
  readonly #lanes = new Map<Doer, DoerLane>()
  readonly #batchers = new Map<string, Batcher>()
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
    // What was still being gathered runs now; what waits in a doer does not any more.
    for (const batcher of this.#batchers.values()) batcher.flush()
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
    for (const type of this.#o.batchTypes()) {
      const batcher = this.#batcherOf(type)!
      this.#pump(this.#laneOf(batcher.doer))
      room += Math.max(0, batcher.available())
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

  #batcherOf(type: string): Batcher | undefined {
    const known = this.#batchers.get(type)
    const batch = known === undefined ? this.#o.batchOf(type) : undefined
    if (batch === undefined) return known
    const doer = this.#o.doerOf(type) ?? this.#o.global
    const fresh = new Batcher(doer, batch, this.#o.clock, (full) => this.#handBatch(this.#laneOf(doer), full))
    this.#batchers.set(type, fresh)
    return fresh
  }

  #hand(lane: DoerLane, delivery: Delivery<Claimed>): void {
    const batcher = this.#batcherOf(delivery.item.envelope.type)
    if (batcher !== undefined) {
      batcher.add(delivery)
      return
    }
    lane.doer.do(() => this.#run(lane, delivery), hintsOf(delivery.item.envelope))
    lane.entered()
  }

  /** One task for all of them, as old as the first. A doer that refuses it sends them all back. */
  #handBatch(lane: DoerLane, batch: Deliveries<Claimed>): void {
    const isLast = this.#isDraining
    if (isLast) for (const delivery of batch) this.#waiting.delete(delivery)
    const run = () => (isLast ? this.#start(lane, batch) : this.#runBatch(lane, batch))
    try {
      lane.doer.do(run, hintsOf(batch[0].item.envelope))
      lane.entered()
    } catch (error) {
      this.#o.failed(error)
      for (const delivery of batch) {
        this.#waiting.delete(delivery)
        this.#o.putBack(delivery)
        void this.#carry!([delivery])
      }
    }
  }

  #runBatch(lane: DoerLane, batch: Deliveries<Claimed>): Promise<void> {
    const [first, ...rest] = batch.filter((delivery) => this.#waiting.delete(delivery))
    if (first !== undefined) return this.#start(lane, [first, ...rest])
    lane.ended()
    return Promise.resolve()
  }

  /** Ends what waits for its turn without a run: it needs nobody's place for that. */
  endUnstarted(delivery: Delivery<Claimed>): void {
    if (this.#isDraining || !this.#waiting.delete(delivery)) return
    void this.#carry!([delivery])
  }

  /** When the place of these is free. Undefined: now, as nearly always. */
  #placesFree(deliveries: Deliveries<Claimed>): Promise<unknown> | undefined {
    const waits = deliveries.flatMap((delivery) => this.#o.placeFree(delivery) ?? [])
    return waits.length === 0 ? undefined : Promise.all(waits)
  }

  #leavePlace(lane: DoerLane, executed: () => void): void {
    lane.ended()
    executed()
    // A doer of the user's own may not tell when it has room again.
    queueMicrotask(() => {
      this.#pump(lane)
      if (this.#wasFull) this.#wake?.()
    })
  }

  /** The doer's task: it holds its place while the handler runs, not while the outcome is written. */
  #run(lane: DoerLane, delivery: Delivery<Claimed>): Promise<void> {
    if (this.#waiting.delete(delivery) && !this.#isDraining) return this.#start(lane, [delivery])
    lane.ended()
    return Promise.resolve()
  }

  #start(lane: DoerLane, deliveries: Deliveries<Claimed>): Promise<void> {
    return new Promise((executed) => {
      void this.#carry!(deliveries, () => {
        const free = this.#placesFree(deliveries)
        if (free === undefined) this.#leavePlace(lane, executed)
        else void free.then(() => this.#leavePlace(lane, executed))
      })
    })
  }
}
