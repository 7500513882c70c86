import { EventLoopTurns } from '../../core/time/event-loop-turns.js'
import { isPromise, type MaybePromise, type Ms } from '../../core/time/time.js'
import type { Admission } from './admission.js'
import { Deadline } from './deadline.js'
import { type Deliveries, Delivery } from './delivery.js'
import { SettleError, ShutdownDeadlineError } from './errors.js'
import type { Feed, Pulled, SettleResult } from './feed.js'
import { type FetchEnd, Fetcher } from './fetcher.js'
import { InFlight } from './in-flight.js'
import { LeaseKeeper } from './lease-keeper.js'
import type { LoopObserver, LoopPhase, LoopSummary } from './loop-observer.js'
import type { LoopOptions } from './loop-options.js'
import { Settler } from './settler.js'

/**
 * Does the work of one run and yields one outcome per delivery, in order. It does not throw: a failure is an outcome.
 * `stopping` aborts when the run begins to end, for handlers that wait.
 */
export type Execute<D, R> = (deliveries: Deliveries<D>, stopping: AbortSignal) => MaybePromise<readonly R[]>

/** One run of the loop over one feed. */
export class LoopRun<D, R> {
  readonly #o: LoopOptions
  readonly #watch: LoopObserver<D, R>
  readonly #feed: Feed<D, R>
  readonly #by: Admission<D>
  readonly #execute: Execute<D, R>
  readonly #fetcher: Fetcher<D, R>
  readonly #keeper: LeaseKeeper<D, R> | undefined
  readonly #settler: Settler<D, R>
  readonly #turns: EventLoopTurns
  readonly #stopping = new AbortController()
  readonly #inFlight = new InFlight<D>()
  readonly #summary: LoopSummary = { received: 0, settled: 0, settleFailures: 0, returned: 0, lost: 0, abandoned: 0 }
  /** How long running work may still go on, once the run is stopping. */
  readonly #deadline: Deadline
  #isFetching = false
  #settleFailuresInARow = 0
  #failure: { readonly error: unknown } | undefined

