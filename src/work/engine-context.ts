import { hostname } from 'node:os'
import { GroupCommit } from '../core/group-commit.js'
import { doublingDelay } from '../core/retry/backoff.js'
import { retry } from '../core/retry/retry.js'
import { EventLoopTurns } from '../core/time/event-loop-turns.js'
import { keepAlive } from '../core/time/keep-alive.js'
import type { At, Ms } from '../core/time/time.js'
import { VERSION } from '../core/version.js'
import type { OpenedLedger } from '../ports/find-ledger.js'
import type { EnvelopeHead } from '../ports/item.js'
import type { Ledger, WorkerRecord } from '../ports/ledger.js'
import type { Ports, Queue } from '../ports/ports.js'
import type { CommitResult, Settlement } from '../ports/settlement.js'
import type { Outgoing } from '../source/feeds/ledger-feed.js'
import type { Registry } from './define/registry.js'
import type { WorkState } from './define/work.js'
import { LostEnqueues } from './enqueue/lost-enqueues.js'
import type { ItemRules } from './enqueue/resolve-item.js'
import { enqueueTimeoutMs, UnansweredEnqueues, UnansweredError } from './enqueue/unanswered-enqueues.js'
import { Recorder } from './observe/recorder.js'
import { Tracing } from './observe/tracing.js'
import type { ErrorPhase, ResolvedSystemOptions } from './options.js'
import { isClosedBackend } from './options.js'
import { initialState, KnownStates } from './wait/states.js'
import { BackendTime } from './worker/backend-time.js'
import { Doers } from './worker/doers.js'
import { Lending } from './worker/lend-place.js'
import { LoopPulse } from './worker/loop-pulse.js'
import { PrefetchWindow } from './worker/prefetch-window.js'
import { SkipQueueRoom } from './worker/skip-queue.js'
import { workerSettings } from './worker/worker-registration.js'

/** More than any backend answers at the same time, and still a bound. */
const PLAIN_COMMITS_IN_FLIGHT = 256

/**
 * How many commits of outcomes may be in flight: PostgreSQL drains a fifth faster with two than with one, Redis as fast, and
 * neither gains by four. Outcomes need no order; what callers enqueue keeps its order, one commit at a time.
 */
const OUTCOMES_IN_FLIGHT = 2

/** How long a commit may stay unanswered. One that takes longer than a lease is repeated, which its guard makes harmless. */
export const commitTimeoutMs = (visibility: Ms): Ms => Math.max(5_000, visibility)

/** One commit carries no more than this: a larger one would block the event loop and delay its neighbours. */
const MOST_PER_COMMIT = 1_000
const MOST_BYTES_PER_COMMIT = 4 * 1024 * 1024

/** Waits between two tries of a failed commit: short compared with a lease, which may lapse before the next try. */
const retryCommitMs = (failures: number, visibility: Ms): Ms =>
  doublingDelay(failures - 1, { baseMs: 100, maxMs: Math.min(5_000, visibility / 4) })

/** What the parts of one engine share: its ledger, the backend's time, its limits, and where it reports. */
export class EngineContext {
  readonly o: ResolvedSystemOptions
  readonly ports: Ports
  readonly ledger: Ledger
  readonly registry: Registry
  readonly rules: ItemRules
  readonly worker: WorkerRecord
  /** The name of a queue in the ledger. */
  readonly queueName: (queue: Queue) => string
  /** What callers write: enqueues, cancels, occurrences of schedules. Neighbours share a round trip. */
  readonly commits: GroupCommit<Settlement, CommitResult>
  /**
   * The outcomes of runs: apart from what callers write, and never refused, because the prefetch window bounds them. A commit
   * that fails is repeated unchanged, which its guards make harmless, and reported once.
   */
  readonly outcomes: GroupCommit<Outgoing, CommitResult>
  readonly doers: Doers
  readonly window: PrefetchWindow
  readonly lending = new Lending()
  readonly skipQueueRoom: SkipQueueRoom
  readonly turns: EventLoopTurns
  readonly recorder: Recorder
  readonly pulse: LoopPulse
  readonly tracing: Tracing
  /** How many batches were sent: what was added before the last one can no longer be changed. */
  batches = 0
  readonly unanswered: UnansweredEnqueues
  /** Enqueues that failed while no caller awaited them and no `onError` listened. */
  readonly lost: LostEnqueues
  readonly #known: KnownStates | undefined
  #isCommitReported = false
  readonly #time: BackendTime
  /** What heartbeats write, made again only when a type was added. */
  #record: WorkerRecord
  #recordedTypes: number

