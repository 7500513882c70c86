import { hostname } from 'node:os'
import { keepAlive } from '../core/keep-alive.js'
import { retry } from '../core/retry.js'
import type { At, Ms } from '../core/time.js'
import { Turns } from '../core/turns.js'
import { VERSION } from '../core/version.js'
import { GroupCommit } from '../ports/group-commit.js'
import type { EnvelopeHead } from '../ports/item.js'
import type { Ledger, Worker } from '../ports/ledger.js'
import type { OpenedLedger } from '../ports/native.js'
import type { Ports, Queue } from '../ports/ports.js'
import type { CommitResult, Settlement } from '../ports/settlement.js'
import type { Outgoing } from '../source/ledger-feed.js'
import { BackendTime } from './backend-time.js'
import { isClosedBackend } from './closed-backend.js'
import { Tracing } from './controls/tracing.js'
import { Doers } from './doers.js'
import { HeldRoom } from './held-room.js'
import { LostEnqueues } from './lost-enqueues.js'
import { Lending } from './place.js'
import { Recorder } from './recorder.js'
import type { Registry } from './registry.js'
import type { ItemRules } from './resolve-item.js'
import { initialState, KnownStates } from './states.js'
import type { ErrorPhase, ResolvedSystemOptions } from './system-options.js'
import { handedInPatienceMs, Unanswered, UnansweredError } from './unanswered.js'
import { Window } from './window.js'
import type { WorkState } from './work.js'
import { workerSettings } from './worker-settings.js'

/** More than any backend answers at once, and still a bound. */
const PLAIN_COMMITS_UNDER_WAY = 256

/**
 * How many commits of outcomes may be under way at once: PostgreSQL drains a fifth faster with two than with one, Redis as fast, and
 * neither gains by four. Outcomes need no order among themselves; what callers enqueue keeps its own, one commit at a time.
 */
const OUTCOMES_UNDER_WAY = 2

/** How long a commit may go unanswered: what takes longer than a lease is repeated, which its guard makes harmless. */
export const commitPatienceMs = (visibility: Ms): Ms => Math.max(5_000, visibility)

/** One commit carries no more than this, so that it neither stops the event loop nor holds up its neighbours for long. */
const MOST_PER_COMMIT = 1_000
const MOST_BYTES_PER_COMMIT = 4 * 1024 * 1024

/** Waits between two tries of a commit that failed: short beside a lease, which may be over before the next. */
const retryCommitMs = (failures: number, visibility: Ms): Ms =>
  Math.min(5_000, visibility / 4, 100 * 2 ** Math.min(failures - 1, 10))

