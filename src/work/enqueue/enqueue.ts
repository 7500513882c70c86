import type { Span } from '@opentelemetry/api'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { MillraceError } from '../../core/error.js'
import type { Answer } from '../../core/group-commit.js'
import { newToken } from '../../core/ids.js'
import type { Ms } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { ClaimedItem, Envelope, Lease } from '../../ports/item.js'
import type { CommitResult, Settlement } from '../../ports/settlement.js'
import { definitionOf } from '../define/built-work.js'
import { DEPENDENCY_TYPE } from '../define/dependency.js'
import { checkWorks } from '../define/input-schema.js'
import type { Receipt, Work, WorkInstanceOptions } from '../define/work.js'
import type { EngineContext } from '../engine-context.js'
import { endEnqueueSpan } from '../observe/tracing.js'
import { checkWork } from '../settle/result-tree.js'
import { hintsOf } from '../worker/doers.js'
import { isInPlace } from '../worker/lend-place.js'
import { Acceptance } from './acceptance.js'
import type { Enlisted } from './enlisted.js'
import { enqueueGateSettlement, enqueueHeldSettlement, enqueueSettlement } from './enqueue-settlement.js'
import { resolveWork } from './resolve-gate.js'
import { EncodeError, type ItemOrigin, type ResolvedItem, rootOrigin } from './resolve-item.js'

/** The item can never be accepted as it is. */
export class ItemRefusedError extends MillraceError {
  constructor(code: string, message: string, limit: number | undefined) {
    super(code, message, { facts: { limit } })
  }
}

/** A work that begins a group, and how it is to be enqueued. */
interface Root {
  readonly work: Work
  readonly options: WorkInstanceOptions | undefined
  readonly origin: ItemOrigin
}

/** An item on its way to the backend. */
export interface PendingEnqueue {
  readonly id: string
  readonly type: string
  /** What is written into it before the next batch is sent travels with it. */
  readonly draft: { waiter?: string } | undefined
  /** How many batches were sent before it. */
  readonly batch: number
  readonly accepted: Acceptance
  /** It was written in a transaction of the caller. */
  readonly enlisted?: Enlisted
}

const PENDING = Object.freeze({ status: 'pending' as const })

/** Holds an item that this process has leased since `askedMs` at most; returns what to call when its turn has come. */
export type HoldItem = (item: ClaimedItem, askedMs: Ms, left: () => void) => () => Promise<void>

/** Turns work into items and hands them to the backend. */
export class Enqueuer {
  readonly #context: EngineContext
  readonly #holdItem: HoldItem

  constructor(context: EngineContext, holdItem: HoldItem) {
    this.#context = context
    this.#holdItem = holdItem
  }

  /** Bad options throw; an input that cannot be encoded rejects, like a commit that fails. */
  enqueue(work: Work, options: WorkInstanceOptions | undefined): PendingEnqueue {
    checkWork(work)
    const traced = traceOf(this.#context, work)
    if (traced?.span === undefined) return this.#enqueueIn(work, options, traced?.trace)
    try {
      const pending = this.#enqueueIn(work, options, traced.trace)
      endEnqueueSpan(traced.span, pending.accepted.promise())
      return pending
    } catch (error) {
      endEnqueueSpan(traced.span, Promise.reject(error))
      throw error
    }
  }

  #enqueueIn(work: Work, options: WorkInstanceOptions | undefined, trace: Envelope['trace']): PendingEnqueue {
    const root: Root = { work, options, origin: rootOrigin(work, trace) }
    const { registry } = this.#context
    const schema: StandardSchemaV1 | undefined = registry.meet(work.type, definitionOf(work))?.options.input
    if (schema === undefined && work.type !== DEPENDENCY_TYPE) return this.#sendRoot(root)
    // Before anything else reads the input, and before anything is written.
    try {
      const checked = checkWorks([work], (one) => registry.schemaOf(one))
      if (!(checked instanceof Promise)) return this.#sendRoot(root)
      return this.#later(
        root,
        checked.then(() => this.#sendRoot(root).accepted.promise()),
      )
    } catch (error) {
      return this.#later(root, Promise.reject(error))
    }
  }

