import { MillraceError } from '../core/error.js'
import { newToken } from '../core/ids.js'
import type { Ms } from '../core/time.js'
import { unreachable } from '../core/unreachable.js'
import type { Claimed, Envelope, Lease } from '../ports/item.js'
import type { CommitResult } from '../ports/settlement.js'
import { groupIdOf } from './define-work.js'
import { EncodeError, type ResolvedItem, resolveItem } from './resolve-item.js'
import { checkWork } from './result-tree.js'
import type { Shared } from './shared.js'
import { submit, submitHeld } from './submit.js'
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
}

const PENDING = Object.freeze({ status: 'pending' as const })

/** Holds an item that this process owns, at most since `askedMs`; yields what to call when its turn has come. */
export type HoldDirectly = (item: Claimed, askedMs: Ms) => () => Promise<void>

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
    const trace = this.#trace()
    const place = trace === undefined ? { groupId } : { groupId, trace }
    const resolve = () => resolveItem(this.#s.rules, work, options, place, this.#s.now())
    let item: ResolvedItem
    try {
      item = resolve()
    } catch (error) {
      if (!(error instanceof EncodeError)) throw error
      return { id: work.id, type: work.type, groupId, draft: undefined, batch: 0, accepted: Promise.reject(error) }
    }
    const isHeld = item.skipQueue
    const batch = this.#s.batches
    const isTimed = item.item.deadline === undefined || this.#s.isTimeKnown
    const accepted = isTimed ? this.#send(item) : this.#sendTimed(item, resolve)
    return { id: work.id, type: work.type, groupId, draft: isHeld ? undefined : item.item, batch, accepted }
  }

  /** A tracer that fails must not keep work from being enqueued. */
  #trace() {
    try {
      return this.#s.o.given.trace?.()
    } catch (error) {
      this.#s.failed(error, 'queue')
      return undefined
    }
  }

  #send(item: ResolvedItem): Promise<Receipt> {
    return item.skipQueue ? this.#submitHeld(item) : this.#submit(item)
  }

  /** A deadline reckoned from a clock that is minutes off might be over before it begins: the backend's time first. */
  async #sendTimed(item: ResolvedItem, resolve: () => ResolvedItem): Promise<Receipt> {
    await this.#s.askTime()
    const { delayMs, item: timed } = resolve()
    // Into the same item: whoever waits meanwhile has written himself into it.
    Object.assign(item.item, { queueAt: timed.queueAt, startAt: timed.startAt, deadline: timed.deadline })
    return this.#send({ ...item, delayMs })
  }

  async #submit({ item, queue }: ResolvedItem): Promise<Receipt> {
    return this.#sent(item, this.#s.commits.add(submit(item, queue, item.queueAt)))
  }

  async #sent(item: Envelope, sent: Promise<CommitResult>): Promise<Receipt> {
    const { recorder } = this.#s
    recorder.queueing(item.id)
    try {
      return this.#receipt(await sent, item)
    } finally {
      // Told already, unless it was not accepted.
      recorder.notQueued(item.id)
    }
  }

  /** A doer takes it before it is written, so that a doer which refuses leaves nothing behind. */
  async #submitHeld({ item, queue }: ResolvedItem): Promise<Receipt> {
    const { o, registry, worker, commits } = this.#s
    const doer = registry.find(item.type)?.options.doer ?? o.doer
    const heldBy = { worker: worker.id, token: newToken(), leaseMs: o.visibility }
    const lease: Lease = { id: item.id, queue, token: heldBy.token, fence: 1, until: item.queueAt + heldBy.leaseMs }
    const claimed: Claimed = { lease, envelope: item, lapses: 0, crashes: 0, started: true, deliveries: 1 }
    let accept!: (run: (() => Promise<void>) | undefined) => void
    const accepted = new Promise<(() => Promise<void>) | undefined>((resolve) => {
      accept = resolve
    })
    const askedMs = o.clock.monotonic()
    doer.do(async () => (await accepted)?.(), hintsOf(item))
    try {
      const receipt = this.#receipt(await commits.add(submitHeld(item, queue, heldBy)), item)
      accept(receipt.kind === 'created' ? this.#holdDirectly(claimed, askedMs) : undefined)
      return receipt
    } catch (error) {
      accept(undefined)
      throw error
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

/** What a doer may know of an item. */
export function hintsOf(item: Envelope): {
  readonly priority: number
  readonly createdAt: number
  readonly group?: string
} {
  const { priority, queueAt: createdAt, group } = item
  return { priority, createdAt, ...(group === undefined ? {} : { group }) }
}
