import { numberOption, OptionTypeError, optionsObject } from '../../core/options.js'
import type { ItemView } from '../../ports/inspect.js'
import type { PausedNames } from '../../ports/ledger.js'
import type { ClosedGroup } from '../../ports/settlement.js'
import type { ProgressOptions } from '../define/work.js'
import type { EngineContext } from '../engine-context.js'
import { type CancelResult, cancelItem } from './cancel.js'
import { NotSupportedError, type Pausable, pauseOrResume, readPausable } from './pause.js'

const WATCH_EVERY_MS = 1_000

const WATCH_NAMES = ['every', 'signal'] as const satisfies readonly (keyof ProgressOptions)[]

/** Bad options throw at the call: polling without a pause would keep the process busy. */
export function checkedWatch(options: ProgressOptions | undefined): ProgressOptions {
  const { every, signal } = optionsObject('watchProgress', options, WATCH_NAMES)
  const ms = numberOption('watchProgress.every', every, { above: 0, default: WATCH_EVERY_MS })
  return { every: ms, ...(signal === undefined ? {} : { signal }) }
}

/** What callers can do to items, types and queues of the whole fleet. */
export class Controls {
  readonly #context: EngineContext
  readonly #cancelled: (view: ItemView, error: string, closed: readonly ClosedGroup[]) => void

  /** `cancelled` is called for an item that was waiting and that our cancel has ended. */
  constructor(
    context: EngineContext,
    cancelled: (view: ItemView, error: string, closed: readonly ClosedGroup[]) => void,
  ) {
    this.#context = context
    this.#cancelled = cancelled
  }

  async cancel(id: string, reason = ''): Promise<CancelResult> {
    if (typeof id !== 'string' || id === '') throw new OptionTypeError('cancel(id)', 'the id of an item', id)
    if (typeof reason !== 'string') throw new OptionTypeError('cancel(id, reason)', 'a string', reason)
    const { o, worker, commits } = this.#context
    const services = {
      who: worker.id,
      keep: o.keep,
      read: (one: string) => this.#read(one),
      commit: (settlement: Parameters<typeof commits.add>[0]) => commits.add(settlement),
      ended: (view: ItemView, error: string, closed: readonly ClosedGroup[]) => {
        this.#context.recorder.cancelled(view.envelope, reason, this.#context.now())
        this.#cancelled(view, error, closed)
      },
    }
    // Otherwise it would seem unknown, and run after all.
    await this.#context.unanswered.whenAnswered(id)
    return cancelItem(services, id, reason)
  }

  async pause(what: Pausable, reason?: string): Promise<void> {
    await this.#order('pause', what, reason)
  }

  async resume(what: Pausable, reason?: string): Promise<void> {
    await this.#order('resume', what, reason)
  }

  async paused(): Promise<PausedNames> {
    const { ledger, worker, registry } = this.#context
    if (ledger.paused === undefined) throw new NotSupportedError('tell what is paused', 'paused')
    return ledger.paused({ queues: worker.queues, types: registry.types })
  }

  async progress(id: string, type: string): Promise<unknown> {
    return this.#progressOf(await this.#read(id), type)
  }

  /** Polls, and yields what is new, until the item has ended or is no longer known. */
  async *watchProgress(
    id: string,
    type: string,
    { every = WATCH_EVERY_MS, signal }: ProgressOptions,
  ): AsyncGenerator<unknown, void> {
    let last: string | undefined
    for (;;) {
      signal?.throwIfAborted()
      const view = await this.#read(id)
      if (view?.progress !== undefined && view.progress !== last) {
        last = view.progress
        yield this.#progressOf(view, type)
      }
      if (view === undefined || view.status === 'completed' || view.status === 'dead') return
      await this.#context.o.clock.sleep(every, signal)
    }
  }

  #progressOf(view: ItemView | undefined, type: string): unknown {
    if (view?.progress === undefined) return undefined
    return this.#context.registry.codecOf(type, this.#context.o.codec).parse(view.progress)
  }

  async #read(id: string): Promise<ItemView | undefined> {
    return (await this.#context.ledger.read([id]))[0]
  }

  async #order(order: 'pause' | 'resume', given: Pausable, reason = ''): Promise<void> {
    const { registry, worker, commits } = this.#context
    const what = readPausable(order, given, (queue) => registry.nameOf(queue))
    const result = await commits.add(pauseOrResume(order, what, worker.id, reason))
    if (result.kind === 'failed') throw result.error
    if (result.kind === 'refused') throw new OptionTypeError(`${order}.${what.what}`, result.message, what.name)
  }
}