  #sendRoot(root: Root): PendingEnqueue {
    try {
      return this.#resolved(root)
    } catch (error) {
      if (!(error instanceof EncodeError)) throw error
      return this.#later(root, Promise.reject(error))
    }
  }

  #later({ work: { id, type }, options }: Root, answer: Promise<Receipt>): PendingEnqueue {
    const enlisted = options?.tx === undefined ? {} : { enlisted: this.#newlyEnlisted() }
    return { id, type, draft: undefined, batch: 0, accepted: Acceptance.of(id, answer), ...enlisted }
  }

  #resolve({ work, options, origin }: Root): ResolvedItem {
    return resolveWork(this.#context.rules, work, options, origin, this.#context.now())
  }

  #resolved(root: Root): PendingEnqueue {
    const { id, type } = root.work
    const item = this.#resolve(root)
    const { batches: batch, isTimeKnown } = this.#context
    const tx = root.options?.tx
    if (tx !== undefined) {
      const accepted = Acceptance.of(id, this.#enlisted(item, tx))
      return { id, type, draft: undefined, batch, accepted, enlisted: this.#newlyEnlisted() }
    }
    const isTimed = (item.item.deadline === undefined && item.gate === undefined) || isTimeKnown
    const accepted = isTimed ? this.#send(item) : Acceptance.of(id, this.#sendTimed(item, root))
    return { id, type, draft: item.skipQueue ? undefined : item.item, batch, accepted }
  }

  #send(item: ResolvedItem): Acceptance {
    if (!item.skipQueue) return this.#commit(item)
    const { skipQueueRoom, doers } = this.#context
    // A handler that waited for room here would block the work that makes room: its work goes through the queue instead. Where
    // handlers have no places, we cannot know whether the caller is one.
    const mayBeHandler = () => isInPlace() || !doers.haveAllPlaces
    return skipQueueRoom.isFull && mayBeHandler()
      ? this.#commit(item)
      : Acceptance.of(item.item.id, this.#enqueueHeld(item))
  }

  /** Asks for the backend's time first: a deadline counted from a clock that is minutes off might have passed already. */
  async #sendTimed(item: ResolvedItem, root: Root): Promise<Receipt> {
    await this.#context.askTime()
    const { delayMs, item: timed } = this.#resolve(root)
    const { queueAt, startAt, deadline, input } = timed
    // Into the same item: a caller that waits meanwhile has written its inbox into it.
    Object.assign(item.item, { queueAt, startAt, input, ...(deadline === undefined ? {} : { deadline }) })
    return this.#send({ ...item, delayMs }).promise()
  }

  #commit(resolved: ResolvedItem): Acceptance {
    const { commits, recorder } = this.#context
    recorder.queueing(resolved.item)
    const sent = new SentEnqueue(resolved.item, this.#context)
    commits.addFor(sent, settlementOf(resolved))
    return sent
  }

  /**
   * In the user's transaction, and before this returns: a synchronous transaction has ended before anything asynchronous
   * happens. What throws here throws there, and rolls it back.
   */
  #enlisted(resolved: ResolvedItem, tx: unknown): Promise<Receipt> {
    const { enlist } = this.#context.ledger
    if (enlist === undefined) throw enlistNotSupported()
    const results = enlist(tx).commit([settlementOf(resolved)])
    // One settlement, one result.
    return this.#sent(
      resolved.item,
      results.then(([result]) => result!),
    )
  }

  #newlyEnlisted(): Enlisted {
    return { atMs: this.#context.o.clock.monotonic(), isSeen: false }
  }

  async #sent(item: Envelope, sent: Promise<CommitResult>): Promise<Receipt> {
    const { recorder } = this.#context
    recorder.queueing(item)
    try {
      return receiptOf(await sent, item, this.#context)
    } finally {
      // No effect if it was accepted.
      recorder.notQueued(item.id)
    }
  }

  /** A doer takes it before it is written: if the doer refuses, nothing was written. */
  async #enqueueHeld({ item, queue }: ResolvedItem): Promise<Receipt> {
    const { o, doers, worker, commits, skipQueueRoom } = this.#context
    const room = skipQueueRoom.enter()
    if (room !== undefined) await room
    const doer = doers.of(item.type)
    const leasedTo = { worker: worker.id, token: newToken(), leaseMs: o.visibility }
    const lease: Lease = { id: item.id, queue, token: leasedTo.token, fence: 1, until: item.queueAt + leasedTo.leaseMs }
    const claimed: ClaimedItem = { lease, envelope: item, lapses: 0, crashes: 0, deliveries: 1 }
    let accept!: (run: (() => Promise<void>) | undefined) => void
    const accepted = new Promise<(() => Promise<void>) | undefined>((resolve) => {
      accept = resolve
    })
    const askedMs = o.clock.monotonic()
    try {
      doer.do(async () => (await accepted)?.(), hintsOf(item))
    } catch (error) {
      skipQueueRoom.left()
      throw error
    }
    let isHeld = false
    try {
      const receipt = receiptOf(await commits.add(enqueueHeldSettlement(item, queue, leasedTo)), item, this.#context)
      isHeld = receipt.kind === 'created'
      // Its room is free when its outcome is written, not already when its handler has ended.
      accept(isHeld ? this.#holdItem(claimed, askedMs, () => skipQueueRoom.left()) : undefined)
      return receipt
    } finally {
      if (!isHeld) {
        accept(undefined)
        skipQueueRoom.left()
      }
    }
  }
}

