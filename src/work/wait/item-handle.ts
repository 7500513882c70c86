import { MillraceError } from '../../core/error.js'
import { OptionTypeError } from '../../core/options.js'
import type { CancelResult } from '../control/cancel.js'
import { checkedWatch } from '../control/controls.js'
import { HANDLE } from '../define/handle-brand.js'
import type { ItemHandle, ProgressOptions, WaitOptions, WorkState } from '../define/work.js'
import type { EngineContext } from '../engine-context.js'
import { Acceptance } from '../enqueue/acceptance.js'
import { Handle, type Handles } from './handles.js'
import { workStateOf } from './states.js'
import { type Accepted, endedOf } from './waiters.js'

/** There is no item of this id: it was never stored, or its records have expired. */
export class UnknownItemError extends MillraceError {
  constructor(id: string, type: string) {
    super(
      'UNKNOWN_ITEM',
      `There is no item "${id}" of work "${type}". It was never enqueued, or it ended so long ago that its records are gone ` +
        '(keepCompleted, keepDead).',
      { facts: { id, type } },
    )
  }
}

/**
 * An item by its id, whichever process enqueued it. Not thenable, unlike what `enqueue` returns: it is safe to return from an
 * async function.
 */
export class FoundItem implements ItemHandle {
  readonly [HANDLE] = true
  readonly id: string
  readonly type: string
  readonly #context: EngineContext
  readonly #handles: Handles

  constructor(context: EngineContext, handles: Handles, type: string, id: string) {
    if (typeof id !== 'string' || id === '') throw new OptionTypeError('handle(type, id)', 'the id of an item', id)
    this.#context = context
    this.#handles = handles
    this.type = type
    this.id = id
  }

  async state(): Promise<WorkState | undefined> {
    const { ledger, registry, o } = this.#context
    await this.#context.unanswered.whenAnswered(this.id)
    const [view] = await ledger.read([this.id])
    if (view === undefined || view.envelope.type !== this.type) return undefined
    const { result } = view
    if (result === undefined) return workStateOf(view)
    return { ...workStateOf(view), result: registry.codecOf(this.type, o.codec).parse(result) }
  }

  result(options?: WaitOptions): Promise<unknown> {
    return this.#handle().result(options)
  }

  group(options?: WaitOptions): Promise<unknown> {
    return this.#handle().group(options)
  }

  cancel(reason?: string): Promise<CancelResult> {
    return this.#handles.controls.cancel(this.id, reason)
  }

  progress(): Promise<unknown> {
    return this.#handles.controls.progress(this.id, this.type)
  }

  watchProgress(options?: ProgressOptions): AsyncGenerator<unknown, void> {
    return this.#handles.controls.watchProgress(this.id, this.type, checkedWatch(options))
  }

  /** To a waiting caller it is like an enqueue that met an item of the same id. */
  #handle(): Handle {
    const { id, type } = this
    return new Handle(
      { id, type, draft: undefined, batch: 0, accepted: Acceptance.of(id, this.#found()) },
      this.#handles,
    )
  }

  async #found(): Promise<Accepted> {
    await this.#context.unanswered.whenAnswered(this.id)
    const [view] = await this.#context.ledger.read([this.id])
    if (view === undefined || view.envelope.type !== this.type) throw new UnknownItemError(this.id, this.type)
    return { kind: 'coalesced', id: this.id, groupId: view.envelope.groupId, ended: endedOf(view) }
  }
}
