import type { Clock } from '../core/clock.js'
import type { Doer } from '../core/doer/doer.js'
import type { Maybe, Ms } from '../core/time.js'
import type { Claimed } from '../ports/item.js'
import type { Room } from '../ports/ledger.js'
import type { Admission, Carry } from '../source/loop/admission.js'
import type { Deliveries, Delivery } from '../source/loop/delivery.js'
import type { Held } from '../source/loop/stages.js'
import { Batcher } from './batcher.js'
import { DoerLane } from './doer-lane.js'
import type { Doers } from './doers.js'
import { isLastChance, type Route } from './route.js'
import { hintsOf } from './submitter.js'
import { CLAIM_CAP, type Window } from './window.js'

export interface DoerAdmissionOptions {
  readonly doers: Doers
  readonly window: Window
  /** Nothing of this type is fetched now. */
  readonly isClosedTo: (type: string) => boolean
  /** How items of this type are gathered, if they run together. */
  readonly batchOf: (type: string) => { readonly size: number; readonly maxWait: Ms } | undefined
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
  /** Makes the place of a run that is about to begin; what it yields is called when the place is free again. */
  readonly place: (deliveries: Deliveries<Claimed>, doer: Doer, leave: () => void) => () => void
}

/** Batches of one type that are made ready at once, where its doer sets no lower limit. */
const MOST_BATCHES = 32

/** A doer, or a batched type, among those that share the window. */
interface Share extends Room {
  readonly lane: DoerLane
  /** How many of its items run at once. */
  readonly places: number
  /** How many more would begin at once. */
  readonly beginsNow: number
}

/** A window that is full of the items of one doer is not closed to another that has places free and holds little. */
function ownShare({ types, lane, places, beginsNow }: Share): Room {
  const left = places === Infinity ? 0 : 2 * places - lane.held
  return { types, max: Math.max(0, Math.min(beginsNow, left)) }
}

const sumOf = (rooms: readonly Room[]): number => rooms.reduce((sum, { max }) => sum + max, 0)

/** Doers as the loop's policy: they say how much to fetch, and which of what was fetched runs next. */
export class DoerAdmission implements Admission<Claimed> {
  readonly #o: DoerAdmissionOptions
  /** Taken and not started, in a doer or beside it. */
  readonly #waiting = new Set<Delivery<Claimed>>()
  readonly #lanes = new Map<Doer, DoerLane>()
  readonly #laneOfHeld = new WeakMap<Delivery<Claimed>, DoerLane>()
  readonly #batchers = new Map<string, Batcher>()
  #offs: ((() => void) | undefined)[] = []
  #carry: Carry<Claimed> | undefined
  #wake: (() => void) | undefined
  #rooms: readonly Room[] = []
  /** The text of all inputs that are held. */
  #bytes = 0
  /** When last asked, the window was closed. */
  #wasFull = false
  /** There was none for some types, at least. */
  #wasShort = false
  #isDraining = false

  constructor(options: DoerAdmissionOptions) {
    this.#o = options
  }

  attach(carry: Carry<Claimed>): void {
    this.#carry = carry
  }