/** An enqueue on its way to the backend. */
class SentEnqueue extends Acceptance implements Answer<CommitResult> {
  readonly #item: Envelope
  readonly #context: EngineContext

  constructor(item: Envelope, context: EngineContext) {
    super(item.id)
    this.#item = item
    this.#context = context
  }

  resolve(result: CommitResult): void {
    try {
      this.accept(receiptOf(result, this.#item, this.#context))
    } catch (error) {
      this.fail(error)
    }
    // No effect if it was accepted.
    this.#context.recorder.notQueued(this.id)
  }

  reject(error: unknown): void {
    this.fail(error)
    this.#context.recorder.notQueued(this.id)
  }
}

function receiptOf(result: CommitResult, item: Envelope, context: EngineContext): Receipt {
  switch (result.kind) {
    case 'applied':
      context.recorder.queued(item, context.now())
      context.remember(item, PENDING)
      return { kind: 'created', id: item.id }
    case 'repeated':
      return { kind: 'coalesced', id: result.id }
    case 'refused':
      throw new ItemRefusedError(result.code, result.message, result.limit)
    case 'failed':
      throw result.error
    case 'stale':
    case 'conflict':
      throw new TypeError(`an enqueue cannot be ${result.kind}: the backend broke its contract`)
    default:
      return unreachable(result)
  }
}

/**
 * The trace that the item carries: from the `trace` option, or the span of its enqueue. Neither may prevent the enqueue.
 * `isRoot`: the active span is not the reason for it.
 */
export function traceOf(
  context: EngineContext,
  work: Work,
  isRoot = false,
): { readonly span?: Span; readonly trace?: Envelope['trace'] } | undefined {
  try {
    const trace = context.o.given.trace?.()
    return trace === undefined ? context.tracing.enqueue(work, isRoot) : { trace }
  } catch (error) {
    context.failed(error, 'queue')
    return undefined
  }
}

/** What an enqueue writes: a gate is opened with the item that it holds. */
export function settlementOf(resolved: ResolvedItem): Settlement {
  const { item, queue, gate } = resolved
  return gate === undefined ? enqueueSettlement(item, queue, item.queueAt) : enqueueGateSettlement(resolved, gate)
}

function enlistNotSupported(): MillraceError {
  return new MillraceError(
    'NOT_SUPPORTED',
    'enqueue(…, { tx }) needs a backend in the same database as the transaction (millrace/postgres, millrace/sqlite): on this one, enqueue ' +
      'after the transaction has committed.',
  )
}
