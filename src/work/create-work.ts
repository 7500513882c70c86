import type { Metrics } from '../core/metrics/metrics.js'
import type { StatValue } from '../core/metrics/stat.js'
import { OptionTypeError } from '../core/options.js'
import { retry } from '../core/retry/retry.js'
import { peek } from '../core/text/safe-read.js'
import type { Clock } from '../core/time/clock.js'
import { findLedger, type OverPlainPorts } from '../ports/find-ledger.js'
import type { PausedNames } from '../ports/ledger.js'
import type { Backend, Ports } from '../ports/ports.js'
import type { CancelResult } from './control/cancel.js'
import type { Pausable } from './control/pause.js'
import { Registry, UnknownTypeError } from './define/registry.js'
import type {
  AnyWorkType,
  GroupForName,
  GroupOfWork,
  InputForName,
  ListFilter,
  RegistryNames,
  SelfForName,
  SelfOfWork,
  Work,
  WorkHandle,
  WorkInstanceOptions,
  WorkState,
} from './define/work.js'
import { Engine } from './engine.js'
import { resolveSystemOptions, type WorkSystemOptions } from './options.js'
import type { ScheduleConfig } from './schedule/config.js'
import { checkWork } from './settle/result-tree.js'
import type { Handle } from './wait/handles.js'
import type { ActiveWork } from './worker/active-items.js'

/** What this system runs on. */
export interface WorkCapabilities {
  /** Every settlement is atomic and fenced. False on plain ports, where a settlement is a sequence of repeatable steps. */
  readonly atomic: boolean
  /** Items can be listed and counted by state. */
  readonly inspect: boolean
  /** The port that is not the backend's own, where that made the system plain. */
  readonly foreign?: string
}

/** A work system. Every method works when taken out of the object. */
export interface WorkSystem<Defs extends readonly AnyWorkType[] = readonly AnyWorkType[]> {
  /** Enqueues work. The handle resolves with the value of the group; `.result()` with this item's own. */
  enqueue<W extends Work>(work: W, options?: WorkInstanceOptions): WorkHandle<SelfOfWork<W>, GroupOfWork<W>>
  enqueue<N extends RegistryNames<Defs>>(
    name: N,
    input: InputForName<Defs, N>,
    options?: WorkInstanceOptions,
  ): WorkHandle<SelfForName<Defs, N>, GroupForName<Defs, N>>
  /** Enqueues any number of works, each in its own group, and waits for room where needed; resolves when all are durable. */
  enqueueMany<W extends Work>(
    works: readonly W[],
    options?: WorkInstanceOptions,
  ): Promise<readonly WorkHandle<SelfOfWork<W>, GroupOfWork<W>>[]>
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

  const enqueue = (first: Work | string, second?: unknown, third?: WorkInstanceOptions) => {
    if (typeof first !== 'string') return engine.enqueue(first, second as WorkInstanceOptions | undefined)
    const builder = (options.work ?? []).find((b) => b.type === first)
    if (builder === undefined) throw new UnknownTypeError(first, registry.names)
    return engine.enqueue(builder(second), third)
  }
  const enqueueMany = async (given: Iterable<Work>, each?: WorkInstanceOptions): Promise<readonly Handle[]> => {
    if (!isIterable(given)) throw new OptionTypeError('enqueueMany(works)', 'a list of works', given)
    // A copy: it is read several times, and the caller may change the list meanwhile.
    const works = [...given]
    const handles: Handle[] = []
    const enqueued = enqueueAll(works, handles, each)
    engine.waitFor(enqueued, () => works.length - handles.length)
    return enqueued
  }
  const enqueueAll = async (works: readonly Work[], handles: Handle[], each?: WorkInstanceOptions) => {
    // All or none: anything that is not work is found before the first is sent.
    for (const work of works) checkWork(work)
    if (works.length > 1) await engine.checkInputs(works)
    let unanswered: Promise<unknown>[] = []
    const mostUnanswered = Math.min(MOST_UNANSWERED, Math.ceil(o.maxUnsent / 2))
    for (const work of works) {
      const room = engine.whenRoom()
      if (room !== undefined || unanswered.length >= mostUnanswered) {
        await room
        await Promise.all(unanswered)
        unanswered = []
      }
      const handle = engine.enqueue(work, each)
      handles.push(handle)
      unanswered.push(handle.accepted())
    }
    await Promise.all(unanswered)
    // A handle is thenable: returned bare from an async function it would be awaited. In a list it is not.
    return handles
  }
  if (options.autoStart !== false) engine.start()
  // The overloads of `enqueue` are one function here; the registry's types exist only for the compiler.
  return Object.freeze({
    enqueue,
    enqueueMany,
    schedule: (config: ScheduleConfig) => engine.schedule(config),
    start: () => engine.start(),
    stop: () => engine.stop(),
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

function isIterable(given: unknown): given is Iterable<unknown> {
  return typeof peek(given, Symbol.iterator) === 'function'
}

const warned = new Set<string>()

/**
 * One wrapped port makes a system plain: its settlements are then steps, not one atomic commit. Users who wrap a port to log its
 * calls do not expect that, so a warning says it, once for each port and process.
 */
function warnPlain(foreign: string): void {
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
