import type { Metrics } from '../core/metrics/metrics.js'
import type { StatValue } from '../core/metrics/stat.js'
import { optionsObject } from '../core/options.js'
import { processWide } from '../core/process/process-wide.js'
import { retry } from '../core/retry/retry.js'
import type { Clock } from '../core/time/clock.js'
import { findLedger, type OverPlainPorts } from '../ports/find-ledger.js'
import type { PausedNames } from '../ports/ledger.js'
import type { Backend, Ports } from '../ports/ports.js'
import type { CancelResult } from './control/cancel.js'
import type { Pausable } from './control/pause.js'
import { withId } from './define/built-work.js'
import { Registry, UnknownTypeError } from './define/registry.js'
import type {
  AnyWorkType,
  EnqueueOptions,
  GroupForName,
  GroupOfBuilder,
  GroupOfWork,
  InputForName,
  ItemHandle,
  ListFilter,
  ManyOptions,
  ManyReceipts,
  Receipt,
  RegistryNames,
  SelfForName,
  SelfOf,
  SelfOfWork,
  Work,
  WorkHandle,
  WorkState,
} from './define/work.js'
import { Engine } from './engine.js'
import { enqueueMany, type ManySender } from './enqueue/enqueue-many.js'
import { ENQUEUE_NAMES } from './enqueue/resolve-item.js'
import { resolveSystemOptions, type WorkSystemOptions } from './options.js'
import type { ScheduleConfig } from './schedule/config.js'
import type { Handle } from './wait/handles.js'
import type { ActiveWork } from './worker/active-items.js'
import type { HealthOptions, WorkHealth } from './worker/health.js'
import type { IdleRun, UntilIdleOptions } from './worker/until-idle.js'

/** What this system runs on. */
export interface WorkCapabilities {
  /** Every settlement is atomic and fenced. False on plain ports, where a settlement is a sequence of repeatable steps. */
  readonly atomic: boolean
  /** Items can be listed and counted by state. */
  readonly inspect: boolean
  /** The port that is not the backend's own, where that made the system plain. */
  readonly foreign?: string
}

/** What `enqueue` takes in either form. */
export type EnqueueArguments<Defs extends readonly AnyWorkType[]> =
  | [work: Work, options?: EnqueueOptions]
  | {
      [N in RegistryNames<Defs>]: [name: N, input: InputForName<Defs, N>, options?: EnqueueOptions]
    }[RegistryNames<Defs>]

