import { MillraceError } from '../../core/error.js'
import { doublingDelay } from '../../core/retry/backoff.js'
import { type At, type MaybePromise, type Ms, whenHere } from '../../core/time/time.js'
import type { ItemSummary } from '../../ports/inspect.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { ClaimReply } from '../../ports/ledger.js'
import type { ClosedGroup } from '../../ports/settlement.js'
import { ledgerFeed } from '../../source/feeds/ledger-feed.js'
import type { Deliveries, Delivery } from '../../source/loop/delivery.js'
import type { Feed } from '../../source/loop/feed.js'
import { Loop } from '../../source/loop/loop.js'
import type { LoopObserver, LoopSummary } from '../../source/loop/loop-observer.js'
import type { Batch } from '../define/define-batch-work.js'
import type { WorkDefinition } from '../define/work.js'
import type { EngineContext } from '../engine-context.js'
import { dependentsResults } from '../run/dependents-results.js'
import { Overruns } from '../run/overruns.js'
import { ProgressReporter } from '../run/progress.js'
import { HandlerRunner } from '../run/run-handler.js'
import { RunPendingSettlement } from '../settle/pending-settlement.js'
import { UnwrittenOutcomes } from '../settle/unwritten-outcomes.js'
import { statesOf } from '../wait/states.js'
import { type Backlog, openBacklog } from './backlog.js'
import { CrashSuspects } from './crash-suspects.js'
import { DeliveryRouter } from './delivery-router.js'
import { DoerAdmission } from './doer-admission.js'
import { EarlyHeartbeat } from './early-heartbeat.js'
import { EventLoopDelay } from './event-loop-delay.js'
import { redriveWhenIdle } from './feed-back-dead-letters.js'
import { SkipQueueRuns } from './skip-queue.js'
import { UnknownTypes } from './unknown-types.js'
import { WorkerRegistration } from './worker-registration.js'

/** A body on the queue is not an envelope. It was removed, because no worker could ever run it. */
class UnreadableBodyError extends MillraceError {
  constructor(queue: string, body: string) {
    super('UNREADABLE_BODY', `A body on queue "${queue}" is not an envelope and was dropped: ${body.slice(0, 200)}`, {
      facts: { queue },
    })
  }
}

/** How long `ctx.claim` remembers that a key was won. */
export const CLAIM_TTL_MS = 86_400_000

/** How long a stop waits for handlers whose signals have fired. */
const STOP_GRACE_MS = 500

/** What the loop reports to the system it belongs to. */
export interface WorkerLoopEvents {
  settled(delivery: Delivery<ClaimedItem>, settling: RunPendingSettlement): void
  /** An item that waited has ended as unroutable, with this error, and these groups with it. */
  endedUnrun(view: ItemSummary, error: string, closed: readonly ClosedGroup[]): void
  /** A group closed without a settlement of ours: a claim completed what a dead process had begun. */
  closed(group: ClosedGroup): void
  /** A claim was answered, or an item left: what this process owes may have changed. */
  moved(): void
}

/** The consume loop with everything that makes it a worker: the ledger as feed, doers as policy, handlers to run. */
export class WorkerLoop {
  readonly #context: EngineContext
  readonly #events: WorkerLoopEvents
  readonly #runner: HandlerRunner
  readonly #router: DeliveryRouter
  readonly #loop: Loop<ClaimedItem, RunPendingSettlement>
  readonly #feed: Feed<ClaimedItem, RunPendingSettlement>
  readonly #skipQueue: SkipQueueRuns
  readonly #backlog: Backlog
  readonly #eventLoopDelay: EventLoopDelay
  readonly #registration: WorkerRegistration
  readonly #overruns: Overruns
  readonly #heartbeat: EarlyHeartbeat
  readonly #suspects: CrashSuspects
  readonly #unknownTypes: UnknownTypes | undefined
  readonly #unwritten: UnwrittenOutcomes
  #doers: DoerAdmission | undefined
  #skipQueueRun: Promise<unknown> | undefined
  /** Pulls now. */
  #wake: (() => void) | undefined
  /** Called when a pull has found that nothing is left that is due, while this process held nothing. */
  #onIdle: (() => void) | undefined
  #hasFailedQueue = false

