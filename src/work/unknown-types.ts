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
/** So many items are read and ended at a time, in one commit. */
const PAGE = 200

/** Hears of an item that has ended, with its error and the groups that it closed. */
type Ended = (view: ItemSummary, error: string, closed: readonly ClosedGroup[]) => void

interface Unhandled {
  readonly queue: string
  readonly type: string
}

/**
 * `unknownTypeTimeout`: ends items that have been ready for that long while no live worker handled their type. How old an item is
 * says nothing: a backlog may be hours old when its worker restarts. So the time counts from when this process first saw that
 * no worker handles the type, and from the start whenever one does. It asks who is alive again before each page of items that it
 * ends, and only ends what still waits: during a deploy the new worker gets them.
 */
export class UnknownTypes {
  readonly #s: Shared
  readonly #inspect: Inspect
  readonly #timeoutMs: Ms
  readonly #ended: Ended
  /** Since when no live worker handles a type, in monotonic time. */
  #since: ReadonlyMap<string, Ms> = new Map()
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
    const { registry, worker, o } = this.#s
    // Nothing that has ended is asked for: only since when the oldest of each type waits. Paused ones tell none.
    const flow = await this.#inspect.flow(0)
    const strange = flow.filter(
      ({ queue, type, oldestDueAt }) =>
        oldestDueAt !== undefined && worker.queues.includes(queue) && registry.find(type) === undefined,
    )
    const isHandled = strange.length === 0 ? () => false : await this.#handled()
    const nowMs = o.clock.monotonic()
    const unhandled = strange.filter((one) => !isHandled(one))
    const before = this.#since
    this.#since = new Map(unhandled.map((one) => [keyOf(one), before.get(keyOf(one)) ?? nowMs]))
    const dueBefore = this.#s.now() - this.#timeoutMs
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
    const now = this.#s.now()
    const alive = workers.filter((one) => isAlive(one, now))
    return ({ queue, type }) => alive.some((one) => runs(one, queue, type))
  }

  /** In a commit of its own: what callers enqueue waits for none of it, and has its buffer for itself. */
  async #end(views: readonly ItemSummary[]): Promise<void> {
    if (views.length === 0) return
    const { ledger, recorder, o } = this.#s
    const errors = views.map(
      ({ envelope: { type } }) =>
        `unknown work type: no live worker handled "${type}" for ${this.#timeoutMs} ms (unknownTypeTimeout)`,
    )
    const results = await ledger.commit(views.map(({ envelope }, i) => unrouted(envelope, errors[i]!, o.keep)))
    for (const [i, result] of results.entries()) {
      if (result.kind === 'failed') throw result.error
      // Stale: a worker has claimed it meanwhile, or a caller has cancelled it.
      if (result.kind !== 'applied') continue
      recorder.unrouted(views[i]!.envelope, errors[i]!, this.#s.now())
      this.#ended(views[i]!, errors[i]!, result.closed)
    }
  }
}

const keyOf = ({ queue, type }: Unhandled): string => JSON.stringify([queue, type])
