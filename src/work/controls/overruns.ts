import type { Clock } from '../../core/clock.js'
import { MillraceError } from '../../core/error.js'
import type { Ms } from '../../core/time.js'
import type { Claimed } from '../../ports/item.js'

/** A handler went on for a whole lease after its run was over: it is taken for hung, and its place is given away. */
export class HandlerOverrunError extends MillraceError {
  constructor(type: string, id: string, afterMs: Ms) {
    super(
      'HANDLER_OVERRUN',
      `The handler of work "${type}" (${id}) has not ended ${afterMs} ms after its signal fired. Its place in the doer is ` +
        'given away, so that more than the doer allows may be under way. Pass ctx.signal to what it waits for.',
      { facts: { type, id, afterMs } },
    )
  }
}

export interface OverrunsOptions {
  readonly clock: Clock
  /** How long a handler whose run is over keeps its place. */
  readonly patienceMs: Ms
  readonly onError: (error: unknown) => void
}

/**
 * Handlers that go on though their run is over. A doer bounds what is under way, not what counts, so that such a handler
 * keeps its place until it ends; but one that never ends must not keep it for ever.
 */
export class Overruns {
  readonly #o: OverrunsOptions
  readonly #going = new WeakMap<Claimed, Promise<void>>()

  constructor(options: OverrunsOptions) {
    this.#o = options
  }

  add(item: Claimed, handling: Promise<unknown>): void {
    this.#going.set(item, this.#endOf(item, handling))
  }

  /** When its place is free. Undefined: now, as nearly always. */
  placeFree(item: Claimed): Promise<void> | undefined {
    return this.#going.get(item)
  }

  #endOf({ envelope }: Claimed, handling: Promise<unknown>): Promise<void> {
    const { clock, patienceMs, onError } = this.#o
    return new Promise((resolve) => {
      const giveUp = clock.after(patienceMs, () => {
        onError(new HandlerOverrunError(envelope.type, envelope.id, patienceMs))
        resolve()
      })
      const ended = () => {
        giveUp()
        resolve()
      }
      handling.then(ended, ended)
    })
  }
}
