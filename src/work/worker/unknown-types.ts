import type { At, Ms } from '../../core/time/time.js'
import type { Inspect, ItemSummary } from '../../ports/inspect.js'
import type { ClosedGroup } from '../../ports/settlement.js'
import { NotSupportedError } from '../control/pause.js'
import type { EngineContext } from '../engine-context.js'
import { unrouted } from '../settle/settle.js'
import { isAlive, runs } from './worker-registration.js'

/** How often to check: items have waited for their whole timeout, and need not end to the second. */
const LONGEST_MS: Ms = 15_000
const SHORTEST_MS: Ms = 1_000
/** How many items are read and ended in one commit. */
const PAGE = 200

/** Called for an item that has ended, with its error and the groups that it closed. */
type Ended = (view: ItemSummary, error: string, closed: readonly ClosedGroup[]) => void

interface Unhandled {
  readonly queue: string
  readonly type: string
}

/**
 * `unknownTypeTimeout`: ends items that have been ready for that long while no live worker handled their type. The age of an item
 * does not count: a backlog may be hours old when its worker restarts. The time counts from when this process first saw that no
 * worker handles the type, and starts again whenever one does. Before each page of items it reads the live workers again, and it
 * ends only what still waits: during a deploy the new worker gets the items.
 */
export class UnknownTypes {
  readonly #context: EngineContext
  readonly #inspect: Inspect
  readonly #timeoutMs: Ms
  readonly #ended: Ended
  /** Since when no live worker handles a type, in monotonic time. */
  #since: ReadonlyMap<string, Ms> = new Map()
  #nextMs = Number.NEGATIVE_INFINITY
  #checking: Promise<void> | undefined
  #isStopping = false

  /** Undefined without the option. */
  static of(context: EngineContext, ended: Ended): UnknownTypes | undefined {
    const { unknownTypeTimeout } = context.o
    if (unknownTypeTimeout === undefined) return undefined
    const { inspect } = context.ledger
    if (inspect === undefined)
      throw new NotSupportedError('tell which types its workers handle (unknownTypeTimeout)', 'inspect')
    return new UnknownTypes(context, inspect, unknownTypeTimeout, ended)
  }

  private constructor(context: EngineContext, inspect: Inspect, timeoutMs: Ms, ended: Ended) {
    this.#context = context
    this.#inspect = inspect
    this.#timeoutMs = timeoutMs
    this.#ended = ended
  }

  afterClaim(nowMs: Ms): void {
    if (nowMs < this.#nextMs || this.#checking !== undefined) return
    this.#nextMs = nowMs + Math.min(LONGEST_MS, Math.max(SHORTEST_MS, this.#timeoutMs))
    this.#isStopping = false
    this.#checking = this.#check()
      .catch((error) => this.#context.failed(error, 'queue'))
      .finally(() => {
        this.#checking = undefined
      })
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#checking
  }

  async #check(): Promise<void> {
    const { registry, worker, o } = this.#context
    // No ended items are counted: only since when the oldest of each type waits. Paused ones have none.
    const throughput = await this.#inspect.throughput(0)
    const unknown = throughput.filter(
      ({ queue, type, oldestDueAt }) =>
        oldestDueAt !== undefined && worker.queues.includes(queue) && registry.find(type) === undefined,
    )
    const isHandled = unknown.length === 0 ? () => false : await this.#handled()
    const nowMs = o.clock.monotonic()
    const unhandled = unknown.filter((one) => !isHandled(one))
    const before = this.#since
    this.#since = new Map(unhandled.map((one) => [keyOf(one), before.get(keyOf(one)) ?? nowMs]))
    const dueBefore = this.#context.now() - this.#timeoutMs
    for (const one of unhandled) {
      const isOver = nowMs - this.#since.get(keyOf(one))! >= this.#timeoutMs
      if (isOver && one.oldestDueAt! <= dueBefore) await this.#endAll(one, dueBefore)
    }
  }

  async #endAll(of: Unhandled, dueBefore: At): Promise<void> {
    let cursor: string | undefined
    do {
      const query = { state: 'waiting' as const, queue: of.queue, type: of.type, limit: PAGE }
      const page = await this.#inspect.list(cursor === undefined ? query : { ...query, cursor })
      const views = page.items.filter(({ dueAt }) => dueAt !== undefined && dueAt <= dueBefore)
      if (views.length > 0 && (await this.#handled())(of)) return
      await this.#end(views)
      cursor = page.next
    } while (cursor !== undefined && !this.#isStopping)
  }

  /** Which types live workers handle, as of now. */
  async #handled(): Promise<(of: Unhandled) => boolean> {
    const workers = await this.#inspect.workers()
    const now = this.#context.now()
    const alive = workers.filter((one) => isAlive(one, now))
    return ({ queue, type }) => alive.some((one) => runs(one, queue, type))
  }

  /** In its own commit: enqueues do not wait for it, and keep their buffer to themselves. */
  async #end(views: readonly ItemSummary[]): Promise<void> {
    if (views.length === 0) return
    const { ledger, recorder, o } = this.#context
    const errors = views.map(
      ({ envelope: { type } }) =>
        `unknown work type: no live worker handled "${type}" for ${this.#timeoutMs} ms (unknownTypeTimeout)`,
    )
    const results = await ledger.commit(views.map(({ envelope }, i) => unrouted(envelope, errors[i]!, o.keep)))
    for (const [i, result] of results.entries()) {
      if (result.kind === 'failed') throw result.error
      // Stale: meanwhile a worker has claimed it, or a caller has cancelled it.
      if (result.kind !== 'applied') continue
      recorder.unrouted(views[i]!.envelope, errors[i]!, this.#context.now())
      this.#ended(views[i]!, errors[i]!, result.closed)
    }
  }
}

const keyOf = ({ queue, type }: Unhandled): string => JSON.stringify([queue, type])
