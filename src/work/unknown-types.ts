import type { At, Ms } from '../core/time.js'
import type { Inspect, ItemSummary } from '../ports/ledger.js'
import type { ClosedGroup } from '../ports/settlement.js'
import { isAlive, runs } from './alive.js'
import { NotSupportedError } from './controls/pausing.js'
import { unrouted } from './settle.js'
import type { Shared } from './shared.js'

/** How often to look at most: items have waited for their whole timeout, and need not be ended to the second. */
const LONGEST_MS: Ms = 15_000
const SHORTEST_MS: Ms = 1_000
/** So many items are read and ended at a time. */
const PAGE = 500

/** Hears of an item that has ended, with its error and the groups that it closed. */
type Ended = (view: ItemSummary, error: string, closed: readonly ClosedGroup[]) => void

interface Unhandled {
  readonly queue: string
  readonly type: string
}

/**
 * `unknownTypeTimeout`: ends items that have been ready for that long and that no live worker handles. It asks who is alive
 * again before each page of items that it ends, and only ends what still waits: during a deploy the new worker gets them.
 */
export class UnknownTypes {
  readonly #s: Shared
  readonly #inspect: Inspect
  readonly #timeoutMs: Ms
  readonly #ended: Ended
  #nextMs = Number.NEGATIVE_INFINITY
  #looking: Promise<void> | undefined
  #isStopping = false

  /** Undefined where nobody asked for it. */
  static of(shared: Shared, ended: Ended): UnknownTypes | undefined {
    const { unknownTypeTimeout } = shared.o
    if (unknownTypeTimeout === undefined) return undefined
    const { inspect } = shared.ledger
    if (inspect === undefined)
      throw new NotSupportedError('tell which types its workers handle (unknownTypeTimeout)', 'inspect')
    return new UnknownTypes(shared, inspect, unknownTypeTimeout, ended)
  }

  private constructor(shared: Shared, inspect: Inspect, timeoutMs: Ms, ended: Ended) {
    this.#s = shared
    this.#inspect = inspect
    this.#timeoutMs = timeoutMs
    this.#ended = ended
  }

  /** A look at the queues is over. */
  looked(nowMs: Ms): void {
    if (nowMs < this.#nextMs || this.#looking !== undefined) return
    this.#nextMs = nowMs + Math.min(LONGEST_MS, Math.max(SHORTEST_MS, this.#timeoutMs))
    this.#isStopping = false
    this.#looking = this.#look()
      .catch((error) => this.#s.failed(error, 'queue'))
      .finally(() => {
        this.#looking = undefined
      })
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#looking
  }

  async #look(): Promise<void> {
    const { registry, worker } = this.#s
    // Nothing that has ended is asked for: only since when the oldest of each type waits. Paused ones tell none.
    const flow = await this.#inspect.flow(0)
    const dueBefore = this.#s.now() - this.#timeoutMs
    const stale = flow.filter(
      ({ queue, type, oldestDueAt = Infinity }) =>
        oldestDueAt <= dueBefore && worker.queues.includes(queue) && registry.find(type) === undefined,
    )
    for (const one of stale) await this.#endAll(one, dueBefore)
  }

  async #endAll(of: Unhandled, dueBefore: At): Promise<void> {
    let cursor: string | undefined
    do {
      const query = { state: 'waiting' as const, queue: of.queue, type: of.type, limit: PAGE }
      const page = await this.#inspect.list(cursor === undefined ? query : { ...query, cursor })
      const views = page.items.filter(({ dueAt }) => dueAt !== undefined && dueAt <= dueBefore)
      if (views.length > 0 && (await this.#isHandled(of))) return
      await Promise.all(views.map((view) => this.#end(view)))
      cursor = page.next
    } while (cursor !== undefined && !this.#isStopping)
  }

  async #isHandled({ queue, type }: Unhandled): Promise<boolean> {
    const workers = await this.#inspect.workers()
    const now = this.#s.now()
    return workers.some((one) => isAlive(one, now) && runs(one, queue, type))
  }

  async #end(view: ItemSummary): Promise<void> {
    const { envelope } = view
    const error = `unknown work type: no live worker handled "${envelope.type}" within ${this.#timeoutMs} ms (unknownTypeTimeout)`
    const result = await this.#s.commits.add(unrouted(envelope, error, this.#s.o.keep))
    if (result.kind === 'failed') throw result.error
    // Stale: a worker has claimed it meanwhile, or somebody has cancelled it.
    if (result.kind !== 'applied') return
    this.#s.recorder.unrouted(envelope, error, this.#s.now())
    this.#ended(view, error, result.closed)
  }
}
