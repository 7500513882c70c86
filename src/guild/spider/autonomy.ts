import { errorMessage } from '../../core/error-text.js'
import { newToken } from '../../core/ids.js'
import { OptionError, OptionTypeError } from '../../core/options.js'
import type { Ms } from '../../core/time.js'
import { Turns } from '../../core/turns.js'
import { CancelledError, ShutdownDeadlineError } from '../../source/loop/errors.js'
import type { WorkSystem } from '../../work/create-work.js'
import { defineWork } from '../../work/define-work.js'
import type { WorkBuilder, WorkContext, WorkResult } from '../../work/work.js'
import { admit, type Claimed, claimedFrom, giveBack, MAX_LAPSES, takenOver } from './claim.js'
import { checkNext, collectNext, firstReady, LEASE_EXPIRED, NOT_AGAIN, STOPPING, takeOverLapsed } from './crawl.js'
import { endBeside, failEngine } from './end-rig.js'
import type { Floor } from './floor.js'
import { graftNext } from './graft.js'
import { itemOf } from './item-id.js'
import { ITEM_CANCELLED, lookAfterItems } from './items.js'
import type { QueueRow } from './rig.js'
import { runEngine } from './run.js'
import { settle } from './settle.js'
import { Sheet } from './sheet.js'
import { spawnNext } from './spawn.js'
import { unstickNext } from './unstick.js'

/** The item of one engine run. */
export interface EngineItem {
  readonly rigId: string
  readonly engineId: string
  readonly attempt: number
  /** Which handing over of this run made the item. Fences are compared within one: a work system that lost it begins anew. */
  readonly handover?: string
}

/** The work type that runs engines: pass it to `createWork({ work: [...] })`. */
export type EngineWork = WorkBuilder<'spider.engine', EngineItem, void, void>

/** What `start` takes. */
export interface StartSpider {
  /** A work system that was made with `spider.engineWork` among its types. */
  readonly work: Pick<WorkSystem, 'enqueue' | 'states' | 'capabilities'>
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
/** How long what other processes tell of is collected: one look answers all of it. */
const HEARD_MS = 50
/** How soon a step that failed, because the store could not be reached, is tried again. */
const PAUSE_MS = 250

/**
 * Spider on the work engine. Every process that started plans (rigs, grafts, blocks) when a commit woke it, its own or another's,
 * and hands engine runs over as work items; whoever claims the item runs the engine. The lease of the item is the only one: the
 * claim in the Stacks holds its fence and never expires, and a newer fence takes it over.
 */
export class Autonomy {
  readonly engineWork: EngineWork
  readonly #floor: Floor
  #work: StartSpider['work'] | undefined
  #running: Promise<void> | undefined
  #isAsked = false
  #cancelTimer = () => {}
  #cancelAgain = () => {}
  #stopHearing = () => {}
  #cancelHeard: (() => void) | undefined
  /** Items that this process knows to be in the work system. */
  readonly #seen = new Set<string>()
  readonly #turns: Turns
  /** When it looks after all items again. */
  #lookAt: Ms = 0

  constructor(floor: Floor) {
    this.#floor = floor
    this.#turns = new Turns(floor.clock)
    this.engineWork = defineWork(
      'spider.engine',
      (input: EngineItem, ctx): Promise<WorkResult<void, void>> => this.#run(input, ctx),
      // Only the store can make it throw; that passes, and the engine stays owed until it does.
      { retry: { attempts: 1_000_000, max: 5_000 } },
    ) as EngineWork
  }

  /** Every commit of this process that changes what there is to do wakes it. */
  watch(): void {
    for (const book of ['queue', 'dispatch', 'gates', 'slots'])
      this.#floor.stacks.watch('spider', book, () => this.wake(), { failOnError: false })
  }