  constructor(context: EngineContext, events: WorkerLoopEvents) {
    const { o, ledger, failed } = context
    this.#context = context
    this.#events = events
    this.#backlog = openBacklog(context)
    this.#registration = new WorkerRegistration(context)
    this.#eventLoopDelay = new EventLoopDelay(context)
    this.#overruns = new Overruns(context)
    this.#suspects = new CrashSuspects(context)
    this.#unwritten = new UnwrittenOutcomes(o.visibility)
    this.#router = new DeliveryRouter(context, this.#unwritten)
    const isSettling = (delivery: Delivery<ClaimedItem>) => delivery.outcome !== undefined
    const endUnstarted = (delivery: Delivery<ClaimedItem>) => this.#doers?.endUnstarted(delivery)
    this.#heartbeat = new EarlyHeartbeat({ context, isSettling, endUnstarted })
    const send = (progress: ReadonlyMap<Delivery<ClaimedItem>, string>) =>
      this.#heartbeat.touch([...progress.keys()], progress)
    const progress = new ProgressReporter({ context, isSettling, send })
    this.#runner = new HandlerRunner({
      context,
      services: {
        states: (ids) => statesOf(context, ids),
        results: (item, of) => dependentsResults(context, item, of),
        claim: async (key) => context.ports.store.setIfNotExists(`${o.prefix}${key}`, context.worker.id, CLAIM_TTL_MS),
        progress: (delivery, value) => progress.report(delivery, value),
      },
      overran: (item, handling) => this.#overruns.add(item, handling),
      started: (delivery, at) => this.#started(delivery, at),
    })
    this.#unknownTypes = UnknownTypes.of(context, (view, error, closed) => events.endedUnrun(view, error, closed))
    const feed = redriveWhenIdle(
      context,
      ledgerFeed<RunPendingSettlement>({
        ledger,
        outcomes: context.outcomes,
        queues: context.worker.queues,
        leaseMs: o.visibility,
        heartbeatMs: o.heartbeat,
        worker: context.worker,
        record: () => context.workerRecord(),
        clock: o.clock,
        // Plain queues hand out anything: what finds no room is returned.
        rooms: () => (ledger.atomic ? this.#doers?.rooms : undefined),
        retryQueueMs: o.pollInterval,
        onReply: (reply, askedMs) => this.#onClaimReply(reply, askedMs),
      }),
    )
    this.#feed = this.#observed(feed)
    this.#skipQueue = new SkipQueueRuns(
      this.#feed,
      () => o.clock.monotonic(),
      (error) => failed(error, 'queue'),
    )
    const fetchDelays = { baseMs: o.pollInterval, maxMs: Math.min(30_000, 1_024 * o.pollInterval) }
    this.#loop = new Loop<ClaimedItem, RunPendingSettlement>(
      {
        name: 'work',
        clock: o.clock,
        turns: context.turns,
        // An outcome is kept until it is written: a handler never runs again because a write failed.
        settle: { attempts: Infinity, baseMs: 100, maxMs: 5_000, timeoutMs: Infinity },
        maxSettleFailures: Infinity,
        fetchRetry: { attempts: Infinity, delayMs: (failures) => doublingDelay(failures - 1, fetchDelays) },
        drainMs: o.stopDrain,
        graceMs: STOP_GRACE_MS,
        givesBackWhatRuns: false,
        idlePollMs: o.pollInterval,
      },
      this.#observer(),
    )
  }

  /**
   * Resolves as soon as nothing is left that this worker could run now: it holds nothing, no enqueue is on its way, and a claim that
   * was made after that found nothing, while it had room for each of its types.
   */
  whenIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve
    })
  }

  /** Something has left: if it was the last, what follows is found now, and not by the next poll. */
  moved(): void {
    if (this.#onIdle !== undefined && this.#isQuiet) this.#wake?.()
  }

  get #isQuiet(): boolean {
    const { recorder, unanswered } = this.#context
    return recorder.active.size === 0 && unanswered.isEmpty
  }

  /** A room of 0 leaves work behind that is due: a rate limit, for one, has a room again in a moment. */
  get #hasRoomForAll(): boolean {
    return this.#doers?.rooms.every(({ types, max }) => max > 0 || types.length === 0) === true
  }

  /** The feed, with its pulls reported to `health()` and to who waits for idleness. */
  #observed(feed: Feed<ClaimedItem, RunPendingSettlement>): Feed<ClaimedItem, RunPendingSettlement> {
    const { pulse } = this.#context
    return {
      ...feed,
      pull: async (max, signal) => {
        const wasQuiet = this.#isQuiet && this.#hasRoomForAll
        this.#hasFailedQueue = false
        let isAnswered = false
        pulse.pullBegan()
        try {
          const pulled = await feed.pull(max, signal)
          isAnswered = true
          const isEmpty = pulled.items.length === 0 && !pulled.more && !signal.aborted && !this.#hasFailedQueue
          if (isEmpty && wasQuiet && this.#isQuiet) this.#onIdle?.()
          return pulled
        } finally {
          pulse.pullEnded(isAnswered)
        }
      },
      onReady: (wake) => {
        this.#wake = wake
        const off = feed.onReady?.(wake)
        return () => {
          this.#wake = undefined
          off?.()
        }
      },
    }
  }

  /** Works until it is stopped. */
  run(): Promise<LoopSummary> {
    this.#context.pulse.began()
    this.#doers = new DoerAdmission({
      context: this.#context,
      router: this.#router,
      asked: (capacity) => {
        if (capacity <= 0) this.#backlog.behind(true)
      },
      placeFree: (item) => this.#overruns.placeFree(item),
    })
    this.#heartbeat.open()
    this.#registration.start()
    return this.#loop.run(this.#feed, this.#doers, (deliveries, stopping) => this.#executeAll(deliveries, stopping))
  }

  /**
   * Holds an item that this process has leased since its enqueue, in a second run of the same loop. The function that it returns
   * runs the item: call it when the item's turn has come. It resolves when the handler has ended, or the item was returned.
   */
  runSkippingQueue(item: ClaimedItem, askedMs: Ms, left: () => void): () => Promise<void> {
    const { recorder, doers, lending, failed } = this.#context
    this.#registration.start()
    this.#skipQueueRun ??= this.#loop
      .run(
        this.#skipQueue.feed(),
        this.#skipQueue.admission((delivery) => recorder.taken(delivery)),
        ([delivery], stopping) => this.#execute(delivery, stopping),
      )
      .catch((error) => failed(error, 'queue'))
    this.#skipQueue.hold(item, askedMs, left)
    this.#heartbeat.open()
    const doer = doers.of(item.envelope.type)
    return () =>
      new Promise((leave) => {
        const free = lending.openFor(item, doer, leave)
        void this.#skipQueue
          .run(item)
          .then(() => this.#overruns.placeFree(item))
          .then(free)
      })
  }

  /** Ends its runs. `enqueuesAnswered`: the backend has answered what was enqueued before. */
  async stop(drainMs: Ms, enqueuesAnswered: Promise<void>): Promise<void> {
    const { clock } = this.#context.o
    const untilMs = clock.monotonic() + drainMs
    const drain = async () => {
      do await this.#loop.stop(Math.max(0, untilMs - clock.monotonic()))
      while (this.#loop.isRunning)
    }
    await Promise.all([drain(), enqueuesAnswered])
    // Work that skips the queue, and was accepted meanwhile, has started another run of the loop.
    await drain()
    await this.#skipQueueRun
    this.#skipQueueRun = undefined
    this.#heartbeat.close()
    this.#backlog.behind(false)
    this.#eventLoopDelay.close()
    await this.#unknownTypes?.stop()
    await this.#registration.remove()
  }

  #execute(delivery: Delivery<ClaimedItem>, stopping: AbortSignal): MaybePromise<readonly RunPendingSettlement[]> {
    return whenHere(this.#outcome(delivery, stopping), (settling) => [this.#settling(delivery, settling)])
  }

  /** A run of several deliveries is a batch of one type. */
  #executeAll(
    deliveries: Deliveries<ClaimedItem>,
    stopping: AbortSignal,
  ): MaybePromise<readonly RunPendingSettlement[]> {
    const [first] = deliveries
    if (deliveries.length === 1) return this.#execute(first, stopping)
    const def = this.#context.registry.find(first.item.envelope.type)
    return def?.batch === undefined ? this.#execute(first, stopping) : this.#executeBatch(deliveries, def, def.batch)
  }

  async #executeBatch(
    deliveries: Deliveries<ClaimedItem>,
    def: WorkDefinition<string, never>,
    batch: Batch<never>,
  ): Promise<readonly RunPendingSettlement[]> {
    const ends = deliveries.map((delivery) => this.#end(delivery))
    const able = deliveries.filter((_, i) => ends[i] === undefined)
    const areMarked = await Promise.all(able.map((delivery) => this.#suspects.mark(delivery)))
    const running = able.filter((_, i) => areMarked[i])
    const ran = running.length === 0 ? [] : await this.#runner.runBatch(running, def, batch)
    const settlings = deliveries.map((delivery, i) => {
      return ends[i] ?? ran[running.indexOf(delivery)] ?? this.#putOff(delivery)
    })
    return deliveries.map((delivery, i) => this.#settling(delivery, settlings[i]!))
  }

  #settling(delivery: Delivery<ClaimedItem>, settling: RunPendingSettlement): RunPendingSettlement {
    this.#context.recorder.settling(settling)
    delivery.outcome = settling
    // The outcome of a run that went on after it lost its lease does not count.
    if (delivery.state !== 'lost') this.#unwritten.add(settling)
    return settling
  }

  #outcome(delivery: Delivery<ClaimedItem>, stopping: AbortSignal): MaybePromise<RunPendingSettlement> {
    const { registry, lending } = this.#context
    const { type } = delivery.item.envelope
    const ended = this.#end(delivery)
    if (ended !== undefined) return ended
    const def = registry.find(type)
    if (def === undefined) {
      return this.#runner.ended(delivery, { kind: 'unroutable', error: `unknown work type: ${type}` })
    }
    // Claimed before so many runs of its type had lent their places: it goes back, and spends no attempt.
    if (lending.isClosedTo(type)) return this.#putOff(delivery)
    return delivery.item.lapses > 0 ? this.#suspectOutcome(delivery, def, stopping) : this.#runner.run(delivery, def)
  }

  async #suspectOutcome(
    delivery: Delivery<ClaimedItem>,
    def: WorkDefinition<string, never>,
    stopping: AbortSignal,
  ): Promise<RunPendingSettlement> {
    const mayBegin = await this.#suspects.mayBegin(delivery, stopping)
    return mayBegin ? this.#runner.run(delivery, def) : this.#putOff(delivery, stopping.aborted ? 0 : undefined)
  }

  /** It is not to run now, for a reason that passes. */
  #putOff(delivery: Delivery<ClaimedItem>, delayMs: Ms = this.#context.o.pollInterval): RunPendingSettlement {
    return this.#runner.ended(delivery, { kind: 'waiting', delayMs })
  }

  /** The settlement of a delivery that is not to run. */
  #end(delivery: Delivery<ClaimedItem>): RunPendingSettlement | undefined {
    const kept = this.#unwritten.of(delivery.item)
    if (kept !== undefined) return kept.under(delivery.item)
    const outcome = this.#router.endOf(delivery)
    return outcome === undefined ? undefined : this.#runner.ended(delivery, outcome)
  }

  #started(delivery: Delivery<ClaimedItem>, at: At): void {
    const { item } = delivery
    const { ledger, recorder, window, failed } = this.#context
    recorder.started(delivery, at)
    delivery.hasBegun = true
    window.started()
    this.#eventLoopDelay.started(item.envelope.type)
    this.#context.remember(item.envelope, { status: 'running', runAt: at })
    if (ledger.markStarted === undefined) return
    try {
      const begun = ledger.markStarted([item.lease])
      if (begun instanceof Promise) begun.catch((error) => failed(error, 'commit'))
    } catch (error) {
      failed(error, 'commit')
    }
  }

  #onClaimReply(reply: ClaimReply, askedMs: Ms): void {
    const { o, window, recorder, failed } = this.#context
    this.#context.learnTime(reply.now, askedMs)
    this.#router.claimed(reply.now)
    this.#unwritten.claimed(askedMs)
    const sizes = reply.items.map(({ envelope }) => envelope.input.length)
    window.claimed(o.clock.monotonic() - askedMs, sizes)
    for (const { error } of reply.failedQueues ?? []) {
      this.#hasFailedQueue = true
      failed(error, 'queue')
    }
    for (const { queue, body } of reply.unreadable ?? []) {
      // It is no item, so it has neither an id nor a type.
      const shown = o.redacted('input', body, { id: '', type: '' })
      failed(new UnreadableBodyError(queue, shown), 'queue')
    }
    for (const closed of reply.closedGroups ?? []) this.#events.closed(closed)
    for (const { envelope, byMs } of reply.rescheduled ?? []) recorder.rescheduled(envelope, byMs)
    for (const type of reply.crashed ?? []) recorder.crashed(type)
    if (reply.removed !== undefined) recorder.removed(reply.removed)
    this.#registration.afterClaim(askedMs)
    this.#unknownTypes?.afterClaim(askedMs)
    this.#backlog.behind(reply.more)
    this.#events.moved()
  }

  #observer(): LoopObserver<ClaimedItem, RunPendingSettlement> {
    const { recorder, pulse, failed, o } = this.#context
    const leaving = (leave: (delivery: Delivery<ClaimedItem>) => void, answer: 'lost' | 'over' | 'unknown') => {
      return (delivery: Delivery<ClaimedItem>) => {
        leave(delivery)
        this.#suspects.left(delivery)
        const settling = delivery.outcome
        if (settling instanceof RunPendingSettlement) {
          if (answer === 'lost') this.#unwritten.lost(settling, o.clock.monotonic())
          else if (answer === 'over') this.#unwritten.answered(settling)
          recorder.notSettled(settling)
        }
        this.#events.moved()
      }
    }
    const left = (delivery: Delivery<ClaimedItem>) => recorder.left(delivery)
    return {
      settled: (delivery, settling) => {
        this.#suspects.left(delivery)
        this.#unwritten.answered(settling)
        this.#events.settled(delivery, settling)
      },
      settleRetry: (delivery) => recorder.commitFailed(delivery.item.envelope.type),
      unsettled: leaving((delivery) => {
        recorder.commitFailed(delivery.item.envelope.type)
        recorder.left(delivery)
      }, 'over'),
      lost: leaving((delivery) => recorder.lost(delivery), 'lost'),
      returned: leaving(left, 'over'),
      // Its outcome may still be on its way.
      abandoned: leaving(left, 'unknown'),
      failed: (phase, error) => {
        if (phase === 'extend') pulse.heartbeatFailed()
        if (phase === 'settle') this.#context.notWritten(error)
        else failed(error, 'queue')
      },
    }
  }
}
