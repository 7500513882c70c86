import { hostname } from 'node:os'
import { retry } from '../core/retry.js'
import { tell } from '../core/tell.js'
import type { At, Ms } from '../core/time.js'
import { VERSION } from '../core/version.js'
import { GroupCommit } from '../ports/group-commit.js'
import type { EnvelopeHead } from '../ports/item.js'
import type { Ledger, Worker } from '../ports/ledger.js'
import type { OpenedLedger } from '../ports/native.js'
import type { Ports, Queue } from '../ports/ports.js'
import type { CommitResult, Settlement } from '../ports/settlement.js'
import { BackendTime } from './backend-time.js'
import { Tracing } from './controls/tracing.js'
import { Recorder } from './recorder.js'
import type { Registry } from './registry.js'
import type { ItemRules } from './resolve-item.js'
import { initialState, KnownStates } from './states.js'
import type { ErrorPhase, ResolvedSystemOptions } from './system-options.js'
import type { WorkState } from './work.js'
import { workerSettings } from './worker-settings.js'

/** More than any backend answers at once, and still a bound. */
const PLAIN_COMMITS_UNDER_WAY = 256

/** How long a commit may go unanswered: what takes longer than a lease is repeated, which its guard makes harmless. */
export const commitPatienceMs = (visibility: Ms): Ms => Math.max(5_000, visibility)

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
  /** Every commit goes through one coalescer, so that neighbours of any kind share a round trip. */
  readonly commits: GroupCommit<Settlement, CommitResult>
  readonly recorder: Recorder
  readonly tracing: Tracing
  /** How many batches have left: what was added before the last one can no longer be changed. */
  batches = 0
  /** Enqueues that have not been answered, by id: whoever asks for such an item by its id asks too early. */
  readonly onTheWay = new Map<string, Promise<unknown>>()
  readonly #known: KnownStates | undefined
  readonly #time: BackendTime

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
      // Made once: heartbeats only add the lead of the clock.
      settings: workerSettings(o, this.rules),
    })
    this.commits = new GroupCommit<Settlement, CommitResult>({
      flush: (batch) => this.#commit(batch),
      maxUnsent: o.maxUnsent,
      sizeOf: textLength,
      // Plain ports batch for themselves, each its own calls: one that hangs holds up nobody else.
      maxUnderWay: opened.ledger.atomic ? 1 : PLAIN_COMMITS_UNDER_WAY,
      patience: { ms: commitPatienceMs(o.visibility), clock: o.clock },
    })
    this.recorder = new Recorder(o, registry)
    this.tracing = new Tracing(o.given.tracer)
    this.#known = opened.ledger.inspect === undefined ? new KnownStates(o.maxStates) : undefined
  }

  /** This process as its next heartbeat tells of it. Nobody else can say how its clock goes. */
  told(): Worker {
    const clock = this.#time.lead()
    const { settings } = this.worker
    return clock === undefined || settings === undefined
      ? this.worker
      : { ...this.worker, settings: { ...settings, clock } }
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
      startNow: 0,
    })
    this.learnTime(at, askedMs)
  }

  /** Reports what is nobody's job failure. An observer that throws disturbs nobody. */
  readonly failed = (error: unknown, phase: ErrorPhase): void => tell(() => this.o.given.onError?.(error, phase))

  /** Where the backend cannot list, what this process sees is remembered instead. */
  get known(): KnownStates | undefined {
    return this.#known
  }

  saw(item: EnvelopeHead, state: Partial<WorkState> & Pick<WorkState, 'status'>): void {
    this.#known?.saw(item.groupId, { ...initialState(item), ...state })
  }

  async #commit(batch: readonly Settlement[]): Promise<readonly CommitResult[]> {
    this.batches += 1
    const { portRetry } = this.o.given
    if (portRetry === undefined || !this.ledger.atomic) return this.ledger.commit(batch)
    // Guards make a repetition harmless, so that a lost reply may simply be asked for again.
    return retry(() => this.ledger.commit(batch), portRetry)
  }
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
