import { keepAlive } from '../core/keep-alive.js'
import { OptionTypeError } from '../core/options.js'
import { unreachable } from '../core/unreachable.js'
import type { Claimed, DeadEnding } from '../ports/item.js'
import type { ItemSummary } from '../ports/ledger.js'
import type { OpenedLedger } from '../ports/native.js'
import type { Ports } from '../ports/ports.js'
import type { ClosedGroup } from '../ports/settlement.js'
import type { Delivery } from '../source/loop/delivery.js'
import type { ActiveWork } from './active.js'
import { closedAlone } from './closed-alone.js'
import { Controls } from './controls/controls.js'
import { looksAt, PAGE, readFilter } from './controls/list-filter.js'
import { checkWorks } from './controls/queued-input.js'
import type { Handle } from './handle.js'
import { measureQueueDepths } from './queue-depth.js'
import type { Registry } from './registry.js'
import type { ScheduleConfig } from './schedule/config.js'
import { Schedules } from './schedule/schedules.js'
import { Shared } from './shared.js'
import { stateOf, statesOf } from './states.js'
import { Submitter } from './submitter.js'
import type { ResolvedSystemOptions } from './system-options.js'
import { watchUnused, workWasTaken } from './unused-worker.js'
import { Waiting } from './waiting.js'
import type { ListFilter, Work, WorkInstanceOptions, WorkState } from './work.js'
import { WorkLoop } from './work-loop.js'
import type { WorkSettling } from './work-settling.js'

/**
 * Carries items from enqueue to settlement. It decides nothing itself: what happens to an item is decided by pure functions
 * (`submit`, `route`, `settle`), when it runs by doers, and what is written by the ledger.
 */
export class Engine {
  readonly controls: Controls
  readonly #s: Shared
  readonly #submitter: Submitter
  readonly #waiting: Waiting
  readonly #loop: WorkLoop
  readonly #schedules: Schedules
  #running: Promise<unknown> | undefined
  #stopping: Promise<void> | undefined
  #hold: (() => void) | undefined
  #isWanted = false
  #wasStarted = false
  #endWatch: (() => void) | undefined

  constructor(o: ResolvedSystemOptions, ports: Ports, opened: OpenedLedger, registry: Registry) {
    this.#s = new Shared(o, ports, opened, registry)
    this.controls = new Controls(this.#s, (view, error, closed) => this.#endedUnrun(view, 'cancelled', error, closed))
    this.#waiting = new Waiting(this.#s, this.controls)
    this.#loop = new WorkLoop(this.#s, {
      settled: (delivery, settling) => this.#settled(delivery, settling),
      endedUnrun: (view, error, closed) => this.#endedUnrun(view, 'unroutable', error, closed),
      closed: (group) => this.#closed(group),
      moved: () => {
        if (this.#s.recorder.active.size > 0) workWasTaken()
        this.#holdProcess()
      },
    })
    this.#schedules = new Schedules(this.#s, this.#accepted)
    this.#submitter = new Submitter(this.#s, (...held) => this.#loop.runDirectly(...held))
  }

  enqueue(work: Work, options: WorkInstanceOptions | undefined): Handle {
    return this.#waiting.handle(this.#submitter.submit(work, options), this.#accepted)
  }

  /** Has `stop` and `close` wait for enqueues that are still to be made: for so many as `count` says. */
  waitFor(enqueues: Promise<unknown>, count: () => number): void {
    this.#waiting.waitFor(enqueues, count)
  }

  /** Backpressure for callers who enqueue in bulk: undefined where there is room, otherwise what to await first. */
  whenRoom(): Promise<void> | undefined {
    return this.#s.commits.whenRoom()
  }

  schedule(config: ScheduleConfig): () => void {
    return this.#schedules.add(config)
  }