/** A work system. Every method works when taken out of the object. */
export interface WorkSystem<Defs extends readonly AnyWorkType[] = readonly AnyWorkType[]> {
  /**
   * Adds work, and resolves once the item is durable, with its receipt: `{ kind, id }`. What a request handler wants.
   *
   * @example
   * ```ts
   * const { id } = await w.add(welcome({ email: 'ada@example.com' }), { delay: 60_000 })
   * ```
   */
  add<N extends RegistryNames<Defs>>(name: N, input: InputForName<Defs, N>, options?: EnqueueOptions): Promise<Receipt>
  add(work: Work, options?: EnqueueOptions): Promise<Receipt>
  /** Both forms in one. The compiler explains a mistake by the last form, so this one says what is wrong in either. */
  add(...args: EnqueueArguments<Defs>): Promise<Receipt>
  /**
   * Enqueues work and returns a thenable handle: awaiting the handle waits for the item's whole group, which may take long. To
   * wait only until the item is durable, use `add`; `.result()` gives this item's own result.
   */
  enqueue<N extends RegistryNames<Defs>>(
    name: N,
    input: InputForName<Defs, N>,
    options?: EnqueueOptions,
  ): WorkHandle<SelfForName<Defs, N>, GroupForName<Defs, N>>
  enqueue<W extends Work>(work: W, options?: EnqueueOptions): WorkHandle<SelfOfWork<W>, GroupOfWork<W>>
  /** Both forms in one. The compiler explains a mistake by the last form, so this one says what is wrong in either. */
  enqueue(...args: EnqueueArguments<Defs>): WorkHandle
  /**
   * An item by its id, in any process: its state, its result, a cancel.
   *
   * @example
   * ```ts
   * const state = await w.handle(welcome, id).state() // undefined: there is no such item
   * ```
   */
  handle<N extends RegistryNames<Defs>>(name: N, id: string): ItemHandle<SelfForName<Defs, N>, GroupForName<Defs, N>>
  handle<B extends AnyWorkType>(type: B, id: string): ItemHandle<SelfOf<B>, GroupOfBuilder<B>>
  /** Both forms in one, as with `enqueue`. */
  handle<F extends AnyWorkType | RegistryNames<Defs>>(
    type: F,
    id: string,
  ): F extends AnyWorkType
    ? ItemHandle<SelfOf<F>, GroupOfBuilder<F>>
    : ItemHandle<SelfForName<Defs, F & string>, GroupForName<Defs, F & string>>
  /**
   * Enqueues any number of works, each in its own group, and waits for room where needed; resolves when all are durable. A list
   * gives its handles. An iterable or async iterable is read and sent in chunks, with bounded memory, and gives counts. Only in a
   * transaction (`tx`) is it all or nothing: a failure leaves what was sent before it.
   */
  enqueueMany<W extends Work>(
    works: readonly W[],
    options?: ManyOptions,
  ): Promise<readonly WorkHandle<SelfOfWork<W>, GroupOfWork<W>>[]>
  enqueueMany(works: Iterable<Work> | AsyncIterable<Work>, options?: ManyOptions): Promise<ManyReceipts>
  /**
   * Enqueues work at times given by a cron expression or a function: once per occurrence in the whole fleet. Goes on until the
   * returned function is called or the system is stopped, whether or not the system works.
   */
  schedule(config: ScheduleConfig): () => void
  /** Starts working. Idempotent. */
  start(): void
  /**
   * Stops claiming work, lets running handlers finish for a while, returns the rest, and waits until the backend has answered all
   * enqueues: for `stopDrain`, but at least 5 s. What stays unanswered is reported (`ENQUEUES_UNANSWERED`). Idempotent.
   */
  stop(): Promise<void>
  /**
   * Works until nothing is left that this process could run now, or until its time is over, and stops: for functions that must end,
   * such as serverless ones and cron jobs. Items that are due later do not hold it; what its handlers queue does. It makes itself
   * ready for the next call, and rejects with `ALREADY_WORKING` on a system that works.
   *
   * @example
   * ```ts
   * const w = createWork({ backend, work: [charge], autoStart: false })
   * const { ended, succeeded, dead } = await w.runUntilIdle({ within: 20_000 })
   * ```
   */
  runUntilIdle(options?: UntilIdleOptions): Promise<IdleRun>
  /**
   * For probes: whether this process is live (if not, restart it) and ready (if not, send it nothing), and why not. It asks the
   * backend one cheap question, and never rejects because of the answer.
   */
  health(options?: HealthOptions): Promise<WorkHealth>
  /** The states of items: all of the backend's where it can list, otherwise those this process has seen. */
  list(filter?: ListFilter): Promise<WorkState[]>
  /**
   * The states of these items, in their order; undefined for an item that is unknown or no longer kept. Plain ports keep a state
   * for a day, so an item that waits or runs for longer may be unknown there too.
   */
  states(ids: readonly string[]): Promise<readonly (WorkState | undefined)[]>
  /** Cancels an item, wherever in the fleet it waits or runs, and resolves with what became of it. */
  cancel(id: string, reason?: string): Promise<CancelResult>
  /** No process of the fleet starts work of this queue or type any more. Running work goes on; waiting work keeps its order. */
  pause(what: Pausable, reason?: string): Promise<void>
  /** Ends a pause. */
  resume(what: Pausable, reason?: string): Promise<void>
  /** What is paused: everything where the backend can list, otherwise the queues and types that this system knows. */
  paused(): Promise<PausedNames>
  /** What this system holds now. */
  active(): ActiveWork[]
  /** The current metrics. `work.queue_depth` shows what {@link WorkSystem.measure} found last. */
  stats(): StatValue[]
  /** Asks every queue how much it holds, sets `work.queue_depth`, and returns all metrics. For a scrape. */
  measure(): Promise<StatValue[]>
  readonly metrics: Metrics
  readonly backend: Backend
  readonly capabilities: WorkCapabilities
}

/** How many works of one `enqueueMany` are in flight at the same time. */
const MOST_UNANSWERED = 1_000

/** The two backends that a door hands to the engine, which imports none itself. */
export interface DoorBackends {
  /** Makes the ports that the caller did not give. */
  readonly memoryBackend: (options: { readonly clock: Clock }) => Backend
  /** Makes a ledger of ports that no backend of ours made. */
  readonly overPlainPorts: OverPlainPorts
}

