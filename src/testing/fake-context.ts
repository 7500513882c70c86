import { memoryStore } from '../backends/memory/index.js'
import { defaultCodec } from '../core/codec/codec.js'
import { defined } from '../core/defined.js'
import { integer, optional, readOptions, unchecked } from '../core/read-options.js'
import { errorText } from '../core/text/error-text.js'
import type { At } from '../core/time/time.js'
import type { ItemView } from '../ports/inspect.js'
import type { ClaimedItem } from '../ports/item.js'
import { Delivery } from '../source/loop/delivery.js'
import { CancelledError } from '../source/loop/errors.js'
import type { DependencyCondition, Work, WorkContext, WorkInstanceOptions } from '../work/define/work.js'
import { dependentsResults } from '../work/run/dependents-results.js'
import { RunContext } from '../work/run/run-context.js'
import { textOf } from '../work/settle/group-value.js'
import { checkReturned, isNode, type ResultNode } from '../work/settle/result-tree.js'
import { statesOf } from '../work/wait/states.js'
import { CLAIM_TTL_MS } from '../work/worker/worker-loop.js'
import { FakeClock } from './fake-clock.js'

/** An item that came before, and what became of it: it has a result, or the error with which it died. */
export type FakeDependent =
  | { readonly work: Work; readonly result: unknown }
  | { readonly work: Work; readonly error: unknown }

/** Options of {@link fakeContext}. All optional. */
export interface FakeContextOptions {
  /** The name that errors give the type. Default `'fake'`. */
  readonly type?: string
  /** Default `'fake-item'`. */
  readonly id?: string
  /** Default `'fake-group'`. */
  readonly groupId?: string
  /** Default 1. */
  readonly attempt?: number
  readonly parent?: string
  /** What the item waited for, in its order: the ids of `ctx.dependents`, for `ctx.results` and `ctx.states`. */
  readonly dependents?: readonly FakeDependent[]
  readonly deadline?: At
  /** Default 1: no earlier run has lost its lease. */
  readonly deliveries?: number
  /** Default: as many as `deliveries`. */
  readonly fence?: number
  /** Keys that others have claimed today: `ctx.claim` is false for them. */
  readonly claimed?: readonly string[]
  /** A signal of yours that aborts the run. `ctx.abort()` does so without one. */
  readonly signal?: AbortSignal
  /** The clock of the test. Default: a new one. */
  readonly clock?: FakeClock
}

/** What a handler asked for when it returned. */
export interface ReturnedOutcome {
  /** The item's own result, as a caller gets it. */
  readonly result: unknown
  /** It locks the value of the group. */
  readonly final: boolean
  /** What folds the result into the value of the group. */
  readonly append?: (existing: unknown) => unknown
  /** The works that are queued immediately, and the outcomes that were queued among them. */
  readonly queued: readonly (Work | ReturnedOutcome)[]
  /** The options that they were queued with. */
  readonly options?: WorkInstanceOptions
  /** What `.next` queues, link by link. */
  readonly next: readonly ReturnedNext[]
}

/** One `.next` of a returned instruction. */
export interface ReturnedNext {
  readonly queued: readonly (Work | ReturnedOutcome)[]
  readonly condition: DependencyCondition
  readonly options?: WorkInstanceOptions
}

/** A context for a handler that a test calls by itself, and what the handler did with it. */
export interface FakeContext extends WorkContext {
  readonly clock: FakeClock
  /** What the handler reported and asked for, in its order. */
  readonly calls: {
    readonly progress: readonly unknown[]
    readonly claim: readonly string[]
    readonly states: readonly (readonly string[])[]
    readonly results: number
  }
  /** Fires `ctx.signal`. Default reason: a cancel. Give it `new LeaseLostError()` or another one to test that. */
  abort(reason?: unknown): void
  /**
   * What the engine would make of what the handler returned. Rejects with the error of the handler, and with what the engine
   * refuses: `NOT_RETURNED`, `NOT_A_RESULT`, a result that cannot be encoded.
   */
  outcomeOf(returned: unknown): Promise<ReturnedOutcome>
}

/**
 * A context for a unit test of one handler, without a system, a backend or a worker. It is the engine's own context: its
 * instructions are the real ones, and `outcomeOf` reads them as the engine does.
 *
 * @example
 * ```ts
 * const ctx = fakeContext({ attempt: 3 })
 * const { result, queued } = await ctx.outcomeOf(placeOrder.handler({ id: 'o-1' }, ctx))
 * ```
 */
