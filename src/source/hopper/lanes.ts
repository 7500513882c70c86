import { Fifo } from '../../core/collections/fifo.js'
import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import type { Admission, RunDeliveries } from '../loop/admission.js'
import type { Deliveries, Delivery } from '../loop/delivery.js'
import { type Lane, LaneTable } from './lane-table.js'
import { PartitionPauses, type PausableSource } from './partition-pauses.js'

/** How lanes are cut and how much may be in flight. All resolved. */
export interface LaneOptions<D> {
  readonly clock: Clock
  /** How many runs there may be at the same time, over all lanes. */
  readonly concurrency: number
  /** Fetched and not yet settled, over all lanes. */
  readonly maxInFlight: number
  /** How many lanes may be live at the same time; beyond it new keys share lanes. */
  readonly maxLanes: number
  /** The ordering domain of a delivery. Always the same for the same one, and never throws. */
  readonly laneOf: (item: D) => string
  /** Several deliveries of one lane to a run: at `size`, or `maxWaitMs` after the first. */
  readonly batch?: { readonly size: number; readonly maxWaitMs: Ms }
  /** Where the source can hold back a partition: a lane this long has its own paused, and resumed at half of it. */
  readonly pause?: PausableSource & { readonly at: number; readonly partitionOf: (item: D) => string }
}

/**
 * Order within a key, parallel across keys. A lane runs one run at a time, in arrival order; lanes with something to run
 * take turns, one run each. A place is taken when a run starts and not when it is fetched, so that a slow key holds up
 * only itself. Lanes are exact and vanish when idle: a million keys cost nothing once they are quiet.
 */
export class Lanes<D> implements Admission<D> {
  readonly #o: LaneOptions<D>
  readonly #pauses: PartitionPauses | undefined
  readonly #table: LaneTable<D>
  readonly #ready = new Fifo<Lane<D>>()
  readonly #refillAt: number
  #running = 0
  #inFlight = 0
  /** The fetcher was answered that there is no room. */
  #isRefused = false
  #isDraining = false
  #isFinishing = false
  #carry: RunDeliveries<D> | undefined
  #wake: (() => void) | undefined

  constructor(options: LaneOptions<D>) {
    this.#o = options
    this.#table = new LaneTable(options.maxLanes)
    this.#refillAt = Math.max(1, Math.floor((options.maxInFlight - options.concurrency) / 4))
    this.#pauses = options.pause && new PartitionPauses(options.pause)
  }

  /** Lanes that exist now. */
  get size(): number {
    return this.#table.size
  }

  attach(carry: RunDeliveries<D>): void {
    this.#carry = carry
  }

  capacity(): number {
    this.#isRefused = this.#room <= 0
    return this.#room
  }

  onRoom(wake: () => void): () => void {
    this.#wake = wake
    return () => {
      this.#wake = undefined
    }
  }

  offer(delivery: Delivery<D>): 'taken' {
    const lane = this.#table.laneFor(this.#o.laneOf(delivery.item))
    lane.waiting.push(delivery)
    lane.inFlight += 1
    this.#inFlight += 1
    this.#holdBack(lane, delivery)
    this.#armBatch(lane)
    this.#consider(lane)
    this.#unstall()
    return 'taken'
  }

  finish(): void {
    this.#isFinishing = true
    for (const lane of this.#table.live()) this.#consider(lane)
  }

  drain(): readonly Delivery<D>[] {
    this.#isDraining = true
    const left: Delivery<D>[] = []
    for (const lane of this.#table.live()) {
      lane.cancelTimer?.()
      lane.cancelTimer = undefined
      const waiting = lane.waiting.take(lane.waiting.size)
      for (const delivery of waiting) left.push(delivery)
      // A run that is abandoned never gives its partition free, and the next one on this source would starve.
      this.#letGo(lane)
      this.#settled(lane, waiting)
    }
    return left
  }

  withdraw(isConcerned: (item: D) => boolean): readonly Delivery<D>[] {
    const withdrawn: Delivery<D>[] = []
    for (const lane of this.#table.live()) {
      const taken = lane.waiting.pick(({ item }) => isConcerned(item))
      for (const delivery of taken) withdrawn.push(delivery)
      this.#settled(lane, taken)
    }
    this.#callForMore()
    return withdrawn
  }

  get #room(): number {
    return this.#o.maxInFlight - this.#inFlight
  }

