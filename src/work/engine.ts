import { OptionTypeError } from '../core/options.js'
import { keepAlive } from '../core/time/keep-alive.js'
import type { MaybePromise, Ms } from '../core/time/time.js'
import { unreachable } from '../core/unreachable.js'
import type { OpenedLedger } from '../ports/find-ledger.js'
import type { ItemSummary } from '../ports/inspect.js'
import type { ClaimedItem, DeadEnding } from '../ports/item.js'
import type { Ports } from '../ports/ports.js'
import type { ClosedGroup } from '../ports/settlement.js'
import type { Delivery } from '../source/loop/delivery.js'
import type { LoopSummary } from '../source/loop/loop-observer.js'
import { Controls } from './control/controls.js'
import { checkWorks } from './define/input-schema.js'
import type { Registry } from './define/registry.js'
import type { ListFilter, Work, WorkInstanceOptions, WorkState } from './define/work.js'
import { EngineContext } from './engine-context.js'
import { Enqueuer } from './enqueue/enqueue.js'
import type { ResolvedSystemOptions } from './options.js'
import type { ScheduleConfig } from './schedule/config.js'
import { Schedules } from './schedule/schedules.js'
import type { RunPendingSettlement } from './settle/pending-settlement.js'
import { ClosedGroupReporter } from './settle/report-closed-groups.js'
import { type Handle, Handles } from './wait/handles.js'
import { FoundItem } from './wait/item-handle.js'
import { listItems } from './wait/list-items.js'
import { statesOf } from './wait/states.js'
import type { ActiveWork } from './worker/active-items.js'
import { measureQueueDepths } from './worker/backlog.js'
import { Health, type HealthOptions, type WorkHealth } from './worker/health.js'
import { AlreadyWorkingError, type IdleRun, idleTimes, RunTally, type UntilIdleOptions } from './worker/until-idle.js'
import { watchUnused, workWasTaken } from './worker/unused-worker.js'
import { WorkerLoop } from './worker/worker-loop.js'

/**
 * Carries items from enqueue to settlement. It decides nothing itself: pure functions decide what happens to an item
 * (`enqueueSettlement`, `route`, `settle`), doers when it runs, and the ledger what is written.
 */
export class Engine {
  readonly controls: Controls
  readonly #context: EngineContext
  readonly #enqueuer: Enqueuer
  readonly #handles: Handles
  readonly #groups: ClosedGroupReporter
  readonly #loop: WorkerLoop
  readonly #schedules: Schedules
  readonly #health: Health
  #running: Promise<LoopSummary | undefined> | undefined
  /** The loop ended by itself: nothing claims any more, though it was not stopped. */
  #hasEnded = false
  #tally: RunTally | undefined
  #stopping: Promise<void> | undefined
  #hold: (() => void) | undefined
  #isWanted = false
  #wasStarted = false
  #endWatch: (() => void) | undefined

