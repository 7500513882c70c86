import { LazySignal } from '../../core/lazy-signal.js'
import type { Maybe, Ms } from '../../core/time.js'
import { Turns } from '../../core/turns.js'
import type { Admission } from './admission.js'
import { Carried } from './carried.js'
import { Deadline } from './deadline.js'
import { type Deliveries, Delivery } from './delivery.js'
import { SettleError, ShutdownDeadlineError } from './errors.js'
import type { Feed, Pulled } from './feed.js'
import { type FetchEnd, Fetcher } from './fetcher.js'
import { LeaseKeeper } from './lease-keeper.js'
import type { LoopOptions } from './loop-options.js'
import type { LoopPhase, LoopSummary, Observer } from './observer.js'
import { Settler, type SettleWord } from './settler.js'

/**
 * Does the work of one run and yields one outcome per delivery, in order. It does not throw: a failure is an outcome.
 * `stopping` aborts when the run begins to end, for whoever waits inside.
 */
export type Execute<D, R> = (deliveries: Deliveries<D>, stopping: AbortSignal) => Maybe<readonly R[]>

/** One run of the loop over one feed. */
export class Run<D, R> {
  readonly #o: LoopOptions
  readonly #watch: Observer<D, R>
  readonly #feed: Feed<D, R>
  readonly #by: Admission<D>
  readonly #execute: Execute<D, R>
  readonly #fetcher: Fetcher<D, R>
  readonly #keeper: LeaseKeeper<D, R> | undefined
  readonly #settler: Settler<D, R>
  readonly #turns: Turns
  readonly #stopping = new AbortController()
  readonly #carried = new Carried<D>()
  readonly #summary: LoopSummary = { received: 0, settled: 0, settleFailures: 0, returned: 0, lost: 0, abandoned: 0 }
  /** How long running work may still go on, once the run is stopping. */
  readonly #deadline: Deadline
  #isFetching = false
  #settleFailuresInARow = 0
  #failure: { readonly error: unknown } | undefined

