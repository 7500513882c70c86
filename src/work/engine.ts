import { keepAlive } from '../core/keep-alive.js'
import { unreachable } from '../core/unreachable.js'
import type { Claimed } from '../ports/item.js'
import type { OpenedLedger } from '../ports/native.js'
import type { Ports } from '../ports/ports.js'
import type { ClosedGroup } from '../ports/settlement.js'
import type { Delivery } from '../source/loop/delivery.js'
import type { ActiveWork } from './active.js'
import type { Handle } from './handle.js'
import type { Registry } from './registry.js'
import type { WorkSettling } from './runner.js'
import { Shared } from './shared.js'
import { stateOf } from './states.js'
import { Submitter } from './submitter.js'
import type { ResolvedSystemOptions } from './system-options.js'
import { Waiting } from './waiting.js'
import type { Work, WorkInstanceOptions, WorkState } from './work.js'
import { WorkLoop } from './work-loop.js'

/**
 * Carries items from enqueue to settlement. It decides nothing itself: what happens to an item is decided by pure functions
 * (`submit`, `route`, `settle`), when it runs by doers, and what is written by the ledger.
 */
export class Engine {
  readonly #s: Shared
  readonly #submitter: Submitter
  readonly #waiting: Waiting
  readonly #loop: WorkLoop
  #running: Promise<unknown> | undefined
  #stopping: Promise<void> | undefined
  #hold: (() => void) | undefined
  #isWanted = false

  constructor(o: ResolvedSystemOptions, ports: Ports, opened: OpenedLedger, registry: Registry) {
    this.#s = new Shared(o, ports, opened, registry)
    this.#waiting = new Waiting(this.#s)
    this.#loop = new WorkLoop(this.#s, {
      settled: (delivery, settling) => this.#settled(delivery, settling),
      closed: (group) => this.#closed(group),
      moved: () => this.#holdProcess(),
    })
    this.#submitter = new Submitter(this.#s, (item, askedMs) => this.#loop.runDirectly(item, askedMs))
  }

  enqueue(work: Work, options: WorkInstanceOptions | undefined): Handle {
    return this.#waiting.handle(this.#submitter.submit(work, options), this.#accepted)
  }

  start(): void {
    this.#isWanted = true
    // A start during a stop takes effect when that is over: two loops at once would be two workers.
    if (this.#running !== undefined || this.#stopping !== undefined) return
    this.#waiting.open()
    this.#running = this.#loop.run().catch((error) => this.#s.failed(error, 'queue'))
    this.#holdProcess()
  }

  stop(): Promise<void> {
    this.#isWanted = false
    this.#stopping ??= this.#stop().finally(() => {
      this.#stopping = undefined
      if (this.#isWanted) this.start()
    })
    return this.#stopping
  }

  active(): ActiveWork[] {
    return this.#s.recorder.active.list()
  }

  async list(): Promise<WorkState[]> {
    const { ledger, known, o, recorder } = this.#s
    if (ledger.inspect === undefined) return known?.list() ?? []
    const running = recorder.active.running()
    const states: WorkState[] = []
    let cursor: string | undefined
    do {
      const page = await ledger.inspect.list({ limit: 1_000, ...(cursor === undefined ? {} : { cursor }) })
      states.push(...page.items.map((view) => stateOf(view, running.get(view.envelope.id))))
      cursor = page.next
    } while (cursor !== undefined && states.length < o.maxStates)
    return states
  }

  async #stop(): Promise<void> {
    const running = this.#running
    this.#running = undefined
    await this.#loop.stop(this.#s.o.stopDrain)
    await running
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
        saw({ status: 'dead', error: told.error, endAt: at })
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
    this.#holdProcess()
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
