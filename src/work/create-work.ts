import type { Clock } from '../core/clock.js'
import type { Metrics } from '../core/metrics.js'
import { OptionTypeError } from '../core/options.js'
import { retry } from '../core/retry.js'
import { peek } from '../core/safe-read.js'
import type { StatValue } from '../core/stat.js'
import type { PausedNames } from '../ports/ledger.js'
import { ledgerOf } from '../ports/native.js'
import { overPlainPorts } from '../ports/plain/index.js'
import type { Backend, Ports } from '../ports/ports.js'
import type { ActiveWork } from './active.js'
import type { CancelAnswer } from './controls/cancel.js'
import type { Pausable } from './controls/pausing.js'
import { Engine } from './engine.js'
import type { Handle } from './handle.js'
import { Registry, UnknownTypeError } from './registry.js'
import { checkWork } from './result-tree.js'
import type { ScheduleConfig } from './schedule/config.js'
import { resolveSystemOptions, type WorkSystemOptions } from './system-options.js'
import type {
  AnyWorkBuilder,
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
} from './work.js'

/** What this system runs on. */
export interface WorkCapabilities {
  /** Every settlement is atomic and fenced. False on plain ports, where it is a sequence of repeatable steps. */
  readonly atomic: boolean
  /** Items can be listed and counted by state. */
  readonly inspect: boolean
  /** Which port is not the backend's own, where that made the system plain. */
  readonly foreign?: string
}

/** A work system. Every method works when taken out of the object. */
export interface WorkSystem<Defs extends readonly AnyWorkBuilder[] = readonly AnyWorkBuilder[]> {
  /** Enqueues work. The handle resolves with the value of the group; `.result()` with this item's own. */
  enqueue<W extends Work>(work: W, options?: WorkInstanceOptions): WorkHandle<SelfOfWork<W>, GroupOfWork<W>>
  enqueue<N extends RegistryNames<Defs>>(
    name: N,
    input: InputForName<Defs, N>,
    options?: WorkInstanceOptions,
  ): WorkHandle<SelfForName<Defs, N>, GroupForName<Defs, N>>
  /** Enqueues any number, each in a group of its own, waiting for room as it goes; resolves when all are durable. */
  enqueueMany<W extends Work>(
    works: readonly W[],
    options?: WorkInstanceOptions,
  ): Promise<readonly WorkHandle<SelfOfWork<W>, GroupOfWork<W>>[]>
  /**
   * Enqueues work at times: by a cron expression, or by a function that says when next. Once per occurrence in the whole fleet.
   * Goes on until the returned function is called or the system is stopped, whether or not it works.
   */
  schedule(config: ScheduleConfig): () => void
  /** Starts working. Idempotent. */
  start(): void
  /**
   * Stops taking work, lets what runs finish for a while, gives the rest back, and waits until the backend has answered what was
   * enqueued: for `stopDrain`, or 5 s if that is more. What is given up is reported (`ENQUEUES_UNANSWERED`). Idempotent.
   */
  stop(): Promise<void>
  /** The states of items: all of the backend's where it can list, otherwise those this process has seen. */
  list(filter?: ListFilter): Promise<WorkState[]>
  /**
   * The states of these items, in their order; undefined where nothing is known: it never was, or is kept no longer. Plain ports
   * keep a state for a day, so that one which waits or runs for longer may be unknown there too.
   */
  states(ids: readonly string[]): Promise<readonly (WorkState | undefined)[]>
  /** Cancels an item, wherever in the fleet it waits or runs, and says what that came to. */
  cancel(id: string, reason?: string): Promise<CancelAnswer>
  /** No process of the fleet begins work of this queue or type any more. What runs goes on; what waits keeps its place. */
  pause(what: Pausable, reason?: string): Promise<void>
  /** Ends a pause. */
  resume(what: Pausable, reason?: string): Promise<void>
  /** What is paused: everything where the backend can list, otherwise the queues and types that this system knows. */
  paused(): Promise<PausedNames>
  /** What this instance holds now. */
  active(): ActiveWork[]
  /** All metrics as they stand. `work.queue_depth` shows what {@link WorkSystem.measure} found last. */
  stats(): StatValue[]
  /** Asks every queue how much it holds, sets `work.queue_depth`, and gives all metrics. For a scrape. */
  measure(): Promise<StatValue[]>
  readonly metrics: Metrics
  readonly backend: Backend
  readonly capabilities: WorkCapabilities
}