  start({ work }: StartSpider): SpiderRunning {
    const isSystem = typeof work?.enqueue === 'function' && typeof work.states === 'function'
    if (!isSystem || typeof work.capabilities?.atomic !== 'boolean')
      throw new OptionTypeError('start().work', 'a work system', work)
    if (this.#work !== undefined)
      throw new OptionError('start()', 'called once: stop the first one before', 'a second call')
    this.#work = work
    this.#floor.width = WIDTH
    this.#stopHearing = this.#floor.stacks.onChangeElsewhere(() => this.#heard())
    this.wake()
    void this.#again()
    return { stop: () => this.stop(), settled: () => this.#running ?? Promise.resolve() }
  }

  async stop(): Promise<void> {
    this.#work = undefined
    this.#floor.width = 1
    this.#cancelTimer()
    this.#cancelAgain()
    this.#stopHearing()
    this.#cancelHeard?.()
    this.#cancelHeard = undefined
    await this.#running
  }

  wake(): void {
    if (this.#work === undefined) return
    this.#isAsked = true
    this.#running ??= this.#floor.stacks.detached(() => this.#plan())
  }

  /** Another process has written: a writ posted by one that does not plan, a session that ended. */
  #heard(): void {
    if (this.#work === undefined) return
    this.#cancelHeard ??= this.#floor.clock.after(HEARD_MS, () => {
      this.#cancelHeard = undefined
      this.wake()
    })
  }

  /** Items that were handed over to a work system which may have lost them: the same id again is harmless. */
  async #again(): Promise<void> {
    const { queue, clock } = this.#floor
    try {
      for (const row of await queue.find({ where: [['kind', '=', 'item']] })) await this.#push(row)
      // Those that were not lost may have ended while nobody was there.
      this.#lookAt = 0
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
        else this.#cancelTimer = this.#floor.clock.after(pauseMs ?? PAUSE_MS, () => this.wake())
      }
    }
  }