export function fakeContext(options?: FakeContextOptions): FakeContext {
  const given = readOptions('fakeContext', options, {
    type: unchecked,
    id: unchecked,
    groupId: unchecked,
    attempt: integer({ default: 1, min: 1 }),
    parent: unchecked,
    dependents: unchecked,
    deadline: unchecked,
    deliveries: integer({ default: 1, min: 1 }),
    fence: optional(integer({ min: 1 })),
    claimed: unchecked,
    signal: unchecked,
    clock: unchecked,
  })
  const { id = 'fake-item', groupId = 'fake-group', type = 'fake', clock = new FakeClock() } = given
  const { attempt, deliveries, fence = deliveries } = given
  const at = clock.now()
  const dependents = (given.dependents ?? []).map((one) => viewOf(one, groupId, at))
  const known = new Map(dependents.map((view) => [view.envelope.id, view]))
  const item: ClaimedItem = {
    lease: { id, queue: 'fake', token: 'fake', fence, until: Infinity },
    envelope: {
      id,
      groupId,
      type,
      attempt,
      input: 'null',
      queueAt: at,
      startAt: at,
      priority: 0,
      ...defined({ parent: given.parent, deadline: given.deadline, dependents: given.dependents && [...known.keys()] }),
    },
    lapses: deliveries - 1,
    crashes: 0,
    deliveries,
  }
  const ledger = { read: async (ids: readonly string[]) => ids.map((one) => known.get(one)) }
  const store = memoryStore({ clock })
  for (const key of given.claimed ?? []) store.setIfNotExists(key, 'another', CLAIM_TTL_MS)
  const calls = { progress: [] as unknown[], claim: [] as string[], states: [] as (readonly string[])[], results: 0 }
  const delivery = new Delivery(item, clock.monotonic())
  const run = new RunContext(delivery, {
    states: (ids) => {
      calls.states.push(ids)
      return statesOf({ ledger, known: undefined }, ids)
    },
    claim: async (key) => {
      calls.claim.push(key)
      return store.setIfNotExists(key, id, CLAIM_TTL_MS)
    },
    results: (_, of) => {
      calls.results += 1
      return dependentsResults(
        { ledger, registry: { codecOf: () => defaultCodec }, o: { codec: defaultCodec } },
        item,
        of,
      )
    },
    progress: (_, value) => {
      calls.progress.push(asStored(value, `The progress of work "${type}"`))
    },
  })
  const { signal } = given
  if (signal?.aborted === true) delivery.abort(signal.reason)
  signal?.addEventListener('abort', () => delivery.abort(signal.reason), { once: true })
  const fake: Omit<FakeContext, keyof WorkContext> = {
    clock,
    calls,
    abort: (reason = new CancelledError()) => delivery.abort(reason),
    outcomeOf: async (returned) => {
      const root = checkReturned(type, await returned, run.made, true)
      for (const node of run.made) node.value = await node.value
      return outcomeOf(root, type)
    },
  }
  return Object.assign(run, fake)
}

async function outcomeOf(node: ResultNode, type: string): Promise<ReturnedOutcome> {
  const { value, options, items, itemOptions, links } = node
  return {
    result: asStored(value, `The result of work "${type}"`),
    final: options?.final === true,
    ...(options?.append === undefined ? {} : { append: options.append }),
    queued: await queuedOf(items, type),
    ...(itemOptions === undefined ? {} : { options: itemOptions }),
    next: await Promise.all(
      links.map(async (link) => ({
        queued: await queuedOf(link.items, type),
        condition: link.condition,
        ...(link.itemOptions === undefined ? {} : { options: link.itemOptions }),
      })),
    ),
  }
}

function queuedOf(items: readonly unknown[], type: string): Promise<readonly (Work | ReturnedOutcome)[]> {
  return Promise.all(items.map((item) => (isNode(item) ? outcomeOf(item, type) : (item as Work))))
}

/** A value as it comes back from the backend. */
function asStored(value: unknown, what: string): unknown {
  return value === undefined ? undefined : defaultCodec.parse(textOf(defaultCodec, value, what))
}

function viewOf(dependent: FakeDependent, groupId: string, at: At): ItemView {
  const { id, type } = dependent.work
  const envelope = { id, type, groupId, queueAt: at, startAt: at, attempt: 1, priority: 0 }
  if ('error' in dependent) {
    return { envelope, status: 'dead', ending: 'exhausted', error: errorText(dependent.error), endAt: at }
  }
  const { result } = dependent
  return {
    envelope,
    status: 'completed',
    ending: 'completed',
    endAt: at,
    ...(result === undefined ? {} : { result: textOf(defaultCodec, result, `The result of ${id}`) }),
  }
}