  /** Rejects with the first of these whose input is not valid. */
  async checkInputs(works: readonly Work[]): Promise<void> {
    await checkWorks(works, (work) => this.#s.registry.schemaOf(work))
  }

  start(): void {
    this.#isWanted = true
    // A start during a stop takes effect when that is over: two loops at once would be two workers.
    if (this.#running !== undefined || this.#stopping !== undefined) return
    this.#waiting.open()
    this.#schedules.start()
    this.#running = this.#loop.run().catch((error) => this.#s.failed(error, 'queue'))
    this.#holdProcess()
    if (!this.#wasStarted) this.#watchUnused()
    this.#wasStarted = true
  }

  stop(): Promise<void> {
    this.#isWanted = false
    this.#endWatch?.()
    this.#stopping ??= this.#stop().finally(() => {
      this.#stopping = undefined
      if (this.#isWanted) this.start()
    })
    return this.#stopping
  }

  /** Asks the queues for their sizes, so that the metrics show them. */
  measure(): Promise<void> {
    return measureQueueDepths(this.#s)
  }

  active(): ActiveWork[] {
    return this.#s.recorder.active.list()
  }

  states(ids: readonly string[]): Promise<readonly (WorkState | undefined)[]> {
    if (!Array.isArray(ids) || !ids.every((id) => typeof id === 'string'))
      throw new OptionTypeError('states(ids)', 'a list of ids', ids)
    return statesOf(this.#s, ids)
  }

  async list(filter?: ListFilter): Promise<WorkState[]> {
    const { ledger, known, o, recorder } = this.#s
    const { queries, fits } = readFilter(filter)
    const { inspect } = ledger
    if (inspect === undefined) return (known?.list() ?? []).filter(fits)
    const here = recorder.active.begun()
    // By id: an item may move from one state to the next between two questions.
    const states = new Map<string, WorkState>()
    let looksLeft = looksAt(o.maxStates)
    for (const query of queries) {
      let cursor: string | undefined
      do {
        const page = await inspect.list({ ...query, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) })
        for (const view of page.items) {
          const state = stateOf(view, here)
          if (fits(state)) states.set(state.id, state)
        }
        cursor = page.next
        looksLeft -= 1
      } while (cursor !== undefined && states.size < o.maxStates && looksLeft > 0)
      if (states.size >= o.maxStates || looksLeft <= 0) break
    }
    return [...states.values()]
  }

  async #stop(): Promise<void> {
    const running = this.#running
    this.#running = undefined
    const { stopDrain } = this.#s.o
    const handedIn = this.#s.handedIn('stop')
    await Promise.all([this.#schedules.stop(stopDrain), this.#loop.stop(stopDrain, handedIn)])
    await running
    // What handlers and schedules enqueued as they ended.
    await this.#s.handedIn('stop')
    this.#s.lost.say()
    this.#waiting.close()
    this.#holdProcess()
  }

  #settled(delivery: Delivery<Claimed>, settling: WorkSettling): void {
    const { told, ran, result } = settling
    const { envelope } = ran.item
    const at = this.#s.now()
    this.#s.recorder.settled(delivery, settling, at)
    if (ran.outcome.kind === 'returned') {
      for (const { item } of ran.outcome.children) this.#s.saw(item, { status: 'pending' })
    }
    const saw = (state: Partial<WorkState> & Pick<WorkState, 'status'>) =>
      this.#s.saw(envelope, { runAt: ran.startedAt, ...state })
    switch (told.kind) {
      case 'succeeded':
        saw({ status: 'success', endAt: at })
        this.#waiting.itemEnded(envelope.id, { result: told.result })
        break
      case 'dead':
      case 'expired':
      case 'cancelled':
        saw({
          status: 'dead',
          error: told.error,
          ending: told.kind === 'dead' ? told.ending : told.kind,
          endAt: at,
        })
        this.#waiting.itemEnded(envelope.id, { error: told.error })
        break
      case 'retried':
        saw({ status: 'pending', attempt: envelope.attempt + 1, startAt: at + told.delayMs })
        break
      case 'deferred':
        saw({ status: 'pending', startAt: told.runAt })
        break
      case 'released':
        saw({ status: 'pending' })
        break
      default:
        unreachable(told)
    }
    if (result?.kind === 'applied') for (const closed of result.closed) this.#closed(closed)
    // On plain ports another process may have gone on with it, and has told of it.
    const wasUnheard = result?.kind === 'repeated' && this.#s.ledger.atomic
    const alone = wasUnheard ? closedAlone(envelope, settling.settlement) : undefined
    if (alone?.isFolded === true) void this.#closedUnheard(alone)
    else if (alone !== undefined) this.#closed(alone)
    this.#holdProcess()
  }

  /** It was waiting, and this system ended it: by a cancel, or because no worker knows its type. */
  #endedUnrun({ envelope }: ItemSummary, ending: DeadEnding, error: string, closed: readonly ClosedGroup[]): void {
    this.#s.saw(envelope, { status: 'dead', error, ending, endAt: this.#s.now() })
    this.#waiting.itemEnded(envelope.id, { error })
    for (const group of closed) this.#closed(group)
    this.#holdProcess()
  }

  /** Should the look fail, whoever waits looks for himself, as ever. */
  async #closedUnheard({ groupId, watched = false }: ClosedGroup): Promise<void> {
    try {
      const [group] = await this.#s.ledger.groups([groupId])
      if (group !== undefined)
        this.#closed({ groupId, watched, ...(group.value === undefined ? {} : { value: group.value }) })
    } catch (error) {
      this.#s.failed(error, 'commit')
    }
  }

  #closed({ groupId, value, watched }: ClosedGroup): void {
    let decoded: unknown
    try {
      decoded = value === undefined ? undefined : this.#s.o.codec.parse(value)
    } catch (error) {
      this.#s.failed(error, 'commit')
    }
    this.#s.recorder.groupDone(groupId, decoded, this.#s.now())
    this.#waiting.groupClosed(groupId, value, decoded, watched === true)
  }

  readonly #accepted = (): void => this.#holdProcess()

  /** Where work outlives the process, others may have enqueued it, and a process that ends at once has missed it. */
  #watchUnused(): void {
    const { o, ledger, registry } = this.#s
    const isDurable = ledger.unfinished === undefined
    if (o.clock.isReal !== true || o.given.keepAlive !== undefined || !isDurable || registry.types.length === 0) return
    this.#endWatch = watchUnused(registry.types)
  }

  /** The process stays while something runs, or while it owes what would die with it (`Ledger.unfinished`). */
  #holdProcess(): void {
    const { o, ledger, recorder } = this.#s
    if (o.clock.isReal !== true || o.given.keepAlive === false) return
    const isOwing = () => recorder.active.size > 0 || (ledger.unfinished?.() ?? 0) > 0
    if (this.#running !== undefined && (o.given.keepAlive === true || isOwing())) this.#hold ??= keepAlive()
    else {
      this.#hold?.()
      this.#hold = undefined
    }
  }
}
