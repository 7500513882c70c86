import type { CancelAnswer } from './controls/cancel.js'
import { type Controls, checkedWatch } from './controls/controls.js'
import type { Enlisted } from './enlisted.js'
import type { Submission } from './submitter.js'
import type { Receipt, WaitOptions, WatchOptions, WorkHandle } from './work.js'

/** What a handle asks its system for. */
export interface HandleServices {
  result(handle: Handle, options: WaitOptions | undefined): Promise<unknown>
  group(handle: Handle, options: WaitOptions | undefined): Promise<unknown>
  readonly controls: Controls
}

/** An enqueued item. Thenable: awaiting it waits for its group. */
export class Handle implements WorkHandle {
  readonly #submission: Submission
  readonly #services: HandleServices
  #isAwaited = false

  constructor(submission: Submission, services: HandleServices) {
    this.#submission = submission
    this.#services = services
  }

  get id(): string {
    return this.#submission.id
  }

  get type(): string {
    return this.#submission.type
  }

  get groupId(): string {
    return this.#submission.groupId
  }

  /** Set where it was enqueued in a transaction of the caller. */
  get enlisted(): Enlisted | undefined {
    return this.#submission.enlisted
  }

  /** Somebody looks at the outcome, so that a failure needs no other listener. */
  get isAwaited(): boolean {
    return this.#isAwaited
  }

  accepted(): Promise<Receipt> {
    this.#isAwaited = true
    return this.#submission.accepted
  }

  result(options?: WaitOptions): Promise<unknown> {
    this.#isAwaited = true
    return this.#services.result(this, options)
  }

  group(options?: WaitOptions): Promise<unknown> {
    this.#isAwaited = true
    return this.#services.group(this, options)
  }

  async cancel(reason?: string): Promise<CancelAnswer> {
    // What is not there yet cannot be cancelled; what was not accepted says so.
    await this.accepted()
    return this.#services.controls.cancel(this.id, reason)
  }

  async progress(): Promise<unknown> {
    await this.accepted()
    return this.#services.controls.progress(this.id, this.type)
  }

  watchProgress(options?: WatchOptions): AsyncGenerator<unknown, void> {
    return this.#watched(checkedWatch(options))
  }

  async *#watched(options: WatchOptions): AsyncGenerator<unknown, void> {
    await this.accepted()
    yield* this.#services.controls.watchProgress(this.id, this.type, options)
  }

  then<A = unknown, B = never>(
    onDone?: ((value: unknown) => A | PromiseLike<A>) | null,
    onFailed?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): PromiseLike<A | B> {
    return this.group().then(onDone, onFailed)
  }

  /** Writes the inbox of whoever waits into the item; false when that has left already. */
  tellsOnSettle(inbox: string, batches: number): boolean {
    const { draft, batch } = this.#submission
    if (draft === undefined || batch !== batches) return false
    draft.waiter = inbox
    return true
  }
}