  constructor(options: LoopOptions, watch: Observer<D, R>, feed: Feed<D, R>, by: Admission<D>, execute: Execute<D, R>) {
    this.#o = options
    this.#watch = watch
    this.#feed = feed
    this.#by = by
    this.#execute = execute
    this.#deadline = new Deadline(options.clock)
    this.#turns = options.turns ?? new Turns(options.clock)
    this.#keeper =
      feed.lease === undefined
        ? undefined
        : new LeaseKeeper<D, R>({
            clock: options.clock,
            lease: feed.lease,
            turns: this.#turns,
            onError: (error) => this.#failed('extend', error),
          })
    this.#fetcher = new Fetcher(options, watch, feed, {
      appetite: () => by.appetite(this.#carried.stages, this.#leasesLeft()),
      admit: (pulled) => this.#admit(pulled),
      turns: this.#turns,
    })
    this.#settler = new Settler(options.clock, feed, options.settle, (delivery, error) => {
      this.#failed('settle', error)
      this.#watch.settleRetry?.(delivery)
    })
  }

  async go(stop: AbortSignal | undefined): Promise<LoopSummary> {
    const onStop = () => this.stop()
    stop?.addEventListener('abort', onStop, { once: true })
    if (stop?.aborted) this.stop()
    this.#by.attach((deliveries, executed) => this.#carry(deliveries, executed))
    const ring = () => this.#fetcher.ring()
    const offReady = this.#feed.onReady?.(ring)
    const offRoom = this.#by.onRoom(ring)
    try {
      // A fetch that does not hear of the stop must not hold up the drain: what it still brings is given back.
      const end = await Promise.race([this.#fetch(), whenAborted(this.#stopping.signal)])
      if (typeof end === 'object' && end.kind === 'failed') this.#fail(end.error)
      await this.#drain(typeof end === 'object' && end.kind === 'drained')
    } finally {
      stop?.removeEventListener('abort', onStop)
      offReady?.()
      offRoom()
      this.#keeper?.close()
      this.#settler.close()
      this.#deadline.close()
    }
    if (this.#failure !== undefined) throw this.#failure.error
    return { ...this.#summary }
  }

  /** Takes effect at once: nothing is fetched or started after it. A second stop can only shorten the time left. */
  stop(drainMs: Ms = this.#o.drainMs): void {
    this.#deadline.within(drainMs)
    if (this.#isStopping) return
    this.#stopping.abort()
    // Tries without number end with the run; a few are few enough to be waited for.
    if (this.#o.settle.attempts === Infinity) this.#settler.hurry()
    this.#fetcher.ring()
  }

  /**
   * Parts with some of what it carries, as when a partition goes to another consumer: what has not started is given back,
   * and what runs may end in time. After that its lease counts as lost, since somebody else may hold it.
   */
  async withdraw(isConcerned: (item: D) => boolean): Promise<void> {
    void this.#release(this.#by.withdraw?.(isConcerned) ?? [], undefined)
    const concerned = this.#carried.all().filter(({ item }) => isConcerned(item))
    const gone = this.#carried.until(() => !concerned.some((delivery) => this.#carried.has(delivery)))
    await this.#within(this.#o.drainMs, gone)
    for (const delivery of concerned) delivery.lose()
  }

  async #fetch(): Promise<FetchEnd> {
    this.#isFetching = true
    const end = await this.#fetcher.run(this.#stopping.signal)
    this.#isFetching = false
    this.#carried.tell()
    return end
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  // ── admitting ──

  /** Offers what was pulled; true if any of it was taken. */
  #admit({ items, askedMs }: Pulled<D>): boolean {
    if (items.length === 0) return false
    const now = this.#o.clock.monotonic()
    let giveBack: Map<Ms | undefined, Delivery<D>[]> | undefined
    let took = false
    for (const item of items) {
      const delivery = new Delivery(item, now, askedMs, this.#carried.stages)
      this.#summary.received += 1
      this.#carried.add(delivery)
      // What came so late that somebody else may hold it by now is not run, and goes back if it is still ours.
      const isTurnedAway = this.#isStopping || this.#keeper?.isOverdue(delivery, now) === true
      if (!isTurnedAway) this.#keeper?.hold(delivery)
      this.#watch.pulled?.(delivery)
      const delayMs = isTurnedAway ? 'now' : this.#offer(delivery)
      if (delayMs === 'taken') {
        took = true
        continue
      }
      giveBack ??= new Map()
      const key = delayMs === 'now' ? undefined : delayMs
      const sameDelay = giveBack.get(key)
      if (sameDelay === undefined) giveBack.set(key, [delivery])
      else sameDelay.push(delivery)
    }
    if (giveBack !== undefined) {
      for (const [delayMs, ds] of giveBack) {
        const released = this.#release(ds, delayMs)
        if (delayMs !== undefined) this.#fetcher.othersFirst(delayMs, released)
      }
    }
    return took
  }

  #offer(delivery: Delivery<D>): 'taken' | Ms {
    try {
      const answer = this.#by.offer(delivery)
      return answer === 'taken' ? 'taken' : answer.giveBackAfterMs
    } catch (error) {
      // A policy that throws must not strand the delivery under its lease.
      this.#failed('offer', error)
      return this.#o.idlePollMs
    }
  }

  /** How many more leases can be kept alive. Runs that wait for other work do not count: that work needs leases, too. */
  #leasesLeft(): number {
    const room = this.#keeper?.room(this.#carried.stages.lent)
    return room ?? Infinity
  }

  // ── running ──

  async #carry(offered: Deliveries<D>, executed: (() => void) | undefined): Promise<void> {
    // A row of handlers that never wait must not keep timers and sockets waiting.
    for (let due = this.#turns.due(); due !== undefined; due = this.#turns.due()) await due
    const deliveries = this.#stillHeld(offered)
    if (deliveries === undefined) {
      executed?.()
      return
    }
    for (const delivery of deliveries) {
      delivery.moveTo('running')
      this.#watch.started?.(delivery)
    }
    let outcomes: readonly R[]
    try {
      const out = this.#execute(deliveries, this.#stopping.signal)
      outcomes = out instanceof Promise ? await out : (out as readonly R[])
    } catch (error) {
      this.#failed('execute', error)
      executed?.()
      await this.#release(deliveries, this.#o.idlePollMs)
      return
    }
    for (const delivery of deliveries) delivery.moveTo('ended')
    executed?.()
    if (deliveries.length === 1) await this.#settle(deliveries[0], outcomes[0] as R)
    else await Promise.all(deliveries.map((delivery, i) => this.#settle(delivery, outcomes[i] as R)))
  }

  /** Leaves out what was lost while it waited for its turn: somebody else has it by now. */
  #stillHeld(deliveries: Deliveries<D>): Deliveries<D> | undefined {
    this.#keeper?.loseOverdue(deliveries)
    if (deliveries.every(isHeld)) return deliveries
    const [first, ...rest] = deliveries.filter(isHeld)
    for (const delivery of deliveries) if (delivery.state === 'lost') this.#lost(delivery)
    return first === undefined ? undefined : [first, ...rest]
  }

  #lost(delivery: Delivery<D>): void {
    this.#summary.lost += 1
    this.#leave(delivery, 'lost')
    this.#watch.lost?.(delivery)
  }

  async #settle(delivery: Delivery<D>, outcome: R): Promise<void> {
    if (delivery.state === 'abandoned') {
      if (this.#isGuarded) void this.#settleLate(delivery, outcome)
      return
    }
    if (delivery.state === 'lost') {
      this.#lost(delivery)
      return
    }
    try {
      const word = await this.#settler.settle(delivery, outcome)
      this.#settleFailuresInARow = 0
      // It may have been abandoned while its settlement was under way: then it has left already.
      if (!this.#carried.has(delivery)) {
        this.#settledLate(delivery, outcome, word)
        return
      }
      if (word === 'lost') {
        this.#lost(delivery)
        return
      }
      this.#summary.settled += 1
      this.#leave(delivery, 'settled')
      this.#watch.settled?.(delivery, outcome)
    } catch (error) {
      this.#unsettled(delivery, outcome, error)
    }
  }

  /** A run that outlived the loop has ended. Its outcome counts if its guard says so. */
  async #settleLate(delivery: Delivery<D>, outcome: R): Promise<void> {
    try {
      this.#settledLate(delivery, outcome, await this.#feed.settle(delivery, outcome, new LazySignal()))
    } catch (error) {
      this.#failed('settle', error)
      this.#watch.unsettled?.(delivery, outcome, error)
    }
  }

  /** It has left the loop already, and is only told of. */
  #settledLate(delivery: Delivery<D>, outcome: R, word: SettleWord): void {
    if (!this.#isGuarded) return
    if (word === 'settled') this.#watch.settled?.(delivery, outcome)
    else this.#watch.lost?.(delivery)
  }

  get #isGuarded(): boolean {
    return this.#feed.lease?.isGuarded === true
  }

  /** It will be delivered again, once its lease has lapsed. */
  #unsettled(delivery: Delivery<D>, outcome: R, error: unknown): void {
    if (!this.#carried.has(delivery)) return
    this.#summary.settleFailures += 1
    this.#leave(delivery, 'abandoned')
    this.#failed('settle', error)
    this.#watch.unsettled?.(delivery, outcome, error)
    this.#settleFailuresInARow += 1
    if (this.#settleFailuresInARow >= this.#o.maxSettleFailures) {
      this.#fail(new SettleError(this.#settleFailuresInARow, { cause: error }))
    }
  }

  /** Its way through the loop is over. */
  #leave(delivery: Delivery<D>, state: Delivery<D>['state']): void {
    delivery.state = state
    this.#keeper?.drop(delivery)
    this.#carried.delete(delivery)
    this.#by.left?.(delivery)
  }

  async #release(deliveries: readonly Delivery<D>[], delayMs: Ms | undefined): Promise<void> {
    const held: Delivery<D>[] = []
    for (const delivery of deliveries) {
      // What somebody else holds by now is not ours to give.
      if (delivery.state === 'lost') this.#lost(delivery)
      else if (delivery.state === 'held') held.push(delivery)
    }
    if (held.length === 0) return
    try {
      await this.#feed.release(held, delayMs)
    } catch (error) {
      // Not given back, so it comes back when its lease lapses: late, not lost.
      this.#failed('release', error)
    }
    for (const delivery of held) {
      if (!this.#carried.has(delivery)) continue
      this.#summary.returned += 1
      this.#leave(delivery, 'returned')
      this.#watch.returned?.(delivery)
    }
  }

  // ── ending ──

  async #drain(isNatural: boolean): Promise<void> {
    if (isNatural) {
      this.#by.finish()
      await Promise.race([this.#empty(), whenAborted(this.#stopping.signal)])
      if (this.#isEmpty) return
    }
    void this.#release(this.#by.drain(), undefined)
    await Promise.race([this.#empty(), this.#deadline.reached])
    if (this.#isEmpty) return
    const late = new ShutdownDeadlineError(this.#deadline.givenMs)
    this.#settler.hurry()
    for (const delivery of this.#carried.all()) delivery.abort(late)
    await this.#within(this.#o.graceMs, this.#empty())
    if (this.#carried.size > 0) await this.#abandon(this.#carried.all())
  }

  async #abandon(left: readonly Delivery<D>[]): Promise<void> {
    const ours = left.filter((one) => isHeld(one) && (this.#o.givesBackWhatRuns || !one.started))
    for (const delivery of left) {
      this.#summary.abandoned += 1
      this.#leave(delivery, 'abandoned')
      this.#watch.abandoned?.(delivery)
    }
    if (ours.length === 0) return
    const givenBack = this.#feed.release(ours).catch((error) => this.#failed('release', error))
    await this.#within(this.#o.graceMs, givenBack)
  }

  /** Waits for `event`, but not for longer than `ms`. */
  async #within(ms: Ms, event: Promise<void>): Promise<void> {
    const enough = new AbortController()
    const waited = this.#o.clock.sleep(ms, enough.signal).catch(() => undefined)
    await Promise.race([event, waited])
    enough.abort()
  }

  get #isEmpty(): boolean {
    return this.#carried.size === 0 && !this.#isFetching
  }

  #empty(): Promise<void> {
    return this.#carried.until(() => this.#isEmpty)
  }

  #fail(error: unknown): void {
    this.#failure ??= { error }
    this.stop()
  }

  #failed(phase: LoopPhase, error: unknown): void {
    this.#watch.failed?.(phase, error)
  }
}

function isHeld<D>(delivery: Delivery<D>): boolean {
  return delivery.state === 'held'
}

function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