  #warn(error: unknown): void {
    this.#floor.warn({ code: 'STEP_FAILED', message: `Spider could not go on: ${errorMessage(error)}`, error })
  }

  async #step(): Promise<boolean> {
    const floor = this.#floor
    return (
      (await this.#lookIfDue()) ||
      (await this.#pushNext()) ||
      (await collectNext(floor)) !== null ||
      (await graftNext(floor)) !== null ||
      (await checkNext(floor)) !== null ||
      (await takeOverLapsed(floor)) ||
      (await this.#admitNext()) ||
      (await unstickNext(floor)) !== null ||
      (await spawnNext(floor)) !== null
    )
  }

  /** Every so often, however much else there is to do. */
  async #lookIfDue(): Promise<boolean> {
    const { clock, config } = this.#floor
    if (this.#work === undefined || clock.monotonic() < this.#lookAt) return false
    this.#lookAt = clock.monotonic() + config.pollIntervalMs
    return lookAfterItems(this.#floor, this.#work, this.#seen)
  }

  /** Gives the next ready engine a slot; its item is pushed after the commit. */
  async #admitNext(): Promise<boolean> {
    const floor = this.#floor
    const first = await firstReady(floor)
    if (first === undefined) return false
    return floor.change(async () => {
      const sheet = await Sheet.load(floor, first.rigId)
      const engine = sheet?.engine(first.engineId)
      if (sheet === undefined || engine === undefined || !sheet.isActive || !sheet.isReady(engine)) return true
      if (!sheet.hasRoom) {
        await sheet.save()
        return true
      }
      const admitted = await admit(floor, sheet, engine)
      if (admitted.kind !== 'admitted') return admitted.kind === 'acted'
      sheet.set(engine.engineId, { item: 'due' })
      await sheet.save()
      return true
    })
  }

  async #pushNext(): Promise<boolean> {
    const floor = this.#floor
    const due = { where: [['kind', '=', 'push']], orderBy: ['at', 'asc'], limit: floor.width } as const
    const first = floor.pick(await floor.queue.find(due))
    if (first === undefined) return false
    await this.#push(first)
    return true
  }

  async #push({ rigId, engineId }: QueueRow): Promise<void> {
    const floor = this.#floor
    const engine = await floor.engines.get(`${rigId}/${engineId}`)
    if (engine === null || engine.item === undefined || this.#work === undefined) return
    const id = itemOf(engine)
    const attempt = (engine.attemptCount ?? 0) + 1
    const input: EngineItem = { rigId, engineId, attempt, handover: newToken() }
    await this.#work.enqueue({ id, type: 'spider.engine', input }).accepted()
    this.#seen.add(id)
    await floor.change(async () => {
      const sheet = await Sheet.load(floor, rigId)
      const now = sheet?.engine(engineId)
      // While this waited for the answer, the item may have run, and the engine's next try may be due.
      if (sheet === undefined || now?.item !== 'due' || itemOf(now) !== id) return
      sheet.set(engineId, { item: 'pushed' })
      await sheet.save()
    })
  }

  /** Runs an engine as the holder of its item. Whatever it comes to is recorded; then the item has succeeded. */
  async #run(item: EngineItem, ctx: WorkContext): Promise<WorkResult<void, void>> {
    const floor = this.#floor
    const { signal } = ctx
    const claimed = await floor.change(() => this.#claim(item, ctx.fence ?? 0))
    if (claimed === null) return ctx.void()
    let isGivenBack = false
    const handBack = (): void => {
      if (!isGivenBack) void giveBack(floor, claimed)
      isGivenBack = true
    }
    const isShutdown = () => signal.reason instanceof ShutdownDeadlineError
    // When it is told to stop and not when it does: one that does not listen is cut off with its process soon.
    const onAbort = () => isShutdown() && handBack()
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      const outcome = await runEngine(floor, claimed, signal)
      // The run was ended from outside, which is not the engine's failure: whoever gets the item next runs it again.
      if (signal.reason instanceof CancelledError) {
        // Nobody gets the item next: what was cancelled with it is the engine, as when its session is.
        await settle(floor, claimed, { kind: 'cancelled', reason: signal.reason.why || ITEM_CANCELLED })
        throw signal.reason
      }
      if (outcome.kind === 'failed' && signal.aborted) throw signal.reason
      if (outcome.kind === 'failed' && floor.isStopping) throw new Error(STOPPING)
      await settle(floor, claimed, outcome)
      return ctx.void()
    } catch (error) {
      // A lease that was lost is a lapse; everything else that ends here, this process has lived to tell. Nobody waits for that: a
      // work system that stops gives back what ends at once, and leaves the rest to its lease.
      if (!signal.aborted || isShutdown()) handBack()
      throw error
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  async #claim({ rigId, engineId, attempt, handover = '' }: EngineItem, fence: number): Promise<Claimed | null> {
    const floor = this.#floor
    const sheet = await Sheet.load(floor, rigId)
    const engine = sheet?.engine(engineId)
    if (sheet === undefined || engine?.status !== 'running') return null
    if (engine.item === undefined || engine.sessionId !== undefined || (engine.attemptCount ?? 0) + 1 !== attempt)
      return null
    // Somebody holds the item by a newer lease. One of another handover was made because that item is gone, and takes over.
    const { claim } = engine
    if (claim?.fence !== undefined && claim.fence >= fence && (claim.handover ?? '') === handover) return null
    if (!sheet.isActive) {
      await endBeside(floor, sheet, engineId, NOT_AGAIN)
      return null
    }
    const { lapses, ...counted } = takenOver(engine)
    if (lapses >= MAX_LAPSES) {
      await failEngine(floor, sheet, engineId, LEASE_EXPIRED)
      return null
    }
    const token = newToken()
    sheet.set(engineId, { claim: { owner: floor.owner, token, fence, handover, ...counted }, lapses, item: 'pushed' })
    await sheet.save()
    return claimedFrom(sheet, engine, token)
  }

  /** How long there is nothing to do: until a block, a hold or a lease is due, and at most the safety net. */
  async #untilDue(): Promise<number> {
    const { queue, clock, config } = this.#floor
    let waitMs = config.pollIntervalMs
    for (const kind of ['block', 'hold', 'lease']) {
      const [next] = await queue.find({ where: [['kind', '=', kind]], orderBy: ['dueAt', 'asc'], limit: 1 })
      if (next !== undefined) waitMs = Math.min(waitMs, Date.parse(next.dueAt) - clock.now())
    }
    return Math.max(1, waitMs)
  }
}
