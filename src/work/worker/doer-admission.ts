import { AsyncResource } from 'node:async_hooks'
import type { Doer } from '../../core/doer/doer.js'
import { ENDED } from '../../core/doer/start.js'
import type { MaybePromise, Ms } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { Room } from '../../ports/ledger.js'
import type { Admission, RunDeliveries } from '../../source/loop/admission.js'
import type { Deliveries, Delivery } from '../../source/loop/delivery.js'
import type { Held } from '../../source/loop/stages.js'
import type { EngineContext } from '../engine-context.js'
import { isLastChance } from '../run/crash-limit.js'
import { pauseBeforeClaim } from './backpressure.js'
import { Batcher } from './batcher.js'
import type { DeliveryRouter } from './delivery-router.js'
import { DoerQueue } from './doer-queue.js'
import { hintsOf } from './doers.js'
import type { PlaceHolder } from './lend-place.js'
import { CLAIM_CAP } from './prefetch-window.js'

export interface DoerAdmissionOptions {
  readonly context: EngineContext
  readonly router: DeliveryRouter
  /** Called before each claim with how much there is room for. */
  readonly asked: (capacity: number) => void
  /** When the place of a run that is over is free. Undefined: immediately. */
  readonly placeFree: (item: ClaimedItem) => Promise<void> | undefined
}

/** Batches of one type that are gathered at the same time, where its doer sets no lower limit. */
const MOST_BATCHES = 32

/** A doer, or a batched type, among those that share the window. */
interface Share extends Room {
  readonly queue: DoerQueue
  /** How many of its items run at the same time. */
  readonly places: number
  /** How many more would start immediately. */
  readonly beginsNow: number
}

/** A window that is full of one doer's items is not closed to another doer that has free places and holds little. */
function ownShare({ types, queue, places, beginsNow }: Share): Room {
  const left = places === Infinity ? 0 : 2 * places - queue.held
  return { types, max: Math.max(0, Math.min(beginsNow, left)) }
}

const sumOf = (rooms: readonly Room[]): number => rooms.reduce((sum, { max }) => sum + max, 0)