  constructor(
    options: LoopOptions,
    watch: LoopObserver<D, R>,
    feed: Feed<D, R>,
    by: Admission<D>,
    execute: Execute<D, R>,
  ) {
    this.#o = options
    this.#watch = watch
    this.#feed = feed
    this.#by = by
    this.#execute = execute
    this.#deadline = new Deadline(options.clock)
    this.#turns = options.turns ?? new EventLoopTurns(options.clock)
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
      capacity: () => by.capacity(this.#inFlight.stages, this.#leasesLeft()),
      admit: (pulled) => this.#admit(pulled),
      turns: this.#turns,
    })
    this.#settler = new Settler(options.clock, feed, options.settle, {
      settled: (delivery, outcome, result) => {
        try {
          this.#settled(delivery, outcome, result)
        } catch (error) {
          // An observer that throws must not affect the other outcomes of the same batch.
          this.#failed('settle', error)
        }
      },
      unsettled: (delivery, outcome, error) => this.#unsettled(delivery, outcome, error),
      failedTry: (delivery, error) => {
        this.#failed('settle', error)
        this.#watch.settleRetry?.(delivery)
      },
    })
  }

  async go(stop: AbortSignal | undefined): Promise<LoopSummary> {
    const onStop = () => this.stop()
    stop?.addEventListener('abort', onStop, { once: true })
    if (stop?.aborted) this.stop()
    this.#by.attach((deliveries, executed, settled) => this.#run(deliveries, executed, settled))
    const wake = () => this.#fetcher.wake()
    const offReady = this.#feed.onReady?.(wake)
    const offRoom = this.#by.onRoom(wake)
    try {
      // A fetch that ignores the stop must not delay the drain: what it still brings is released.
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

  /** Takes effect immediately: nothing is fetched or started after it. A second stop can only shorten the time left. */
  stop(drainMs: Ms = this.#o.drainMs): void {
    this.#deadline.within(drainMs)
    if (this.#isStopping) return
    this.#stopping.abort()
    // Unlimited tries end with the run; a limited number is waited for.
    if (this.#o.settle.attempts === Infinity) this.#settler.tryOnceMore()
    this.#fetcher.wake()
  }

  /**
   * Parts with some deliveries, as when a partition goes to another consumer: what has not started is released, and what
   * runs may end in time. After that its lease counts as lost, since another consumer may hold it.
   */
  async withdraw(isConcerned: (item: D) => boolean): Promise<void> {
    void this.#release(this.#by.withdraw?.(isConcerned) ?? [], undefined)
    const concerned = this.#inFlight.all().filter(({ item }) => isConcerned(item))
    const gone = this.#inFlight.until(() => !concerned.some((delivery) => this.#inFlight.has(delivery)))
    await this.#within(this.#o.drainMs, gone)
    for (const delivery of concerned) delivery.lose()
  }

  async #fetch(): Promise<FetchEnd> {
    this.#isFetching = true
    const end = await this.#fetcher.run(this.#stopping.signal)
    this.#isFetching = false
    this.#inFlight.recheck()
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
    let toRelease: Map<Ms | undefined, Delivery<D>[]> | undefined
    let took = false
    for (const item of items) {
      const delivery = new Delivery(item, now, askedMs, this.#inFlight.stages)
      this.#summary.received += 1
      this.#inFlight.add(delivery)
      // What came so late that another worker may hold it by now is not run. It is released if it is still ours.
      const isTurnedAway = this.#isStopping || this.#keeper?.isOverdue(delivery, now) === true
      if (!isTurnedAway) this.#keeper?.hold(delivery)
      this.#watch.pulled?.(delivery)
      const delayMs = isTurnedAway ? 'now' : this.#offer(delivery)
      if (delayMs === 'taken') {
        took = true
        continue
      }
      toRelease ??= new Map()
      const key = delayMs === 'now' ? undefined : delayMs
      const sameDelay = toRelease.get(key)
      if (sameDelay === undefined) toRelease.set(key, [delivery])
      else sameDelay.push(delivery)
    }
    if (toRelease !== undefined) {
      for (const [delayMs, ds] of toRelease) {
        const released = this.#release(ds, delayMs)
        if (delayMs !== undefined) this.#fetcher.othersFirst(delayMs, released)
      }
    }
    return took
  }

  #offer(delivery: Delivery<D>): 'taken' | Ms {
    try {
      const answer = this.#by.offer(delivery)
      return answer === 'taken' ? 'taken' : answer.releaseAfterMs
    } catch (error) {
      // A policy that throws must not strand the delivery under its lease.
      this.#failed('offer', error)
      return this.#o.idlePollMs
    }
  }

  /** How many more leases can be kept alive. Runs that wait for other work do not count: that work needs leases, too. */
  #leasesLeft(): number {
    const room = this.#keeper?.room(this.#inFlight.stages.lent)
    return room ?? Infinity
  }

  // ── running ──

  /** Where nothing has to be waited for, a run goes from its start to the backend's batch without a promise. */
  #run(offered: Deliveries<D>, executed: (() => void) | undefined, settled: (() => void) | undefined): void {
    // Many handlers in a row that never wait must not keep timers and sockets waiting.
    const due = this.#turns.due()
    if (due !== undefined) {
      void due.then(() => this.#run(offered, executed, settled))
      return
    }
    const held = this.#stillHeld(offered)
    const begun = held === undefined ? undefined : this.#begun(held)
    if (isPromise(begun)) void begun.then((deliveries) => this.#start(deliveries, executed, settled))
    else this.#start(begun, executed, settled)
  }

  #start(
    deliveries: Deliveries<D> | undefined,
    executed: (() => void) | undefined,
    settled: (() => void) | undefined,
  ): void {
    if (deliveries === undefined) {
      executed?.()
      settled?.()
      return
    }
    if (settled !== undefined) callAfterAll(deliveries, settled)
    for (const delivery of deliveries) {
      delivery.moveTo('running')
      this.#watch.started?.(delivery)
    }
    let outcomes: MaybePromise<readonly R[]>
    try {
      outcomes = this.#execute(deliveries, this.#stopping.signal)
    } catch (error) {
      this.#notExecuted(deliveries, error, executed)
      return
    }
    if (!isPromise(outcomes)) {
      this.#executed(deliveries, outcomes, executed)
      return
    }
    outcomes.then(
      (all) => this.#executed(deliveries, all, executed),
      (error: unknown) => this.#notExecuted(deliveries, error, executed),
    )
  }

  #executed(deliveries: Deliveries<D>, outcomes: readonly R[], executed: (() => void) | undefined): void {
    for (const delivery of deliveries) delivery.moveTo('ended')
    executed?.()
    for (let i = 0; i < deliveries.length; i += 1) this.#settle(deliveries[i]!, outcomes[i] as R)
  }

  #notExecuted(deliveries: Deliveries<D>, error: unknown, executed: (() => void) | undefined): void {
    this.#failed('execute', error)
    executed?.()
    void this.#release(deliveries, this.#o.idlePollMs).then(() => {
      for (const delivery of deliveries) delivery.onSettled?.()
    })
  }

  /** Leaves out those whose start was refused or could not be counted: they are not run. */
  #begun(deliveries: Deliveries<D>): MaybePromise<Deliveries<D> | undefined> {
    if (this.#feed.begin === undefined) return deliveries
    const withoutLost = (held: readonly boolean[]): Deliveries<D> | undefined => {
      for (const [i, delivery] of deliveries.entries()) if (held[i] === false) delivery.lose()
      return this.#stillHeld(deliveries)
    }
    const notCounted = async (error: unknown): Promise<undefined> => {
      this.#failed('begin', error)
      // It would come back immediately, and so would the call to the backend that just failed.
      await this.#o.clock.sleep(this.#o.idlePollMs, this.#stopping.signal).catch(() => undefined)
      await this.#release(deliveries, undefined)
    }
    try {
      const held = this.#feed.begin(deliveries)
      return isPromise(held) ? held.then(withoutLost, notCounted) : withoutLost(held)
    } catch (error) {
      return notCounted(error)
    }
  }

  /** Leaves out what was lost while it waited for its turn: another worker has it by now. */
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

  #settle(delivery: Delivery<D>, outcome: R): void {
    if (delivery.state === 'lost') {
      this.#lost(delivery)
      delivery.onSettled?.()
    } else if (delivery.state !== 'abandoned' || this.#isGuarded) this.#settler.settle(delivery, outcome)
    else delivery.onSettled?.()
  }

  #settled(delivery: Delivery<D>, outcome: R, result: SettleResult): void {
    this.#settleFailuresInARow = 0
    // It may have been abandoned before, and has left the loop then: only the observer is notified, if the guard has decided.
    const isHere = this.#inFlight.has(delivery)
    if (result === 'lost') {
      if (isHere) this.#lost(delivery)
      else if (this.#isGuarded) this.#watch.lost?.(delivery)
    } else if (isHere) {
      this.#summary.settled += 1
      this.#leave(delivery, 'settled')
      this.#watch.settled?.(delivery, outcome)
    } else if (this.#isGuarded) this.#watch.settled?.(delivery, outcome)
    delivery.onSettled?.()
  }

  get #isGuarded(): boolean {
    return this.#feed.lease?.isGuarded === true
  }

  /** It will be delivered again, once its lease has lapsed. */
  #unsettled(delivery: Delivery<D>, outcome: R, error: unknown): void {
    delivery.onSettled?.()
    if (!this.#inFlight.has(delivery)) {
      this.#failed('settle', error)
      this.#watch.unsettled?.(delivery, outcome, error)
      return
    }
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
    this.#inFlight.delete(delivery)
    this.#by.left?.(delivery)
  }

  async #release(deliveries: readonly Delivery<D>[], delayMs: Ms | undefined): Promise<void> {
    const held: Delivery<D>[] = []
    for (const delivery of deliveries) {
      // What another worker holds by now is not ours to release.
      if (delivery.state === 'lost') this.#lost(delivery)
      else if (delivery.state === 'held') held.push(delivery)
    }
    if (held.length === 0) return
    try {
      await this.#feed.release(held, delayMs)
    } catch (error) {
      // Not released, so it comes back when its lease lapses: late, not lost.
      this.#failed('release', error)
    }
    for (const delivery of held) {
      if (!this.#inFlight.has(delivery)) continue
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
    this.#settler.tryOnceMore()
    for (const delivery of this.#inFlight.all()) delivery.abort(late)
    await this.#within(this.#o.graceMs, this.#empty())
    if (this.#inFlight.size > 0) await this.#abandon(this.#inFlight.all())
  }

  async #abandon(left: readonly Delivery<D>[]): Promise<void> {
    const ours = left.filter((one) => isHeld(one) && (this.#o.givesBackWhatRuns || !one.started))
    for (const delivery of left) {
      this.#summary.abandoned += 1
      this.#leave(delivery, 'abandoned')
      this.#watch.abandoned?.(delivery)
    }
    if (ours.length === 0) return
    const released = this.#feed.release(ours).catch((error) => this.#failed('release', error))
    await this.#within(this.#o.graceMs, released)
  }

  /** Waits for `event`, but not for longer than `ms`. */
  async #within(ms: Ms, event: Promise<void>): Promise<void> {
    const enough = new AbortController()
    const waited = this.#o.clock.sleep(ms, enough.signal).catch(() => undefined)
    await Promise.race([event, waited])
    enough.abort()
  }

  get #isEmpty(): boolean {
    return this.#inFlight.size === 0 && !this.#isFetching
  }

  #empty(): Promise<void> {
    return this.#inFlight.until(() => this.#isEmpty)
  }

  #fail(error: unknown): void {
    this.#failure ??= { error }
    this.stop()
  }

  #failed(phase: LoopPhase, error: unknown): void {
    this.#watch.failed?.(phase, error)
  }
}

/** Calls `settled` once all of these are. */
function callAfterAll<D>(deliveries: Deliveries<D>, settled: () => void): void {
  let left = deliveries.length
  const oneSettled = () => {
    left -= 1
    if (left === 0) settled()
  }
  for (const delivery of deliveries) delivery.onSettled = oneSettled
}

function isHeld<D>(delivery: Delivery<D>): boolean {
  return delivery.state === 'held'
}

function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
