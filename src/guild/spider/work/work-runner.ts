import { newToken } from '../../../core/ids.js'
import { booleanOption, OptionError, OptionTypeError, optionsObject } from '../../../core/options.js'
import { errorMessage } from '../../../core/text/error-text.js'
import { EventLoopTurns } from '../../../core/time/event-loop-turns.js'
import { keepAlive } from '../../../core/time/keep-alive.js'
import type { Ms } from '../../../core/time/time.js'
import { CancelledError, ShutdownDeadlineError } from '../../../source/loop/errors.js'
import type { WorkSystem } from '../../../work/create-work.js'
import { defineWork } from '../../../work/define/define-work.js'
import type { WorkBuilder, WorkContext, WorkResult } from '../../../work/define/work.js'
import type { SpiderContext } from '../context.js'
import { expireNext } from '../dispatch/deadlines.js'
import { unstickNext } from '../dispatch/unstick.js'
import { type ClaimedEngine, giveBack, takeOver } from '../engines/claim-engine.js'
import { admitNext, checkNext, collectNext, STOPPING, takeOverLapsed } from '../engines/crawl.js'
import { runEngine } from '../engines/run-engine.js'
import { settleEngine, settleHeld } from '../engines/settle-engine.js'
import { graftNext } from '../rigs/graft.js'
import type { QueueRow } from '../rigs/rig.js'
import { RigTransaction } from '../rigs/rig-transaction.js'
import { spawnNext } from '../rigs/spawn.js'
import { ITEM_CANCELLED, itemOf, settleEndedItems } from './engine-items.js'

/** The item of one engine run. */
export interface EngineItem {
  readonly rigId: string
  readonly engineId: string
  readonly attempt: number
  /** Which handing over of this run made the item. Fences are compared within one: a work system that lost it starts again. */
  readonly handover?: string
}

/** The work type that runs engines: pass it to `createWork({ work: [...] })`. */
export type EngineWork = WorkBuilder<'spider.engine', EngineItem, void, void>

/** What `start` takes. */
export interface StartSpider {
  /** A work system that was made with `spider.engineWork` among its types. */
  readonly work: Pick<WorkSystem, 'enqueue' | 'states' | 'capabilities'>
  /** Whether the process stays alive until `stop`, also while there is nothing to do. Default: true. */
  readonly keepAlive?: boolean
}

/** A Spider that runs by itself. */
export interface SpiderRunning {
  /** Stops planning; engines that run go on in the work system. */
  stop(): Promise<void>
  /** Resolves when there is nothing to do at the moment but wait. */
  settled(): Promise<void>
}

/** Out of how many candidates a planner chooses. */
const WIDTH = 8
/** How long changes of other processes are collected before one pass handles them all. */
const COLLECT_MS = 50
/** How soon a step that failed, because the store could not be reached, is tried again. */
const PAUSE_MS = 250

/**
 * Spider on the work engine. Every process that started plans (rigs, grafts, blocks) when a commit woke it, its own or another's,
 * and hands engine runs over as work items; the process that claims the item runs the engine. The lease of the item is the only one: the
 * claim in the Stacks holds its fence and never expires, and a newer fence takes it over.
 */
export class SpiderWorkRunner {
  readonly engineWork: EngineWork
  readonly #context: SpiderContext
  #work: StartSpider['work'] | undefined
  #running: Promise<void> | undefined
  #isAsked = false
  #cancelTimer = () => {}
  #cancelAgain = () => {}
  #stopListening = () => {}
  #cancelWake: (() => void) | undefined
  #letProcessEnd = () => {}
  /** Items that this process knows to be in the work system. */
  readonly #seen = new Set<string>()
  readonly #turns: EventLoopTurns
  /** When it checks all items again. */
  #checkItemsAt: Ms = 0

  constructor(context: SpiderContext) {
    this.#context = context
    this.#turns = new EventLoopTurns(context.clock)
    this.engineWork = defineWork(
      'spider.engine',
      (input: EngineItem, ctx): Promise<WorkResult<void, void>> => this.#run(input, ctx),
      // Only the store can make it throw; that passes, and until then the engine still has to run.
      { retry: { attempts: 1_000_000, max: 5_000 } },
    ) as EngineWork
  }

  /** Every commit of this process that changes what there is to do wakes it. */
  watch(): void {
    for (const book of ['queue', 'dispatch', 'deadlines', 'gates', 'slots'])
      this.#context.stacks.watch('spider', book, () => this.wake(), { failOnError: false })
  }