/** Makes a work system. */
export function createWorkOn<const Defs extends readonly AnyWorkType[]>(
  { memoryBackend, overPlainPorts }: DoorBackends,
  options: WorkSystemOptions & { readonly work?: Defs } = {},
): WorkSystem<Defs> {
  const o = resolveSystemOptions(options)
  const registry = new Registry(options.work ?? [])
  const backend = portsOf(options, () => memoryBackend({ clock: o.clock }))
  const opened = findLedger(backend, registry.queues, { prefix: o.prefix }, (ports, perType) =>
    overPlainPorts(ports, perType, {
      prefix: o.prefix,
      clock: o.clock,
      putBackMs: o.pollInterval,
      onError: o.onError,
      ...(options.portRetry === undefined ? {} : { retryPort: (call) => retry(call, options.portRetry) }),
    }),
  )
  if (opened.foreign !== undefined && opened.isMixed === true) warnPlain(opened.foreign)
  const engine = new Engine(o, backend, opened, registry)
  const capabilities: WorkCapabilities = Object.freeze({
    atomic: opened.ledger.atomic,
    inspect: opened.ledger.inspect !== undefined,
    ...(opened.foreign === undefined ? {} : { foreign: opened.foreign }),
  })

  const enqueueOne = (work: Work, given: EnqueueOptions | undefined): Handle => {
    if (given === undefined) return engine.enqueue(work, given)
    const { id, ...others } = optionsObject('enqueue', given, ENQUEUE_NAMES)
    return engine.enqueue(id === undefined ? work : withId(work, id), others)
  }
  const enqueue = (first: Work | string, second?: unknown, third?: EnqueueOptions): Handle => {
    if (typeof first !== 'string') return enqueueOne(first, second as EnqueueOptions | undefined)
    const builder = (options.work ?? []).find((b) => b.type === first)
    if (builder === undefined) throw new UnknownTypeError(first, registry.names)
    return enqueueOne(builder(second), third)
  }
  const add = async (first: Work | string, second?: unknown, third?: EnqueueOptions): Promise<Receipt> =>
    enqueue(first, second, third).accepted()
  const handle = (type: AnyWorkType | string, id: string) => {
    if (typeof type !== 'string') return engine.handle(type.type, id)
    if (!registry.names.includes(type)) throw new UnknownTypeError(type, registry.names)
    return engine.handle(type, id)
  }
  const sender: ManySender = {
    enqueue: (one, each) => engine.enqueue(one, each),
    whenRoom: () => engine.whenRoom(),
    checkInputs: (works) => engine.checkInputs(works),
    waitFor: (enqueues, count) => engine.waitFor(enqueues, count),
    mostUnanswered: Math.min(MOST_UNANSWERED, Math.ceil(o.maxUnsent / 2)),
  }
  if (options.autoStart !== false) engine.start()
  // The overloads of `enqueue` are one function here; the registry's types exist only for the compiler.
  return Object.freeze({
    add,
    enqueue,
    handle,
    enqueueMany: async (works: Iterable<Work> | AsyncIterable<Work>, many?: ManyOptions) =>
      enqueueMany(sender, works, many),
    schedule: (config: ScheduleConfig) => engine.schedule(config),
    start: () => engine.start(),
    stop: () => engine.stop(),
    runUntilIdle: (idle?: UntilIdleOptions) => engine.runUntilIdle(idle),
    health: (asked?: HealthOptions) => engine.health(asked),
    list: (filter?: ListFilter) => engine.list(filter),
    states: async (ids: readonly string[]) => engine.states(ids),
    cancel: (id: string, reason?: string) => engine.controls.cancel(id, reason),
    pause: (what: Pausable, reason?: string) => engine.controls.pause(what, reason),
    resume: (what: Pausable, reason?: string) => engine.controls.resume(what, reason),
    paused: () => engine.controls.paused(),
    active: () => engine.active(),
    stats: () => o.metrics.list(),
    measure: async () => {
      await engine.measure()
      return o.metrics.list()
    },
    metrics: o.metrics,
    backend,
    capabilities,
  }) as unknown as WorkSystem<Defs>
}

const warnedOfPorts = processWide('plain-ports-warned', () => new Set<string>())

/**
 * One wrapped port makes a system plain: its settlements are then steps, not one atomic commit. Users who wrap a port to log its
 * calls do not expect that, so a warning says it, once for each port and process.
 */
function warnPlain(foreign: string): void {
  const warned = warnedOfPorts()
  if (warned.has(foreign)) return
  warned.add(foreign)
  process.emitWarning(
    `A work system runs on plain ports, because its ${foreign} is not the backend's own object (a copy or a wrapper of it?). ` +
      'Settlements are then a sequence of repeatable steps instead of one atomic commit, and items cannot be listed. ' +
      'Give createWork({ backend }) the ports as the backend made them; `capabilities` of the system shows what it has.',
    { type: 'MillraceWarning', code: 'MILLRACE_PLAIN_PORTS' },
  )
}

/** The ports in use: those given, then the backend's, then new ones. Never copies: capabilities belong to the objects. */
function portsOf(options: WorkSystemOptions, fresh: () => Backend): Backend {
  const { backend, queue, pubsub, store } = options
  if (queue === undefined && pubsub === undefined && store === undefined) return backend ?? fresh()
  let spare: Ports | undefined = backend
  const orSpare = <K extends keyof Ports>(name: K, given: Ports[K] | undefined): Ports[K] => {
    if (given !== undefined) return given
    spare ??= fresh()
    return spare[name]
  }
  return { queue: orSpare('queue', queue), pubsub: orSpare('pubsub', pubsub), store: orSpare('store', store) }
}