/** How many works of one `enqueueMany` are on their way at a time. */
const MOST_UNANSWERED = 1_000

/**
 * Makes a work system. `fallback` gives the ports that were not given: the engine itself knows no backend.
 */
export function createWorkOn<const Defs extends readonly AnyWorkBuilder[]>(
  fallback: (options: { readonly clock: Clock }) => Backend,
  options: WorkSystemOptions & { readonly work?: Defs } = {},
): WorkSystem<Defs> {
  const o = resolveSystemOptions(options)
  const registry = new Registry(options.work ?? [])
  const backend = portsOf(options, () => fallback({ clock: o.clock }))
  const opened = ledgerOf(backend, registry.queues, { prefix: o.prefix }, (ports, perType) =>
    overPlainPorts(ports, perType, {
      prefix: o.prefix,
      clock: o.clock,
      putBackMs: o.pollInterval,
      onError: o.onError,
      ...(options.portRetry === undefined ? {} : { retryPort: (call) => retry(call, options.portRetry) }),
    }),
  )
  if (opened.foreign !== undefined && opened.isMixed === true) sayPlain(opened.foreign)
  const engine = new Engine(o, backend, opened, registry)
  const capabilities: WorkCapabilities = Object.freeze({
    atomic: opened.ledger.atomic,
    inspect: opened.ledger.inspect !== undefined,
    ...(opened.foreign === undefined ? {} : { foreign: opened.foreign }),
  })

  const enqueue = (first: Work | string, second?: unknown, third?: WorkInstanceOptions) => {
    if (typeof first !== 'string') return engine.enqueue(first, second as WorkInstanceOptions | undefined)
    const builder = (options.work ?? []).find((b) => b.type === first)
    if (builder === undefined) throw new UnknownTypeError(first, registry.types)
    return engine.enqueue(builder(second), third)
  }
  const enqueueMany = async (given: Iterable<Work>, each?: WorkInstanceOptions): Promise<readonly Handle[]> => {
    if (!isIterable(given)) throw new OptionTypeError('enqueueMany(works)', 'a list of works', given)
    // A copy: it is looked through several times, and what becomes of the caller's list meanwhile changes nothing.
    const works = [...given]
    const handles: Handle[] = []
    const enqueued = enqueueAll(works, handles, each)
    engine.waitFor(enqueued, () => works.length - handles.length)
    return enqueued
  }
  const enqueueAll = async (works: readonly Work[], handles: Handle[], each?: WorkInstanceOptions) => {
    // All or none: what is no work is found before the first is sent.
    for (const work of works) checkWork(work)
    if (works.length > 1) await engine.checkInputs(works)
    let unanswered: Promise<unknown>[] = []
    const mostUnanswered = Math.min(MOST_UNANSWERED, Math.ceil(o.maxUnsent / 2))
    for (const work of works) {
      // However many there are, only so many wait to be sent at a time.
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

const said = new Set<string>()

/**
 * One wrapped port makes a system plain: its settlements are then steps, not one atomic commit. Somebody who wrapped a port
 * to log its calls would not expect that, so it is said, once for each port and process.
 */
function sayPlain(foreign: string): void {
  if (said.has(foreign)) return
  said.add(foreign)
  process.emitWarning(
    `A work system runs on plain ports, because its ${foreign} is not the backend's own object (a copy or a wrapper of it?). ` +
      'Settlements are then a sequence of repeatable steps instead of one atomic commit, and items cannot be listed. ' +
      'Give createWork({ backend }) the ports as the backend made them; `capabilities` of the system shows what it has.',
    { type: 'MillraceWarning', code: 'MILLRACE_PLAIN_PORTS' },
  )
}

/** The ports in use: those given, over the backend's, over fresh ones. The very objects, since capabilities belong to them. */
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
