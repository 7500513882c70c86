import { MillraceError } from '../../core/error.js'
import type { Ms } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { EngineContext } from '../engine-context.js'

/** A handler went on for a whole lease after its run was over: it counts as hung, and its place is given away. */
class HandlerOverrunError extends MillraceError {
  constructor(type: string, id: string, afterMs: Ms) {
    super(
      'HANDLER_OVERRUN',
      `The handler of work "${type}" (${id}) has not ended ${afterMs} ms after its signal fired. Its place in the doer is ` +
        'given away, so that more handlers than the doer allows may run. Pass ctx.signal to what it waits for.',
      { facts: { type, id, afterMs } },
    )
  }
}

/**
 * Handlers that go on though their run is over. A doer limits what runs, not what counts, so such a handler keeps its place
 * until it ends; but a handler that never ends must not keep it forever.
 */
export class Overruns {
  readonly #context: EngineContext
  readonly #going = new WeakMap<ClaimedItem, Promise<void>>()

  constructor(context: EngineContext) {
    this.#context = context
  }

  add(item: ClaimedItem, handling: Promise<unknown>): void {
    this.#going.set(item, this.#endOf(item, handling))
  }

  /** When the place of a run that is over is free. Undefined: now, as is usual. */
  placeFree(item: ClaimedItem): Promise<void> | undefined {
    return this.#going.get(item)
  }

  #endOf({ envelope }: ClaimedItem, handling: Promise<unknown>): Promise<void> {
    const { clock, visibility: timeoutMs } = this.#context.o
    return new Promise((resolve) => {
      const cancel = clock.after(timeoutMs, () => {
        this.#context.failed(new HandlerOverrunError(envelope.type, envelope.id, timeoutMs), 'queue')
        resolve()
      })
      const ended = () => {
        cancel()
        resolve()
      }
      handling.then(ended, ended)
    })
  }
}