/** What the parts of one system have in common: its ledger, its clock in the backend's time, and where it reports. */
export class Shared {
  readonly o: ResolvedSystemOptions
  readonly ports: Ports
  readonly ledger: Ledger
  readonly registry: Registry
  readonly rules: ItemRules
  readonly worker: Worker
  /** What the ledger calls a queue of this system. */
  readonly queueName: (queue: Queue) => string
  /** What callers write: enqueues, cancels, fires of schedules. Neighbours share a round trip. */
  readonly commits: GroupCommit<Settlement, CommitResult>
  /**
   * What runs came to. Apart from what callers write, and never refused: the window bounds it. A commit that fails is
   * repeated as it was, which its guards make harmless, and reported once.
   */
  readonly outcomes: GroupCommit<Outgoing, CommitResult>
  readonly doers: Doers
  readonly window: Window
  readonly lending = new Lending()
  readonly heldRoom: HeldRoom
  readonly turns: Turns
  readonly recorder: Recorder
  readonly tracing: Tracing
  /** How many batches have left: what was added before the last one can no longer be changed. */
  batches = 0
  readonly unanswered: Unanswered
  /** Enqueues that failed, while no caller awaited them and no listener hears errors. */
  readonly lost: LostEnqueues
  readonly #known: KnownStates | undefined
  #isCommitReported = false
  readonly #time: BackendTime
  /** What heartbeats tell, made anew only when a type was learnt. */
  #told: Worker
  #toldSize: number

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
      id: o.newId(),
      host: hostname(),
      version: VERSION,
      types: registry.types,
      queues: [...new Set(queues)],
      settings: workerSettings(o, this.rules),
    })
    this.#told = this.worker
    this.#toldSize = registry.size
    this.turns = new Turns(o.clock)
    this.heldRoom = new HeldRoom(o.maxUnsent)
    this.doers = new Doers(o.doer, o.concurrency, registry)
    this.window = new Window(o.clock, o.visibility)
    const perCommit = {
      maxBatch: MOST_PER_COMMIT,
      maxBatchBytes: MOST_BYTES_PER_COMMIT,
      // Plain ports batch for themselves, each its own calls: one that hangs holds up nobody else.
      maxUnderWay: opened.ledger.atomic ? 1 : PLAIN_COMMITS_UNDER_WAY,
      patience: { ms: commitPatienceMs(o.visibility), clock: o.clock },
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
      maxUnderWay: opened.ledger.atomic ? OUTCOMES_UNDER_WAY : PLAIN_COMMITS_UNDER_WAY,
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
    this.unanswered = new Unanswered(o.clock, () => this.#holdHandedIn(opened))
    this.lost = new LostEnqueues(o.clock, opened.beforeClose)
    this.recorder = new Recorder(o, registry)
    this.tracing = new Tracing(o.given.tracer)
    this.#known = opened.ledger.inspect === undefined ? new KnownStates(o.maxStates) : undefined
  }

  /** This process as its next heartbeat tells of it: with the types that it has learnt, and how its clock goes. */
  told(): Worker {
    const { registry, rules, o } = this
    if (registry.size !== this.#toldSize) {
      this.#toldSize = registry.size
      this.#told = { ...this.worker, types: registry.types, settings: workerSettings(o, rules) }
    }
    const clock = this.#time.lead()
    const { settings } = this.#told
    return clock === undefined || settings === undefined
      ? this.#told
      : { ...this.#told, settings: { ...settings, clock } }
  }

  /** The backend's time, as far as it is known. */
  now(): At {
    return this.#time.now()
  }

  /** What the backend's clock said, when asked at this monotonic time. */
  learnTime(at: At, askedMs: Ms): void {
    this.#time.learn(at, askedMs)
  }

  /** Whether an instant that we reckon from now is one that the backend understands. Plain ports have no time of their own. */
  get isTimeKnown(): boolean {
    return this.#time.isKnown || !this.ledger.atomic
  }

  /** Asks the backend what time it is: with a claim that wants nothing. */
  async askTime(): Promise<void> {
    const askedMs = this.o.clock.monotonic()
    const { at } = await this.ledger.claim({
      from: [],
      leaseMs: this.o.visibility,
      worker: this.worker.id,
    })
    this.learnTime(at, askedMs)
  }

  /** Reports what is no job's own failure. */
  readonly failed = (error: unknown, phase: ErrorPhase): void => this.o.onError(error, phase)

  /** Reports a backend that cannot be written: once, until it can be again. */
  readonly notWritten = (error: unknown): void => {
    if (!this.#isCommitReported) this.failed(error, 'commit')
    this.#isCommitReported = true
  }

  /** Where the backend cannot list, what this process sees is remembered instead. */
  get known(): KnownStates | undefined {
    return this.#known
  }

  saw(item: EnvelopeHead, state: Partial<WorkState> & Pick<WorkState, 'status'>): void {
    this.#known?.saw(item.groupId, { ...initialState(item), ...state })
  }

  /**
   * Waits until the backend has answered what was enqueued so far. What takes too long is given up, and said: a backend that is
   * away must not keep a process from ending.
   */
  async handedIn(by: 'stop' | 'close'): Promise<void> {
    const ms = handedInPatienceMs(this.o.stopDrain)
    const count = await this.unanswered.settled(ms)
    if (count > 0) this.failed(new UnansweredError(count, ms, by), 'queue')
    // Also those that failed while they were waited for. A stop says them when it has waited for the last ones.
    if (by === 'close') this.lost.say()
  }

  /** Neither the end of the program nor a close of the backend is to overtake what was handed in. */
  #holdHandedIn({ beforeClose }: OpenedLedger): () => void {
    const { clock, given } = this.o
    const isHolding = clock.isReal === true && given.keepAlive !== false
    const ends = [beforeClose?.(() => this.handedIn('close')), isHolding ? keepAlive() : undefined]
    return () => {
      for (const end of ends) end?.()
    }
  }

  async #settle(batch: readonly Outgoing[]): Promise<readonly CommitResult[]> {
    const startedMs = this.o.clock.monotonic()
    const results = await this.#commit(batch.map(({ settlement }) => settlement))
    const tookMs = this.o.clock.monotonic() - startedMs
    if (results.some(({ kind }) => kind !== 'failed')) this.#isCommitReported = false
    // What was lost came to nothing: it says nothing of the pace.
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
    // Guards make a repetition harmless, so that a lost reply may simply be asked for again.
    return retry(() => this.ledger.commit(batch), portRetry)
  }
}

/** How much text a run left behind: what it queued is no longer held once it is written. */
function resultLength({ effects }: Settlement): number {
  let length = 0
  for (const effect of effects) if (effect.do === 'finish') length += effect.result?.length ?? 0
  return length
}

/** How much text a settlement carries: what waits unsent is bounded by this too. */
function textLength({ effects }: Settlement): number {
  let length = 0
  for (const effect of effects) {
    if (effect.do === 'push') length += effect.item.input.length
    else if (effect.do === 'finish') length += effect.result?.length ?? 0
    else if (effect.do === 'contribute') length += effect.value.length
  }
  return length
}