  constructor(o: ResolvedSystemOptions, ports: Ports, opened: OpenedLedger, registry: Registry) {
    const context = new EngineContext(o, ports, opened, registry)
    this.#context = context
    this.controls = new Controls(context, (view, error, closed) => this.#endedUnrun(view, 'cancelled', error, closed))
    this.#handles = new Handles(context, this.controls, this.#accepted)
    this.#groups = new ClosedGroupReporter(context, (...closed) => this.#handles.groupClosed(...closed))
    this.#loop = new WorkerLoop(context, {
      settled: (delivery, settling) => this.#settled(delivery, settling),
      endedUnrun: (view, error, closed) => this.#endedUnrun(view, 'unroutable', error, closed),
      closed: (group) => this.#groups.closed(group),
      moved: () => {
        if (context.recorder.active.size > 0) workWasTaken()
        this.#moved()
      },
    })
    this.#schedules = new Schedules(context, this.#accepted)
    this.#health = new Health(context)
    this.#enqueuer = new Enqueuer(context, (...held) => this.#loop.runSkippingQueue(...held))
  }

  enqueue(work: Work, options: WorkInstanceOptions | undefined): Handle {
    return this.#handles.handle(this.#enqueuer.enqueue(work, options))
  }

  /** An item that any process has enqueued. */
  handle(type: string, id: string): FoundItem {
    return new FoundItem(this.#context, this.#handles, type, id)
  }

  /** Makes `stop` and `close` wait for enqueues that are still to be made: as many as `count` returns. */
  waitFor(enqueues: Promise<unknown>, count: () => number): void {
    this.#handles.waitFor(enqueues, count)
  }

  /** Backpressure for callers who enqueue in bulk: undefined where there is room, otherwise what to await first. */
  whenRoom(): Promise<void> | undefined {
    return this.#context.commits.whenRoom()
  }

  schedule(config: ScheduleConfig): () => void {
    return this.#schedules.add(config)
  }

  /** Throws, or rejects with, the first of these whose input is not valid. */
  checkInputs(works: readonly Work[]): MaybePromise<void> {
    return checkWorks(works, (work) => this.#context.registry.schemaOf(work))
  }

  start(): void {
    const { o, registry, worker } = this.#context
    this.#isWanted = true
    // A start during a stop takes effect afterwards: two loops at the same time would be two workers.
    if (this.#running !== undefined || this.#stopping !== undefined) return
    this.#handles.open()
    this.#schedules.start()
    o.log.started(registry.types, worker.queues)
    this.#hasEnded = false
    const run = this.#loop.run().catch((error) => {
      this.#context.failed(error, 'queue')
      return undefined
    })
    this.#running = run
    void run.then(() => {
      this.#hasEnded = this.#running === run
    })
    this.#holdProcess()
    if (!this.#wasStarted) this.#watchUnused()
    this.#wasStarted = true
  }

  /** Works until nothing is left that is due, or until its time is over; then it stops. */
  async runUntilIdle(options?: UntilIdleOptions): Promise<IdleRun> {
    const { o } = this.#context
    const { claimMs, drainMs } = idleTimes(options, o.stopDrain)
    const activity = this.#activity
    if (activity === 'working' || activity === 'stopping') throw new AlreadyWorkingError()
    const tally = new RunTally()
    this.#tally = tally
    // Nothing else may keep the process while the loop waits for an answer or for its handlers.
    const release = o.clock.isReal === true && o.given.keepAlive !== false ? keepAlive() : undefined
    const timer = new AbortController()
    try {
      const idle = this.#loop.whenIdle()
      this.start()
      const run = this.#running
      const timeUp =
        claimMs === Infinity
          ? []
          : [o.clock.sleep(claimMs, timer.signal).then(() => 'time' as const, () => 'time' as const)] // biome-ignore format: one line
      const ended = await Promise.race([
        idle.then(() => 'idle' as const),
        Promise.resolve(run).then(() => 'stopped' as const),
        ...timeUp,
      ])
      await this.stop(ended === 'time' ? drainMs : undefined)
      const summary = await run
      return tally.result(ended, summary === undefined ? 0 : summary.returned + summary.abandoned + summary.lost)
    } finally {
      timer.abort()
      release?.()
      this.#tally = undefined
    }
  }

  health(options?: HealthOptions): Promise<WorkHealth> {
    return this.#health.ask(options, () => ({ activity: this.#activity, hasEnded: this.#hasEnded }))
  }

  get #activity(): WorkHealth['activity'] {
    if (this.#stopping !== undefined) return 'stopping'
    if (this.#running !== undefined) return 'working'
    return this.#wasStarted ? 'stopped' : 'adding'
  }

  /** `drainMs`: how long running work may go on. Default: `stopDrain`. */
  stop(drainMs?: Ms): Promise<void> {
    this.#isWanted = false
    this.#endWatch?.()
    this.#stopping ??= this.#stop(drainMs).finally(() => {
      this.#stopping = undefined
      if (this.#isWanted) this.start()
    })
    return this.#stopping
  }

  /** Asks the queues for their sizes, and sets the metrics that show them. */
  measure(): Promise<void> {
    return measureQueueDepths(this.#context)
  }

  active(): ActiveWork[] {
    return this.#context.recorder.active.list()
  }

  states(ids: readonly string[]): Promise<readonly (WorkState | undefined)[]> {
    if (!Array.isArray(ids) || !ids.every((id) => typeof id === 'string'))
      throw new OptionTypeError('states(ids)', 'a list of ids', ids)
    return statesOf(this.#context, ids)
  }

  list(filter?: ListFilter): Promise<WorkState[]> {
    return listItems(this.#context, filter)
  }

  async #stop(givenDrainMs: Ms | undefined): Promise<void> {
    const running = this.#running
    this.#running = undefined
    const { o, lost } = this.#context
    const drainMs = givenDrainMs ?? o.stopDrain
    const enqueuesAnswered = this.#context.enqueuesAnswered('stop', givenDrainMs)
    await Promise.all([this.#schedules.stop(drainMs), this.#loop.stop(drainMs, enqueuesAnswered)])
    await running
    // What handlers and schedules enqueued as they ended.
    await this.#context.enqueuesAnswered('stop', givenDrainMs)
    lost.report()
    if (running !== undefined) o.log.stopped()
    this.#handles.close()
    this.#holdProcess()
  }

  #settled(delivery: Delivery<ClaimedItem>, settling: RunPendingSettlement): void {
    const { summary, ran } = settling
    const { envelope } = ran.item
    const at = this.#context.now()
    this.#context.recorder.settled(delivery, settling, at)
    this.#tally?.count(summary)
    if (ran.outcome.kind === 'returned') {
      for (const { item } of ran.outcome.children) this.#context.remember(item, { status: 'pending' })
    }
    const { known } = this.#context
    const remember = (state: Partial<WorkState> & Pick<WorkState, 'status'>) => {
      if (known !== undefined) this.#context.remember(envelope, { runAt: ran.startedAt, ...state })
    }
    switch (summary.kind) {
      case 'succeeded':
        remember({ status: 'success', endAt: at })
        this.#handles.itemEnded(envelope.id, { result: summary.result })
        break
      case 'dead':
      case 'expired':
      case 'cancelled': {
        const { error } = summary
        const ending = summary.kind === 'dead' ? summary.ending : summary.kind
        remember({ status: 'dead', error, ending, endAt: at })
        this.#handles.itemEnded(envelope.id, {
          error,
          ending,
          class: summary.kind === 'dead' ? summary.class : undefined,
        })
        break
      }
      case 'retried':
        remember({ status: 'pending', attempt: envelope.attempt + 1, startAt: at + summary.delayMs })
        break
      case 'deferred':
        remember({ status: 'pending', startAt: summary.runAt })
        break
      case 'released':
        remember({ status: 'pending' })
        break
      default:
        unreachable(summary)
    }
    this.#groups.settled(settling, at)
    this.#moved()
  }

  /** The item was waiting, and this system ended it: by a cancel, or because no worker knows its type. */
  #endedUnrun({ envelope }: ItemSummary, ending: DeadEnding, error: string, closed: readonly ClosedGroup[]): void {
    this.#context.remember(envelope, { status: 'dead', error, ending, endAt: this.#context.now() })
    this.#handles.itemEnded(envelope.id, { error, ending })
    for (const group of closed) this.#groups.closed(group)
    this.#holdProcess()
  }

  readonly #accepted = (): void => this.#moved()

  /** What this process holds or owes may have changed. */
  #moved(): void {
    this.#loop.moved()
    this.#holdProcess()
  }

  /** Where work outlives the process, other processes may have enqueued it: a worker that ends early has missed it. */
  #watchUnused(): void {
    const { o, ledger, registry } = this.#context
    const isDurable = ledger.openCount === undefined
    if (o.clock.isReal !== true || o.given.keepAlive !== undefined || !isDurable || registry.types.length === 0) return
    this.#endWatch = watchUnused(registry.types)
  }

  /** The process stays while something runs, or while it holds work that would be lost with it (`Ledger.openCount`). */
  #holdProcess(): void {
    const { o, ledger, recorder } = this.#context
    if (o.clock.isReal !== true || o.given.keepAlive === false) return
    const isOwing = () => recorder.active.size > 0 || (ledger.openCount?.() ?? 0) > 0
    if (this.#running !== undefined && (o.given.keepAlive === true || isOwing())) this.#hold ??= keepAlive()
    else {
      this.#hold?.()
      this.#hold = undefined
    }
  }
}