/** Doers as the loop's policy: they say how much to fetch, and which of what was fetched runs next. */
export class DoerAdmission implements Admission<ClaimedItem> {
  readonly #o: DoerAdmissionOptions
  readonly #context: EngineContext
  /** Taken and not started, in a doer or in its queue. */
  readonly #waiting = new Set<Delivery<ClaimedItem>>()
  readonly #queues = new Map<Doer, DoerQueue>()
  readonly #batchers = new Map<string, Batcher>()
  /** Handlers start in what the worker was started in, not in what another handler or a timer happens to run in. */
  readonly #scope = new AsyncResource('millrace.worker')
  #offs: ((() => void) | undefined)[] = []
  #carry: RunDeliveries<ClaimedItem> | undefined
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
    this.#context = options.context
  }

  attach(carry: RunDeliveries<ClaimedItem>): void {
    this.#carry = carry
  }

  capacity(held: Held, leasesLeft: number): MaybePromise<number | { readonly askAgainInMs: Ms }> {
    const { pulse } = this.#context
    pulse.turned()
    const pause = pauseBeforeClaim(this.#context)
    const asked = (ms: Ms) => {
      if (!(ms > 0)) return this.#room(held, leasesLeft)
      pulse.paused(ms)
      return { askAgainInMs: ms }
    }
    return typeof pause === 'number' ? asked(pause) : pause.then(asked)
  }

  /** The last capacity, by type. */
  get rooms(): readonly Room[] {
    return this.#rooms
  }

  onRoom(wake: () => void): () => void {
    this.#wake = wake
    for (const doer of this.#context.doers.parties.byDoer.keys()) this.#queueOf(doer)
    return () => {
      this.#wake = undefined
      for (const off of this.#offs.splice(0)) off?.()
    }
  }

  left(delivery: Delivery<ClaimedItem>): void {
    const queue = delivery.kept
    if (queue instanceof DoerQueue) {
      queue.held -= 1
      this.#bytes -= delivery.item.envelope.input.length
    }
    if (this.#wasFull) this.#wake?.()
  }

  offer(delivery: Delivery<ClaimedItem>): 'taken' | { readonly releaseAfterMs: Ms } {
    const { doers, recorder, o } = this.#context
    const route = this.#o.router.route(delivery)
    if (route.kind === 'back') return { releaseAfterMs: route.afterMs }
    recorder.taken(delivery)
    if (route.kind === 'end') {
      // It has ended already, and needs no place to be settled.
      this.#carry!([delivery])
      return 'taken'
    }
    const queue = this.#queueOf(doers.forItem(delivery.item))
    this.#pump(queue)
    if (!queue.hasRoom) {
      const answer = queue.wait(delivery, o.clock.monotonic())
      if (answer === 'taken') this.#hold(delivery)
      else recorder.left(delivery)
      return answer
    }
    this.#hold(delivery)
    try {
      this.#hand(queue, delivery)
    } catch (error) {
      this.#waiting.delete(delivery)
      recorder.left(delivery)
      throw error
    }
    return 'taken'
  }

  #hold(delivery: Delivery<ClaimedItem>): void {
    this.#waiting.add(delivery)
    // An item that may have crashed its process waits elsewhere, and still counts for its own doer.
    const own = this.#queueOf(this.#context.doers.of(delivery.item.envelope.type))
    delivery.kept = own
    own.held += 1
    this.#bytes += delivery.item.envelope.input.length
  }

  finish(): void {
    // A ledger never ends by itself, so no partial batch has to run early.
  }

  drain(): readonly Delivery<ClaimedItem>[] {
    this.#isDraining = true
    // Partial batches run now; what waits in a doer does not start any more.
    for (const batcher of this.#batchers.values()) batcher.flush()
    const left = [...this.#waiting]
    this.#waiting.clear()
    for (const queue of this.#queues.values()) queue.clear()
    for (const delivery of left) this.#context.recorder.left(delivery)
    return left
  }

  #room(held: Held, leasesLeft: number): number {
    const { doers, window } = this.#context
    const ahead = window.ahead()
    // Items that wait for a place within their type's limit share `ahead` with all others that wait.
    const aheadLeft = Math.max(0, ahead - held.waiting)
    const shares: Share[] = []
    let concurrency = 0
    /** Of doers that have their own places: a limit within one of them adds none. */
    let [wanted, beginsNow] = [0, 0]
    let atHand = doers.isGlobalGiven ? held.waiting : 0
    let atHandWithin = 0
    const { byDoer, batched } = doers.parties
    for (const [doer, types] of byDoer) {
      const queue = this.#queueOf(doer)
      this.#pump(queue)
      const places = doers.concurrencyOf(doer, queue.inside)
      const isWithin = doers.isWithin(doer)
      const max = doers.wants(doer, isWithin ? aheadLeft : ahead)
      const share = { types: this.#open(types), queue, places, max, beginsNow: doers.wants(doer, 0) }
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
      const queue = this.#queueOf(batcher.doer)
      this.#pump(queue)
      const max = Math.max(0, batcher.available())
      const places = batcher.size * Math.min(doers.concurrencyOf(batcher.doer, queue.inside), MOST_BATCHES)
      atHand += places
      wanted += max
      beginsNow += max
      shares.push({ types: this.#open([type]), queue, places, max, beginsNow: max })
    }
    // Types with a limit run in the places of the doer around them, however many such types there are.
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
    const { lending } = this.#context
    const isClosed = (type: string) => lending.isClosedTo(type)
    return types.some(isClosed) ? types.filter((type) => !isClosed(type)) : types
  }

  #queueOf(doer: Doer): DoerQueue {
    let queue = this.#queues.get(doer)
    if (queue === undefined) {
      const fresh = new DoerQueue(doer, this.#context.o.pollInterval)
      queue = fresh
      this.#queues.set(doer, fresh)
      this.#offs.push(
        doer.onAvailable?.(() => {
          this.#pump(fresh)
          if (fresh.hasRoom) this.#wake?.()
        }),
      )
    }
    return queue
  }

  /** Hands over what waits for a doer, as far as the doer has room. */
  #pump(queue: DoerQueue): void {
    for (let next = queue.next(); next !== undefined; next = queue.next()) {
      try {
        this.#hand(queue, next)
      } catch (error) {
        // Its lease is still kept: it is handed over before the next claim, or returned at the end.
        queue.putBack(next)
        this.#context.failed(error, 'queue')
        return
      }
    }
  }

  #batcherOf(type: string): Batcher | undefined {
    const known = this.#batchers.get(type)
    const { doers, registry, o } = this.#context
    const batch = known === undefined ? registry.find(type)?.batch : undefined
    if (batch === undefined) return known
    const doer = doers.of(type)
    const hasRoom = () => doers.wants(doer, 1) > 0
    const fresh = new Batcher(doer, hasRoom, batch, o.clock, (full) => this.#handBatch(this.#queueOf(doer), full))
    this.#batchers.set(type, fresh)
    return fresh
  }

  #hand(queue: DoerQueue, delivery: Delivery<ClaimedItem>): void {
    // An item that crashes its process would take its whole batch along.
    const batcher = isLastChance(delivery.item) ? undefined : this.#batcherOf(delivery.item.envelope.type)
    if (batcher !== undefined) {
      batcher.add(delivery)
      return
    }
    queue.doer.do(() => this.#run(queue, delivery), hintsOf(delivery.item.envelope, this.#scope))
    queue.entered()
  }

  /** One task for all of them, as old as the first. If the doer refuses it, all of them go back to the queue. */
  #handBatch(queue: DoerQueue, batch: Deliveries<ClaimedItem>): void {
    const isLast = this.#isDraining
    if (isLast) for (const delivery of batch) this.#waiting.delete(delivery)
    const run = () => (isLast ? this.#start(queue, batch) : this.#runBatch(queue, batch))
    try {
      queue.doer.do(run, hintsOf(batch[0].item.envelope, this.#scope))
      queue.entered()
    } catch (error) {
      this.#context.failed(error, 'queue')
      for (const delivery of batch) {
        this.#waiting.delete(delivery)
        this.#o.router.putBack(delivery)
        this.#carry!([delivery])
      }
    }
  }

  #runBatch(queue: DoerQueue, batch: Deliveries<ClaimedItem>): Promise<void> {
    const [first, ...rest] = batch.filter((delivery) => this.#waiting.delete(delivery))
    if (first !== undefined) return this.#start(queue, [first, ...rest])
    queue.ended()
    return ENDED
  }

  /** Ends a delivery that has not started, without a run and without a place. */
  endUnstarted(delivery: Delivery<ClaimedItem>): void {
    if (this.#isDraining || !this.#waiting.delete(delivery)) return
    this.#carry!([delivery])
  }

  /** When the place of these is free. Undefined: now, as is usual. */
  #placesFree(deliveries: Deliveries<ClaimedItem>): Promise<unknown> | undefined {
    if (deliveries.length === 1) return this.#o.placeFree(deliveries[0].item)
    const waits = deliveries.flatMap((delivery) => this.#o.placeFree(delivery.item) ?? [])
    return waits.length === 0 ? undefined : Promise.all(waits)
  }

  #leavePlace(queue: DoerQueue): void {
    queue.ended()
    if (queue.isPumpDue) return
    queue.isPumpDue = true
    // A user's doer may not notify us when it has room again. It has once it has seen its task end, which takes it a microtask;
    // one look serves all the places that are left meanwhile.
    const look = () => {
      queue.isPumpDue = false
      this.#pump(queue)
      if (this.#wasShort) this.#wake?.()
    }
    queueMicrotask(() => queueMicrotask(look))
  }

  /** The doer's task: it holds its place while the handler runs, not while the outcome is written. */
  #run(queue: DoerQueue, delivery: Delivery<ClaimedItem>): Promise<void> {
    if (this.#waiting.delete(delivery) && !this.#isDraining) return this.#start(queue, [delivery])
    queue.ended()
    return ENDED
  }

  #start(queue: DoerQueue, deliveries: Deliveries<ClaimedItem>): Promise<void> {
    const run = new PlacedRun(deliveries, () => this.#leavePlace(queue))
    const place = this.#context.lending.open(deliveries[0].item, queue.doer, run)
    for (const delivery of deliveries) delivery.place = place
    this.#carry!(deliveries, () => {
      const free = this.#placesFree(deliveries)
      const leave = () => (place === undefined ? run.leave() : place.end())
      if (free === undefined) leave()
      else void free.then(leave)
    })
    return run.left
  }
}

/** What runs in a place, and the doer's task that holds the place for it. */
class PlacedRun implements PlaceHolder {
  readonly #deliveries: Deliveries<ClaimedItem>
  readonly #onLeft: () => void
  #hasLeft = false
  #resolve: (() => void) | undefined

  constructor(deliveries: Deliveries<ClaimedItem>, onLeft: () => void) {
    this.#deliveries = deliveries
    this.#onLeft = onLeft
  }

  leave(): void {
    this.#hasLeft = true
    this.#onLeft()
    this.#resolve?.()
  }

  moved(isLent: boolean): void {
    for (const delivery of this.#deliveries) delivery.moveTo(isLent ? 'lent' : 'running')
  }

  get left(): Promise<void> {
    return this.#hasLeft ? ENDED : new Promise((resolve) => (this.#resolve = resolve))
  }
}
