import type { Span } from '@opentelemetry/api'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { MillraceError } from '../core/error.js'
import { newToken } from '../core/ids.js'
import type { Ms } from '../core/time.js'
import { unreachable } from '../core/unreachable.js'
import type { Claimed, Envelope, Lease } from '../ports/item.js'
import type { CommitResult, Settlement } from '../ports/settlement.js'
import { checkWorks } from './controls/queued-input.js'
import { endEnqueueSpan } from './controls/tracing.js'
import { definitionOf, groupIdOf } from './define-work.js'
import { DEPENDENCY_TYPE } from './dependency.js'
import type { Enlisted } from './enlisted.js'
import { isInPlace } from './place.js'
import { resolveWork } from './resolve-gate.js'
import { EncodeError, type ResolvedItem } from './resolve-item.js'
import { checkWork } from './result-tree.js'
import type { Shared } from './shared.js'
import { submit, submitGate, submitHeld } from './submit.js'
import type { Receipt, Work, WorkInstanceOptions } from './work.js'

/** The item can never be accepted as it is. */
export class RefusedError extends MillraceError {
  constructor(code: string, message: string, limit: number | undefined) {
    super(code, message, { facts: { limit } })
  }
}

/** An item on its way to the backend. */
export interface Submission {
  readonly id: string
  readonly type: string
  readonly groupId: string
  /** What is written into it before another batch leaves travels with it. */
  readonly draft: { waiter?: string } | undefined
  /** How many batches had left before it. */
  readonly batch: number
  readonly accepted: Promise<Receipt>
  /** It was written in a transaction of the caller. */
  readonly enlisted?: Enlisted
}

const PENDING = Object.freeze({ status: 'pending' as const })

/** Holds an item that this process owns, at most since `askedMs`; yields what to call when its turn has come. */
export type HoldDirectly = (item: Claimed, askedMs: Ms, left: () => void) => () => Promise<void>

/** Turns work into items and hands them to the backend. */
export class Submitter {
  readonly #s: Shared
  readonly #holdDirectly: HoldDirectly

  constructor(shared: Shared, holdDirectly: HoldDirectly) {
    this.#s = shared
    this.#holdDirectly = holdDirectly
  }

  /** Bad options throw; an input that cannot be encoded rejects, like a push that fails. */
  submit(work: Work, options: WorkInstanceOptions | undefined): Submission {
    checkWork(work)
    const { o } = this.#s
    const groupId = groupIdOf(work, o.newId)
    const traced = traceOf(this.#s, work, groupId)
    if (traced?.span === undefined) return this.#submitIn(work, options, groupId, traced?.trace)
    try {
      const submission = this.#submitIn(work, options, groupId, traced.trace)
      endEnqueueSpan(traced.span, submission.accepted)
      return submission
    } catch (error) {
      endEnqueueSpan(traced.span, Promise.reject(error))
      throw error
    }
  }

  #submitIn(
    work: Work,
    options: WorkInstanceOptions | undefined,
    groupId: string,
    trace: Envelope['trace'],
  ): Submission {
    const place = trace === undefined ? { groupId } : { groupId, trace }
    const resolve = () => resolveWork(this.#s.rules, work, options, place, this.#s.now())
    const later = (accepted: Promise<Receipt>): Submission => {
      const enlisted = options?.tx === undefined ? {} : { enlisted: this.#newlyEnlisted() }
      return { id: work.id, type: work.type, groupId, draft: undefined, batch: 0, accepted, ...enlisted }
    }
    const send = (): Submission => {
      try {
        return this.#resolved(work, groupId, resolve, options?.tx)
      } catch (error) {
        if (!(error instanceof EncodeError)) throw error
        return later(Promise.reject(error))
      }
    }
    const { registry } = this.#s
    const schema: StandardSchemaV1 | undefined = registry.meet(work.type, definitionOf(work))?.options.input
    if (schema === undefined && work.type !== DEPENDENCY_TYPE) return send()
    // Before anything else looks at the input, and before anything is written.
    try {
      const checked = checkWorks([work], (one) => registry.schemaOf(one))
      return checked instanceof Promise ? later(checked.then(() => send().accepted)) : send()
    } catch (error) {
      return later(Promise.reject(error))
    }
  }

  #resolved(work: Work, groupId: string, resolve: () => ResolvedItem, tx: unknown): Submission {
    const item = resolve()
    if (tx !== undefined) {
      const accepted = this.#enlisted(item, tx)
      const batch = this.#s.batches
      return {
        id: work.id,
        type: work.type,
        groupId,
        draft: undefined,
        batch,
        accepted,
        enlisted: this.#newlyEnlisted(),
      }
    }
    const isHeld = item.skipQueue
    const batch = this.#s.batches
    const isTimed = (item.item.deadline === undefined && item.gate === undefined) || this.#s.isTimeKnown
    const accepted = isTimed ? this.#send(item) : this.#sendTimed(item, resolve)
    return { id: work.id, type: work.type, groupId, draft: isHeld ? undefined : item.item, batch, accepted }
  }

  #send(item: ResolvedItem): Promise<Receipt> {
    if (!item.skipQueue) return this.#submit(item)
    const { heldRoom, doers } = this.#s
    // A handler that waited for room here would keep what is to make it: its work goes through the queue instead. Where handlers
    // have no places, nothing tells whether it is one that asks.
    const mayBeHandler = () => isInPlace() || !doers.haveAllPlaces
    return heldRoom.isFull && mayBeHandler() ? this.#submit(item) : this.#submitHeld(item)
  }

