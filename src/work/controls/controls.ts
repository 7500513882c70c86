import { numberOption, OptionTypeError, optionsObject } from '../../core/options.js'
import type { ItemView, PausedNames } from '../../ports/ledger.js'
import type { ClosedGroup } from '../../ports/settlement.js'
import type { Shared } from '../shared.js'
import type { WatchOptions } from '../work.js'
import { type CancelAnswer, cancelItem } from './cancel.js'
import { NotSupportedError, type Pausable, pauseOrResume, readPausable } from './pausing.js'

const WATCH_EVERY_MS = 1_000

const WATCH_NAMES = ['every', 'signal'] as const satisfies readonly (keyof WatchOptions)[]

/** Bad options throw, at the call: a look without a pause in between would be all that the process does. */
export function checkedWatch(options: WatchOptions | undefined): WatchOptions {
  const { every, signal } = optionsObject('watchProgress', options, WATCH_NAMES)
  const ms = numberOption('watchProgress.every', every, { above: 0, default: WATCH_EVERY_MS })
  return { every: ms, ...(signal === undefined ? {} : { signal }) }
}

/** What a person, or a program in their place, can do to items, types and queues of the whole fleet. */
export class Controls {
  readonly #s: Shared
  readonly #cancelled: (view: ItemView, error: string, closed: readonly ClosedGroup[]) => void

  /** `cancelled` hears of an item that was waiting and has ended by a cancel of ours. */
  constructor(shared: Shared, cancelled: (view: ItemView, error: string, closed: readonly ClosedGroup[]) => void) {
    this.#s = shared
    this.#cancelled = cancelled
  }

  async cancel(id: string, reason = ''): Promise<CancelAnswer> {
    if (typeof id !== 'string' || id === '') throw new OptionTypeError('cancel(id)', 'the id of an item', id)
    if (typeof reason !== 'string') throw new OptionTypeError('cancel(id, reason)', 'a string', reason)
    const { o, worker, commits } = this.#s
    const services = {
      who: worker.id,
      keep: o.keep,
      read: (one: string) => this.#read(one),
      commit: (settlement: Parameters<typeof commits.add>[0]) => commits.add(settlement),
      ended: (view: ItemView, error: string, closed: readonly ClosedGroup[]) => {
        this.#s.recorder.cancelled(view.envelope, reason, this.#s.now())
        this.#cancelled(view, error, closed)
      },
    }
    await this.#arrival(id)
    return cancelItem(services, id, reason)
  }

  async pause(what: Pausable, reason?: string): Promise<void> {
    await this.#order('pause', what, reason)
  }

  async resume(what: Pausable, reason?: string): Promise<void> {
    await this.#order('resume', what, reason)
  }

  async paused(): Promise<PausedNames> {
    const { ledger, worker, registry } = this.#s
    if (ledger.paused === undefined) throw new NotSupportedError('tell what is paused', 'paused')
    return ledger.paused({ queues: worker.queues, types: registry.types })
  }

  async progress(id: string, type: string): Promise<unknown> {
    return this.#progressOf(await this.#read(id), type)
  }

  /** Looks again and again, and tells what is new, until the item has ended or is no longer known. */
  async *watchProgress(
    id: string,
    type: string,
    { every = WATCH_EVERY_MS, signal }: WatchOptions,
  ): AsyncGenerator<unknown, void> {
    let last: string | undefined
    for (;;) {
      signal?.throwIfAborted()
      const view = await this.#read(id)
      if (view?.progress !== undefined && view.progress !== last) {
        last = view.progress
        yield this.#progressOf(view, type)
      }
      if (view === undefined || view.status === 'success' || view.status === 'dead') return
      await this.#s.o.clock.sleep(every, signal)
    }
  }

  #progressOf(view: ItemView | undefined, type: string): unknown {
    if (view?.progress === undefined) return undefined
    return this.#s.registry.codecOf(type, this.#s.o.codec).parse(view.progress)
  }

  /** What this process has enqueued and the backend has not answered yet would seem unknown, and run after all. */
  async #arrival(id: string): Promise<void> {
    try {
      await this.#s.unanswered.of(id)
    } catch {
      // Whoever enqueued it hears of that. Whether it is there, the backend knows.
    }
  }

  async #read(id: string): Promise<ItemView | undefined> {
    return (await this.#s.ledger.read([id]))[0]
  }

  async #order(order: 'pause' | 'resume', given: Pausable, reason = ''): Promise<void> {
    const { registry, worker, commits } = this.#s
    const what = readPausable(order, given, (queue) => registry.nameOf(queue))
    const result = await commits.add(pauseOrResume(order, what, worker.id, reason))
    if (result.kind === 'failed') throw result.error
    if (result.kind === 'refused') throw new OptionTypeError(`${order}.${what.what}`, result.message, what.name)
  }
}