  constructor(o: ResolvedSystemOptions, ports: Ports, opened: OpenedLedger, registry: Registry) {
    this.o = o
    this.#time = new BackendTime(o.clock)
    this.ports = ports
    this.ledger = opened.ledger
    this.registry = registry
    registry.named(opened.names)
    const areNamesShared = opened.ledger.atomic
    this.rules = { registry, codec: o.codec, retry: o.retry, newId: o.newId, areNamesShared, policies: new Map() }
    this.queueName = (queue) => opened.names.get(queue) ?? 'default'
    const queues = [ports.queue, ...registry.queues].map(this.queueName)
    this.worker = Object.freeze({
      id: o.workerId,
      host: hostname(),
      version: VERSION,
      types: registry.types,
      queues: [...new Set(queues)],
      settings: workerSettings(o, this.rules),
    })
    this.#record = this.worker
    this.#recordedTypes = registry.size
    this.turns = new EventLoopTurns(o.clock)
    this.skipQueueRoom = new SkipQueueRoom(o.maxUnsent)
    this.doers = new Doers(o.doer, o.concurrency, registry)
    this.window = new PrefetchWindow(o.clock, o.visibility)
    const perCommit = {
      maxBatch: MOST_PER_COMMIT,
      maxBatchBytes: MOST_BYTES_PER_COMMIT,
      // Plain ports batch their own calls: one that hangs does not delay the others.
      maxUnderWay: opened.ledger.atomic ? 1 : PLAIN_COMMITS_IN_FLIGHT,
      timeout: { ms: commitTimeoutMs(o.visibility), clock: o.clock },
      turns: this.turns,
    }
    this.commits = new GroupCommit<Settlement, CommitResult>({
      ...perCommit,
      flush: (batch) => {
        this.batches += 1
        return this.#commit(batch)
      },
      maxUnsent: o.maxUnsent,
      sizeOf: textLength,
    })
    this.outcomes = new GroupCommit<Outgoing, CommitResult>({
      ...perCommit,
      maxUnderWay: opened.ledger.atomic ? OUTCOMES_IN_FLIGHT : PLAIN_COMMITS_IN_FLIGHT,
      flush: (batch) => this.#settle(batch),
      maxUnsent: Infinity,
      maxUnsentBytes: Infinity,
      sizeOf: ({ settlement }) => textLength(settlement),
      repeat: {
        clock: o.clock,
        delayMs: (failures) => retryCommitMs(failures, o.visibility),
        failed: (error, failures, batch) => {
          if (failures === 1) this.notWritten(error)
          for (const { type } of batch) this.recorder.commitFailed(type)
        },
        isFinal: isClosedBackend,
      },
    })
    this.unanswered = new UnansweredEnqueues(o.clock, () => this.#holdForEnqueues(opened))
    this.lost = new LostEnqueues(o.clock, opened.beforeClose)
    this.pulse = new LoopPulse(() => o.clock.monotonic(), o.visibility)
    this.recorder = new Recorder(o, registry, this.pulse)
    this.tracing = new Tracing(o.given.tracer)
    this.#known = opened.ledger.inspect === undefined ? new KnownStates(o.maxStates) : undefined
  }

  /** The record of this process for its next heartbeat: with the types it knows, and how far its clock is off. */
  workerRecord(): WorkerRecord {
    const { registry, rules, o } = this
    if (registry.size !== this.#recordedTypes) {
      this.#recordedTypes = registry.size
      this.#record = { ...this.worker, types: registry.types, settings: workerSettings(o, rules) }
    }
    const clock = this.#time.lead()
    const { settings } = this.#record
    return clock === undefined || settings === undefined
      ? this.#record
      : { ...this.#record, settings: { ...settings, clock } }
  }

  /** The backend's time, as far as it is known. */
  now(): At {
    return this.#time.now()
  }

  /** Learns the backend's time from a reply to a question of this monotonic time. */
  learnTime(at: At, askedMs: Ms): void {
    this.#time.learn(at, askedMs)
  }

  /** Whether instants counted from `now()` are the backend's. Plain ports have no clock. */
  get isTimeKnown(): boolean {
    return this.#time.isKnown || !this.ledger.atomic
  }

  /** Asks the backend for its time, with a claim of nothing. */
  async askTime(): Promise<void> {
    const askedMs = this.o.clock.monotonic()
    const { now } = await this.ledger.claim({
      queues: [],
      leaseMs: this.o.visibility,
      worker: this.worker.id,
    })
    this.learnTime(now, askedMs)
  }

  /** The cheapest question that the backend itself has to answer. */
  async ping(): Promise<void> {
    if (this.ledger.atomic) return this.askTime()
    // Over plain ports a claim from no queue asks none of them.
    await this.ports.store.get(`${this.o.prefix}health`)
  }

  /** Reports an error that is not the failure of an item. */
  readonly failed = (error: unknown, phase: ErrorPhase): void => this.o.onError(error, phase)

  /** Reports that the backend cannot be written: once, until it can be again. */
  readonly notWritten = (error: unknown): void => {
    if (!this.#isCommitReported) this.failed(error, 'commit')
    this.#isCommitReported = true
  }

  /** The states that this process has seen, where the backend cannot list. */
  get known(): KnownStates | undefined {
    return this.#known
  }

  remember(item: EnvelopeHead, state: Partial<WorkState> & Pick<WorkState, 'status'>): void {
    this.#known?.remember(item.groupId, { ...initialState(item), ...state })
  }

  /**
   * Waits until the backend has answered all enqueues so far. What takes too long is reported and no longer waited for: a backend
   * that is down must not keep a process from ending.
   */
  async enqueuesAnswered(by: 'stop' | 'close', ms: Ms = enqueueTimeoutMs(this.o.stopDrain)): Promise<void> {
    const count = await this.unanswered.settled(ms)
    if (count > 0) this.failed(new UnansweredError(count, ms, by), 'queue')
    // Includes those that failed meanwhile. A stop reports them later, after it has waited for the last ones.
    if (by === 'close') this.lost.report()
  }

  /** Neither the end of the program nor a close of the backend may overtake an enqueue. */
  #holdForEnqueues({ beforeClose }: OpenedLedger): () => void {
    const { clock, given } = this.o
    const isHolding = clock.isReal === true && given.keepAlive !== false
    const ends = [beforeClose?.(() => this.enqueuesAnswered('close')), isHolding ? keepAlive() : undefined]
    return () => {
      for (const end of ends) end?.()
    }
  }

  async #settle(batch: readonly Outgoing[]): Promise<readonly CommitResult[]> {
    const startedMs = this.o.clock.monotonic()
    const results = await this.#commit(batch.map(({ settlement }) => settlement))
    const tookMs = this.o.clock.monotonic() - startedMs
    if (results.some(({ kind }) => kind !== 'failed')) this.#isCommitReported = false
    // Outcomes that came too late do not count for the pace.
    const written = batch.filter((_, i) => results[i]?.kind !== 'stale')
    this.window.committed(
      tookMs,
      written.map(({ settlement }) => resultLength(settlement)),
    )
    return results
  }

  async #commit(batch: readonly Settlement[]): Promise<readonly CommitResult[]> {
    const { portRetry } = this.o.given
    if (portRetry === undefined || !this.ledger.atomic) return this.ledger.commit(batch)
    // Guards make a repetition harmless, so a commit whose reply was lost is simply sent again.
    return retry(() => this.ledger.commit(batch), portRetry)
  }
}

/** The size of a result. What the run queued does not count: it is not held once it is written. */
function resultLength({ effects }: Settlement): number {
  let length = 0
  for (const effect of effects) if (effect.do === 'complete') length += effect.result?.length ?? 0
  return length
}

/** How much text a settlement carries, which bounds what waits to be sent. */
function textLength({ effects }: Settlement): number {
  let length = 0
  for (const effect of effects) {
    if (effect.do === 'enqueue') length += effect.item.input.length
    else if (effect.do === 'complete') length += effect.result?.length ?? 0
    else if (effect.do === 'setGroupValue') length += effect.value.length
  }
  return length
}