  /** A deadline reckoned from a clock that is minutes off might be over before it begins: the backend's time first. */
  async #sendTimed(item: ResolvedItem, resolve: () => ResolvedItem): Promise<Receipt> {
    await this.#s.askTime()
    const { delayMs, item: timed } = resolve()
    const { queueAt, startAt, deadline, input } = timed
    // Into the same item: whoever waits meanwhile has written himself into it.
    Object.assign(item.item, { queueAt, startAt, input, ...(deadline === undefined ? {} : { deadline }) })
    return this.#send({ ...item, delayMs })
  }

  async #submit(resolved: ResolvedItem): Promise<Receipt> {
    return this.#sent(resolved.item, this.#s.commits.add(settlementOf(resolved)))
  }

  /**
   * Within the user's own transaction, and before this returns: a transaction that is a function has ended by the time
   * anything asynchronous happens. What throws here throws there, and rolls it back.
   */
  #enlisted(resolved: ResolvedItem, tx: unknown): Promise<Receipt> {
    const { enlist } = this.#s.ledger
    if (enlist === undefined) throw cannotEnlist()
    const results = enlist(tx).commit([settlementOf(resolved)])
    // One settlement, one result.
    return this.#sent(
      resolved.item,
      results.then(([result]) => result!),
    )
  }

  #newlyEnlisted(): Enlisted {
    return { atMs: this.#s.o.clock.monotonic(), isSeen: false }
  }

  async #sent(item: Envelope, sent: Promise<CommitResult>): Promise<Receipt> {
    const { recorder } = this.#s
    recorder.queueing(item)
    try {
      return this.#receipt(await sent, item)
    } finally {
      // Told already, unless it was not accepted.
      recorder.notQueued(item.id)
    }
  }

  /** A doer takes it before it is written, so that a doer which refuses leaves nothing behind. */
  async #submitHeld({ item, queue }: ResolvedItem): Promise<Receipt> {
    const { o, doers, worker, commits, heldRoom } = this.#s
    const room = heldRoom.enter()
    if (room !== undefined) await room
    const doer = doers.of(item.type)
    const heldBy = { worker: worker.id, token: newToken(), leaseMs: o.visibility }
    const lease: Lease = { id: item.id, queue, token: heldBy.token, fence: 1, until: item.queueAt + heldBy.leaseMs }
    const claimed: Claimed = { lease, envelope: item, lapses: 0, crashes: 0, deliveries: 1 }
    let accept!: (run: (() => Promise<void>) | undefined) => void
    const accepted = new Promise<(() => Promise<void>) | undefined>((resolve) => {
      accept = resolve
    })
    const askedMs = o.clock.monotonic()
    try {
      doer.do(async () => (await accepted)?.(), hintsOf(item))
    } catch (error) {
      heldRoom.left()
      throw error
    }
    let isHeld = false
    try {
      const receipt = this.#receipt(await commits.add(submitHeld(item, queue, heldBy)), item)
      isHeld = receipt.kind === 'created'
      // Its room is free when its outcome is written, not when its handler has ended.
      accept(isHeld ? this.#holdDirectly(claimed, askedMs, () => heldRoom.left()) : undefined)
      return receipt
    } finally {
      if (!isHeld) {
        accept(undefined)
        heldRoom.left()
      }
    }
  }

  #receipt(result: CommitResult, item: Envelope): Receipt {
    switch (result.kind) {
      case 'applied':
        this.#s.recorder.queued(item, this.#s.now())
        this.#s.saw(item, PENDING)
        return { kind: 'created', id: item.id }
      case 'repeated':
        return { kind: 'coalesced', id: result.id }
      case 'refused':
        throw new RefusedError(result.code, result.message, result.limit)
      case 'failed':
        throw result.error
      case 'stale':
      case 'conflict':
        throw new TypeError(`a submit cannot be ${result.kind}: the backend broke its contract`)
      default:
        return unreachable(result)
    }
  }
}

/**
 * What the item carries: what the hook says, or the span of its enqueue. Neither may keep work from being enqueued.
 * `isRoot`: nothing that goes on around it is the reason for it.
 */
export function traceOf(
  shared: Shared,
  work: Work,
  groupId: string,
  isRoot = false,
): { readonly span?: Span; readonly trace?: Envelope['trace'] } | undefined {
  try {
    const trace = shared.o.given.trace?.()
    return trace === undefined ? shared.tracing.enqueue(work, groupId, isRoot) : { trace }
  } catch (error) {
    shared.failed(error, 'queue')
    return undefined
  }
}

/** What an enqueue writes: a gate is opened with the item that it holds. */
export function settlementOf(resolved: ResolvedItem): Settlement {
  const { item, queue, gate } = resolved
  return gate === undefined ? submit(item, queue, item.queueAt) : submitGate(resolved, gate)
}

function cannotEnlist(): MillraceError {
  return new MillraceError(
    'NOT_SUPPORTED',
    'enqueue(…, { tx }) needs a backend in the same database as the transaction (millrace/postgres, millrace/sqlite): on this one, enqueue ' +
      'after the transaction has committed.',
  )
}

/** What a doer may know of an item. */
export function hintsOf(item: Envelope): {
  readonly priority: number
  readonly createdAt: number
  readonly group?: string
} {
  const { priority, queueAt: createdAt, group } = item
  return { priority, createdAt, ...(group === undefined ? {} : { group }) }
}
