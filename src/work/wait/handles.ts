import { BufferFullError } from '../../core/group-commit.js'
import type { Attempt } from '../../ports/item.js'
import type { CancelResult } from '../control/cancel.js'
import { type Controls, checkedWatch } from '../control/controls.js'
import { HANDLE } from '../define/handle-brand.js'
import type { ProgressOptions, Receipt, WaitOptions, WorkHandle } from '../define/work.js'
import type { EngineContext } from '../engine-context.js'
import type { Acceptance, AcceptanceListener } from '../enqueue/acceptance.js'
import type { Enlisted } from '../enqueue/enlisted.js'
import type { PendingEnqueue } from '../enqueue/enqueue.js'
import { lendingPlace } from '../worker/lend-place.js'
import { UnhandledGroups } from './unhandled-groups.js'
import { type DeadEnd, type Ended, ItemDied, Waiters } from './waiters.js'
import { WorkFailedError } from './work-failed-error.js'

/** An enqueued item. Thenable: awaiting it waits for its group. */
export class Handle implements WorkHandle {
  readonly [HANDLE] = true
  readonly #pending: PendingEnqueue
  readonly #handles: Handles

  constructor(pending: PendingEnqueue, handles: Handles) {
    this.#pending = pending
    this.#handles = handles
  }

  get id(): string {
    return this.#pending.id
  }

  get type(): string {
    return this.#pending.type
  }

  get groupId(): string {
    return this.#pending.id
  }

  /** Set where it was enqueued in a transaction of the caller. */
  get enlisted(): Enlisted | undefined {
    return this.#pending.enlisted
  }

  /** What becomes of its enqueue, for a caller that asks for it and needs no promise. */
  get acceptance(): Acceptance {
    this.#pending.accepted.isAwaited = true
    return this.#pending.accepted
  }

  accepted(): Promise<Receipt> {
    return this.acceptance.promise()
  }

  result(options?: WaitOptions): Promise<unknown> {
    this.#pending.accepted.isAwaited = true
    return this.#handles.result(this, options)
  }

  group(options?: WaitOptions): Promise<unknown> {
    this.#pending.accepted.isAwaited = true
    return this.#handles.group(this, options)
  }

  async cancel(reason?: string): Promise<CancelResult> {
    // An item that is not stored yet cannot be cancelled; one that was not accepted rejects here.
    await this.accepted()
    return this.#handles.controls.cancel(this.id, reason)
  }

  async progress(): Promise<unknown> {
    await this.accepted()
    return this.#handles.controls.progress(this.id, this.type)
  }

  watchProgress(options?: ProgressOptions): AsyncGenerator<unknown, void> {
    return this.#watched(checkedWatch(options))
  }

  async *#watched(options: ProgressOptions): AsyncGenerator<unknown, void> {
    await this.accepted()
    yield* this.#handles.controls.watchProgress(this.id, this.type, options)
  }

  then<A = unknown, B = never>(
    onDone?: ((value: unknown) => A | PromiseLike<A>) | null,
    onFailed?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): PromiseLike<A | B> {
    return this.group().then(onDone, onFailed)
  }

  /** Writes the inbox of a waiting caller into the item; false when the item is on its way already. */
  registerInbox(inbox: string, batches: number): boolean {
    const { draft, batch } = this.#pending
    if (draft === undefined || batch !== batches) return false
    draft.waiter = inbox
    return true
  }
}

/** The handles of one system, and the callers that wait on them for results and groups. */
export class Handles {
  readonly controls: Controls
  readonly #context: EngineContext
  readonly #waiters: Waiters
  readonly #unhandledGroups: UnhandledGroups | undefined
  readonly #acceptances: AcceptanceListener
  #isFullReported = false
  #lastReported: unknown