  start(given: StartSpider): SpiderRunning {
    const { work, keepAlive: isHolding } = optionsObject('start()', given, ['work', 'keepAlive'])
    const staysAlive = booleanOption('start().keepAlive', isHolding, true)
    const isSystem = typeof work?.enqueue === 'function' && typeof work.states === 'function'
    if (!isSystem || typeof work.capabilities?.atomic !== 'boolean')
      throw new OptionTypeError('start().work', 'a work system', work)
    if (this.#work !== undefined)
      throw new OptionError('start()', 'called once: stop the first one before', 'a second call')
    this.#work = work
    // It goes on with what another process leaves behind when it dies, however long nothing happens until then.
    if (staysAlive && this.#context.clock.isReal === true) this.#letProcessEnd = keepAlive()
    this.#context.width = WIDTH
    this.#stopListening = this.#context.stacks.onChangeElsewhere(() => this.#changedElsewhere())
    this.wake()
    void this.#again()
    return { stop: () => this.stop(), settled: () => this.#running ?? Promise.resolve() }
  }

  async stop(): Promise<void> {
    this.#work = undefined
    this.#context.width = 1
    this.#cancelTimer()
    this.#cancelAgain()
    this.#stopListening()
    this.#cancelWake?.()
    this.#cancelWake = undefined
    await this.#running
    this.#letProcessEnd()
  }

  wake(): void {
    if (this.#work === undefined) return
    this.#isAsked = true
    this.#running ??= this.#context.stacks.detached(() => this.#plan())
  }

  /** Another process has written: a writ posted by one that does not plan, a session that ended. */
  #changedElsewhere(): void {
    if (this.#work === undefined) return
    this.#cancelWake ??= this.#context.clock.after(COLLECT_MS, () => {
      this.#cancelWake = undefined
      this.wake()
    })
  }

  /** Items that were handed over to a work system which may have lost them: the same id again is harmless. */
  async #again(): Promise<void> {
    const { queue, clock } = this.#context
    try {
      for (const row of await queue.find({ where: [['kind', '=', 'item']] })) await this.#push(row)
      // Those that were not lost may have ended while no Spider ran.
      this.#checkItemsAt = 0
      this.wake()
    } catch (error) {
      if (this.#work === undefined) return
      this.#warn(error)
      this.#cancelAgain = clock.after(PAUSE_MS, () => void this.#again())
    }
  }

  async #plan(): Promise<void> {
    let pauseMs: number | undefined
    this.#cancelTimer()
    try {
      while (this.#isAsked && this.#work !== undefined) {
        this.#isAsked = false
        // One thing after the other, until there is nothing left. On a store in memory none of it waits for anything outside.
        while (this.#work !== undefined && (await this.#step())) await this.#turns.due()
      }
      pauseMs = await this.#untilDue()
    } catch (error) {
      this.#warn(error)
      pauseMs = PAUSE_MS
    } finally {
      this.#running = undefined
      if (this.#work !== undefined) {
        if (this.#isAsked && pauseMs !== PAUSE_MS) this.wake()
        else this.#cancelTimer = this.#context.clock.after(pauseMs ?? PAUSE_MS, () => this.wake())
      }
    }
  }

  #warn(error: unknown): void {
    this.#context.warn({ code: 'STEP_FAILED', message: `Spider could not go on: ${errorMessage(error)}`, error })
  }

  async #step(): Promise<boolean> {
    const context = this.#context
    return (
      (await this.#checkItems()) ||
      (await expireNext(context)) !== null ||
      (await this.#pushNext()) ||
      (await collectNext(context)) !== null ||
      (await graftNext(context)) !== null ||
      (await checkNext(context)) !== null ||
      (await takeOverLapsed(context)) ||
      (await this.#admitNext()) ||
      (await unstickNext(context)) !== null ||
      (await spawnNext(context)) !== null
    )
  }

  /** Every so often, however much else there is to do. */
  async #checkItems(): Promise<boolean> {
    const { clock, config } = this.#context
    if (this.#work === undefined || clock.monotonic() < this.#checkItemsAt) return false
    this.#checkItemsAt = clock.monotonic() + config.pollIntervalMs
    return settleEndedItems(this.#context, this.#work, this.#seen)
  }

  /** Gives the next ready engine a slot; its item is pushed after the commit. */
  async #admitNext(): Promise<boolean> {
    const turn = await admitNext(this.#context, (tx, { engineId }) => {
      tx.set(engineId, { item: 'due' })
      return { kind: 'handed over' } as const
    })
    return turn !== null && turn.kind !== 'full'
  }

  async #pushNext(): Promise<boolean> {
    const context = this.#context
    const due = { where: [['kind', '=', 'push']], orderBy: ['at', 'asc'], limit: context.width } as const
    const first = context.pick(await context.queue.find(due))
    if (first === undefined) return false
    await this.#push(first)
    return true
  }

  async #push({ rigId, engineId }: QueueRow): Promise<void> {
    const context = this.#context
    const engine = await context.engines.get(`${rigId}/${engineId}`)
    if (engine === null || engine.item === undefined || this.#work === undefined) return
    const id = itemOf(engine)
    const attempt = (engine.attemptCount ?? 0) + 1
    const input: EngineItem = { rigId, engineId, attempt, handover: newToken() }
    await this.#work.enqueue({ id, type: 'spider.engine', input }).accepted()
    this.#seen.add(id)
    await context.change(async () => {
      const tx = await RigTransaction.load(context, rigId)
      const now = tx?.engine(engineId)
      // While this waited for the answer, the item may have run, and the engine's next try may be due.
      if (tx === undefined || now?.item !== 'due' || itemOf(now) !== id) return
      tx.set(engineId, { item: 'pushed' })
      await tx.save()
    })
  }

  /** Runs an engine as the holder of its item. Its outcome is recorded; then the item is completed. */
  async #run(item: EngineItem, ctx: WorkContext): Promise<WorkResult<void, void>> {
    const context = this.#context
    const { signal } = ctx
    const claimed = await context.change(() => this.#claim(item, ctx.fence ?? 0))
    if (claimed === null) return ctx.void()
    let isGivenBack = false
    const handBack = (): void => {
      if (!isGivenBack) void giveBack(context, claimed)
      isGivenBack = true
    }
    const isShutdown = () => signal.reason instanceof ShutdownDeadlineError
    // When it is aborted and not when it ends: one that ignores the signal ends with its process soon.
    const onAbort = () => isShutdown() && handBack()
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      const outcome = await runEngine(context, claimed, signal)
      // The run was ended from outside, which is not the engine's failure: the next holder of the item runs it again.
      if (signal.reason instanceof CancelledError) {
        // The item has no next holder: the engine is cancelled with it, as when its session is.
        await settleEngine(context, claimed, { kind: 'cancelled', reason: signal.reason.why || ITEM_CANCELLED })
        throw signal.reason
      }
      if (outcome.kind === 'failed' && signal.aborted) throw signal.reason
      if (outcome.kind === 'failed' && context.isStopping) throw new Error(STOPPING)
      await settleHeld(context, claimed, outcome, signal)
      return ctx.void()
    } catch (error) {
      // A lost lease is a lapse; after everything else that ends here this process is alive, so it gives the claim back. It does
      // not wait for that: a work system that stops gives back what ends immediately, and leaves the rest to its lease.
      if (!signal.aborted || isShutdown()) handBack()
      throw error
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  async #claim({ rigId, engineId, attempt, handover = '' }: EngineItem, fence: number): Promise<ClaimedEngine | null> {
    const context = this.#context
    const tx = await RigTransaction.load(context, rigId)
    const engine = tx?.engine(engineId)
    if (tx === undefined || engine?.status !== 'running') return null
    if (engine.item === undefined || engine.sessionId !== undefined || (engine.attemptCount ?? 0) + 1 !== attempt)
      return null
    // A newer lease holds the item. An item of another handover was made because that one is gone, and takes over.
    const { claim } = engine
    if (claim?.fence !== undefined && claim.fence >= fence && (claim.handover ?? '') === handover) return null
    const token = newToken()
    tx.set(engineId, { item: 'pushed' })
    const taken = await takeOver(context, tx, engine, { owner: context.owner, token, fence, handover })
    return taken.kind === 'claimed' ? taken.claimed : null
  }

  /** How long there is nothing to do: until a block, a hold or a lease is due, and at most the poll interval. */
  async #untilDue(): Promise<number> {
    const { queue, dispatch, deadlines, clock, config } = this.#context
    let waitMs = config.pollIntervalMs
    for (const kind of ['block', 'hold', 'launch-hold', 'lease']) {
      const [next] = await queue.find({ where: [['kind', '=', kind]], orderBy: ['dueAt', 'asc'], limit: 1 })
      if (next !== undefined) waitMs = Math.min(waitMs, Date.parse(next.dueAt) - clock.now())
    }
    const delayed = { where: [['state', '=', 'delayed']], orderBy: ['dueAt', 'asc'], limit: 1 } as const
    const dues = [...(await dispatch.find(delayed)), ...(await deadlines.find({ orderBy: ['dueAt', 'asc'], limit: 1 }))]
    for (const { dueAt } of dues) if (dueAt !== undefined) waitMs = Math.min(waitMs, Date.parse(dueAt) - clock.now())
    return Math.max(1, waitMs)
  }
}