  appetite(held: Held, leasesLeft: number): Maybe<number | { readonly askAgainInMs: Ms }> {
    const pause = this.#o.backpressure()
    const asked = (ms: Ms) => (ms > 0 ? { askAgainInMs: ms } : this.#room(held, leasesLeft))
    return typeof pause === 'number' ? asked(pause) : pause.then(asked)
  }

  /** How much there was room for when the appetite was last asked for, by type. */
  get rooms(): readonly Room[] {
    return this.#rooms
  }

  onRoom(wake: () => void): () => void {
    this.#wake = wake
    for (const doer of this.#o.doers.parties.byDoer.keys()) this.#laneOf(doer)
    return () => {
      this.#wake = undefined
      for (const off of this.#offs.splice(0)) off?.()
    }
  }

  left(delivery: Delivery<Claimed>): void {
    const lane = this.#laneOfHeld.get(delivery)
    if (lane !== undefined) {
      lane.held -= 1
      this.#bytes -= delivery.item.envelope.input.length
    }
    if (this.#wasFull) this.#wake?.()
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
    const lane = this.#laneOf(this.#o.doers.forItem(delivery.item))
    this.#pump(lane)
    if (!lane.hasRoom) {
      const answer = lane.wait(delivery, this.#o.clock.monotonic())
      if (answer === 'taken') this.#hold(delivery)
      else this.#o.left(delivery)
      return answer
    }
    this.#hold(delivery)
    try {
      this.#hand(lane, delivery)
    } catch (error) {
      this.#waiting.delete(delivery)
      this.#o.left(delivery)
      throw error
    }
    return 'taken'
  }

  #hold(delivery: Delivery<Claimed>): void {
    this.#waiting.add(delivery)
    // One that may have crashed its process waits for a place of its own, and still counts among those of its doer.
    const own = this.#laneOf(this.#o.doers.of(delivery.item.envelope.type))
    this.#laneOfHeld.set(delivery, own)
    own.held += 1
    this.#bytes += delivery.item.envelope.input.length
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

  #room(held: Held, leasesLeft: number): number {
    const { doers, window } = this.#o
    const ahead = window.ahead()
    // What waits for a place within a type's own limit waits beside all others: together they are to begin within the same time.
    const aheadLeft = Math.max(0, ahead - held.waiting)
    const shares: Share[] = []
    let concurrency = 0
    /** By doers that have places of their own: a limit within one of them adds none. */
    let [wanted, beginsNow] = [0, 0]
    let atHand = doers.isGlobalGiven ? held.waiting : 0
    let atHandWithin = 0
    const { byDoer, batched } = doers.parties
    for (const [doer, types] of byDoer) {
      const lane = this.#laneOf(doer)
      this.#pump(lane)
      const places = doers.concurrencyOf(doer, lane.inside)
      const isWithin = doers.isWithin(doer)
      const max = doers.wants(doer, isWithin ? aheadLeft : ahead)
      const share = { types: this.#open(types), lane, places, max, beginsNow: doers.wants(doer, 0) }
      shares.push(share)
      if (isWithin) {
        atHandWithin += doers.atHandOf(doer)
        continue
      }
      atHand += doers.atHandOf(doer)
      concurrency += places
      wanted += share.max
      beginsNow += share.beginsNow
    }
    for (const type of batched) {
      const batcher = this.#batcherOf(type)!
      const lane = this.#laneOf(batcher.doer)
      this.#pump(lane)
      const max = Math.max(0, batcher.available())
      const places = batcher.size * Math.min(doers.concurrencyOf(batcher.doer, lane.inside), MOST_BATCHES)
      atHand += places
      wanted += max
      beginsNow += max
      shares.push({ types: this.#open([type]), lane, places, max, beginsNow: max })
    }
    // However many types have a limit of their own, they begin in the places of others.
    atHand += Math.min(atHandWithin, concurrency)
    let rooms: readonly Room[] = shares
    let room = Math.min(leasesLeft, window.room(held, { concurrency, atHand, wanted, bytes: this.#bytes }))
    this.#wasFull = room === 0
    if (this.#wasFull && leasesLeft > 0) {
      rooms = shares.map(ownShare)
      room = Math.min(leasesLeft, CLAIM_CAP, beginsNow, sumOf(rooms))
    }
    this.#rooms = rooms.map(({ types, max }) => ({ types, max: types.length === 0 ? 0 : max }))
    this.#wasShort = this.#wasFull || this.#rooms.some(({ max }) => max === 0)
    this.#o.asked(room)
    return room
  }

  #open(types: readonly string[]): readonly string[] {
    return types.some(this.#o.isClosedTo) ? types.filter((type) => !this.#o.isClosedTo(type)) : types
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
    const { doers, clock } = this.#o
    const doer = doers.of(type)
    const hasRoom = () => doers.wants(doer, 1) > 0
    const fresh = new Batcher(doer, hasRoom, batch, clock, (full) => this.#handBatch(this.#laneOf(doer), full))
    this.#batchers.set(type, fresh)
    return fresh
  }

  #hand(lane: DoerLane, delivery: Delivery<Claimed>): void {
    // A batch would share the fate of one that brings down its process.
    const batcher = isLastChance(delivery.item) ? undefined : this.#batcherOf(delivery.item.envelope.type)
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
      if (this.#wasShort) this.#wake?.()
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
      const leave = this.#o.place(deliveries, lane.doer, () => this.#leavePlace(lane, executed))
      void this.#carry!(deliveries, () => {
        const free = this.#placesFree(deliveries)
        if (free === undefined) leave()
        else void free.then(leave)
      })
    })
  }
}