  /**
   * Calls for more once a quarter of what may wait is free, so that a source is not asked for one message at a time; but at
   * once when a place is idle, since what fills the window may be the backlog of a single lane.
   */
  #callForMore(): void {
    if (!this.#isRefused || this.#room <= 0) return
    const { concurrency } = this.#o
    const isIdle = this.#running < concurrency && this.#ready.size === 0
    if (!isIdle && this.#room < this.#refillAt) return
    this.#isRefused = false
    this.#wake?.()
  }

  /** Puts a lane in the queue for its turn when it has a run to give. */
  #consider(lane: Lane<D>): void {
    if (lane.isRunning || lane.isQueued || lane.waiting.size === 0 || this.#isDraining) return
    if (!this.#hasRun(lane)) return
    lane.isQueued = true
    this.#ready.push(lane)
    this.#startReady()
  }

  #startReady(): void {
    while (this.#running < this.#o.concurrency && !this.#isDraining) {
      const lane = this.#ready.shift()
      if (lane === undefined) return
      lane.isQueued = false
      // What it was queued for may have been withdrawn.
      if (lane.waiting.size > 0 && this.#hasRun(lane)) this.#start(lane)
    }
  }

  #start(lane: Lane<D>): void {
    const taken = this.#o.batch === undefined ? [lane.waiting.shift()!] : this.#cutBatch(lane, this.#o.batch.size)
    lane.isRunning = true
    this.#running += 1
    const done = () => {
      this.#running -= 1
      lane.isRunning = false
      this.#settled(lane, taken)
      this.#consider(lane)
      this.#startReady()
      this.#callForMore()
      this.#unstall()
    }
    // `attach` comes before the first offer, and `#consider` saw at least one delivery.
    const settled = new Promise<void>((resolve) => this.#carry!(taken as unknown as Deliveries<D>, undefined, resolve))
    // Later, also where it was settled immediately: a row of lanes that start each other is no recursion.
    void settled.then(done)
  }

  #settled(lane: Lane<D>, deliveries: readonly Delivery<D>[]): void {
    if (deliveries.length === 0) return
    this.#inFlight -= deliveries.length
    lane.inFlight -= deliveries.length
    if (this.#table.hasFolded) for (const { item } of deliveries) this.#table.left(this.#o.laneOf(item))
    if (lane.paused !== undefined && lane.inFlight <= this.#o.pause!.at / 2) this.#letGo(lane)
    if (lane.inFlight === 0) this.#table.close(lane)
  }

  // ── batches ──

  #hasRun(lane: Lane<D>): boolean {
    const { batch } = this.#o
    return batch === undefined || this.#isFinishing || lane.isRipe || lane.waiting.size >= batch.size
  }

  #cutBatch(lane: Lane<D>, size: number): Delivery<D>[] {
    const taken = lane.waiting.take(size)
    lane.isRipe = false
    lane.cancelTimer?.()
    lane.cancelTimer = undefined
    this.#armBatch(lane)
    return taken
  }

  /** The wait for a fuller batch counts from the first delivery in it, also while the lane's last run still goes on. */
  #armBatch(lane: Lane<D>): void {
    const { batch, clock } = this.#o
    if (batch === undefined || batch.maxWaitMs <= 0 || lane.isRipe || lane.cancelTimer !== undefined) return
    const first = lane.waiting.peek()
    if (first === undefined) return
    const leftMs = Math.max(0, first.pulledAt + batch.maxWaitMs - clock.monotonic())
    lane.cancelTimer = clock.after(leftMs, () => {
      lane.cancelTimer = undefined
      lane.isRipe = true
      this.#consider(lane)
    })
  }

  /**
   * The window is full of partial batches and none of them may go: nothing can come to fill one up, and without a timer
   * they would wait forever. So the one that has waited longest goes as it is.
   */
  #unstall(): void {
    const { batch } = this.#o
    if (batch === undefined || batch.maxWaitMs > 0) return
    if (this.#running > 0 || this.#ready.size > 0 || this.#room > 0 || this.#isDraining) return
    let oldest: Lane<D> | undefined
    for (const lane of this.#table.live()) {
      if (oldest === undefined || lane.waiting.peek()!.pulledAt < oldest.waiting.peek()!.pulledAt) oldest = lane
    }
    if (oldest === undefined) return
    oldest.isRipe = true
    this.#consider(oldest)
  }

  // ── holding back ──

  #holdBack(lane: Lane<D>, delivery: Delivery<D>): void {
    const { pause } = this.#o
    if (pause === undefined || lane.inFlight < pause.at) return
    const partition = pause.partitionOf(delivery.item)
    if (partition === '' || lane.paused?.has(partition)) return
    lane.paused ??= new Set()
    lane.paused.add(partition)
    this.#pauses!.hold(partition)
  }

  #letGo(lane: Lane<D>): void {
    if (lane.paused === undefined) return
    for (const partition of lane.paused) this.#pauses!.free(partition)
    lane.paused = undefined
  }
}