  /** `accepted` is called for each item that was. */
  constructor(context: EngineContext, controls: Controls, accepted: () => void) {
    this.#context = context
    this.#acceptances = {
      accepted: (acceptance) => {
        this.#answered(acceptance)
        accepted()
      },
      failed: (acceptance, error) => {
        if (!acceptance.isAwaited) this.#failed(error, context.unanswered.has(acceptance))
        this.#answered(acceptance)
      },
    }
    this.controls = controls
    const { o, ledger, worker } = context
    this.#waiters = new Waiters({
      ledger,
      clock: o.clock,
      inbox: worker.id,
      onError: (error) => context.failed(error, 'queue'),
      holdsProcess: o.clock.isReal === true && o.given.keepAlive !== false,
      keep: o.keep,
      turns: context.turns,
    })
    const hook = o.given.unhandledWorkGroup
    if (hook !== undefined) this.#unhandledGroups = new UnhandledGroups(context, hook)
  }

  /** The handle of an enqueue. A failure that no caller awaits is reported, never an unhandled rejection. */
  handle(pending: PendingEnqueue): Handle {
    this.#context.unanswered.add(pending.accepted)
    pending.accepted.listen(this.#acceptances)
    return new Handle(pending, this)
  }

  /** A stop or a close waits for these too. `count`: how many enqueues are still to be made. */
  waitFor(enqueues: Promise<unknown>, count: () => number): void {
    this.#context.unanswered.wait(enqueues, count)
    const answered = () => this.#answered(enqueues)
    enqueues.then(answered, answered)
  }

  #answered(answer: Acceptance | Promise<unknown>): void {
    const { unanswered, lost } = this.#context
    unanswered.answered(answer)
    if (unanswered.isEmpty) lost.settled()
  }

  /** `isWaitedFor`: no stop has given it up, which would have reported it. */
  #failed(error: unknown, isWaitedFor: boolean): void {
    if (this.#context.o.given.onError === undefined) {
      if (isWaitedFor) this.#context.lost.add(error)
    } else if (!this.#isReported(error)) this.#context.failed(error, 'queue')
  }

  /** A caller who does not await may meet a full buffer a million times: that is reported once, until there is room again. */
  #isReported(error: unknown): boolean {
    if (!(error instanceof BufferFullError)) return this.#isOfSameBatch(error)
    const wasReported = this.#isFullReported
    this.#isFullReported = true
    const { commits, skipQueueRoom } = this.#context
    if (!wasReported)
      void Promise.all([commits.whenRoom(), skipQueueRoom.whenRoom()]).then(() => {
        this.#isFullReported = false
      })
    return wasReported
  }

  /** Items that travelled together fail with one error. */
  #isOfSameBatch(error: unknown): boolean {
    const wasReported = error === this.#lastReported
    this.#lastReported = error
    return wasReported
  }

  itemEnded(id: string, ended: Ended): void {
    this.#waiters.itemEnded(id, ended)
  }

  /** A settlement of ours closed a group. `text` is its value as stored, `value` the same decoded. */
  groupClosed(groupId: string, text: string | undefined, value: unknown, isWatched: boolean): void {
    if (!isWatched) this.#unhandledGroups?.closed(groupId, value)
    this.#waiters.groupClosed(groupId, text)
  }

  open(): void {
    this.#waiters.open()
  }

  close(): void {
    this.#waiters.close()
    this.#unhandledGroups?.close()
  }

  result(handle: Handle, options: WaitOptions | undefined): Promise<unknown> {
    const result = this.#result(handle, options)
    // Under a clock that a test moves, an item dies while the test moves it: before the test can await this.
    if (this.#context.o.clock.isReal !== true) result.catch(() => undefined)
    return result
  }

  async #result(handle: Handle, options: WaitOptions | undefined): Promise<unknown> {
    const { registry, o } = this.#context
    try {
      const text = await this.#waited(handle, 'item', handle.id, options)
      return text === undefined ? undefined : registry.codecOf(handle.type, o.codec).parse(text)
    } catch (error) {
      throw error instanceof ItemDied ? await this.#failure(handle, error.end) : error
    }
  }

  /** What the backend knows of the last failure of an item comes with the error. */
  async #failure({ id, type }: Handle, end: DeadEnd): Promise<WorkFailedError> {
    let last: Attempt | undefined
    try {
      const attempts = await this.#context.ledger.inspect?.attempts(id)
      last = attempts?.at(-1)
    } catch (error) {
      // That it is dead is known all the same.
      this.#context.failed(error, 'queue')
    }
    return new WorkFailedError({ id, type, ...end }, last)
  }

  async group(handle: Handle, options: WaitOptions | undefined): Promise<unknown> {
    const text = await this.#waited(handle, 'group', handle.groupId, options)
    return text === undefined ? undefined : this.#context.o.codec.parse(text)
  }

  /** A wait that begins before the item is sent travels with it and costs nothing more; a later one is registered. */
  #waited(handle: Handle, kind: 'item' | 'group', id: string, options: WaitOptions | undefined) {
    const { groupId, enlisted } = handle
    this.#unhandledGroups?.awaited(groupId)
    const hasInbox = handle.registerInbox(this.#context.worker.id, this.#context.batches)
    const what = { kind, id, groupId, item: handle.id, hasInbox, accepted: handle.accepted(), enlisted }
    return lendingPlace(this.#waiters.wait(what, options), handle.type)
  }
}
