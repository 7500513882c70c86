import { MillraceError } from '../../../core/error.js'
import { booleanOption, functionOption, optionsObject } from '../../../core/options.js'
import { type BookRef, bookKey, watcherName } from '../documents/names.js'
import type { Doc } from '../documents/value.js'
import { WatchClosedError } from '../errors.js'
import type { ChangeHandler, WatchOptions } from './events.js'

/** One registered watcher. */
export interface Watcher {
  readonly ref: BookRef
  readonly handler: ChangeHandler<Doc>
}

/** A watcher whose progress the store remembers. */
export interface DurableWatcher extends Watcher {
  readonly name: string
}

/** The registered watchers. Registration closes when startup ends: a watcher that came later would have missed events. */
export class Watchers {
  readonly #phase1 = new Map<string, Watcher[]>()
  readonly #phase2 = new Map<string, Watcher[]>()
  readonly #durable = new Map<string, DurableWatcher>()
  #isSealed = false

  /** Registers one, and returns it if it is a new durable one. */
  add(ref: BookRef, handler: ChangeHandler<Doc>, given: WatchOptions | undefined): DurableWatcher | undefined {
    if (this.#isSealed) throw new WatchClosedError(ref.ownerId, ref.book)
    functionOption('watch(handler)', handler)
    const options = optionsObject('watch', given, ['failOnError', 'durable'])
    if (options.durable !== undefined) {
      if (options.failOnError === true)
        throw new MillraceError(
          'BAD_OPTION',
          'watch.durable runs after the commit, so failOnError cannot be true. Leave failOnError out.',
        )
      return this.#addDurable(watcherName(options.durable), ref, handler)
    }
    const phase = booleanOption('watch.failOnError', options.failOnError, true) ? this.#phase1 : this.#phase2
    const key = bookKey(ref)
    phase.set(key, [...(phase.get(key) ?? []), { ref, handler }])
    return undefined
  }

  /** No more after this. */
  seal(): void {
    this.#isSealed = true
  }

  phase1(ref: BookRef): readonly Watcher[] {
    return this.#phase1.get(bookKey(ref)) ?? []
  }

  phase2(ref: BookRef): readonly Watcher[] {
    return this.#phase2.get(bookKey(ref)) ?? []
  }

  get durable(): readonly DurableWatcher[] {
    return [...this.#durable.values()]
  }

  /** Which books have phase-1 watchers, and how many: every process that writes must have the same. */
  get fingerprint(): string {
    return [...this.#phase1]
      .map(([key, watchers]) => (watchers.length === 1 ? key : `${key}×${watchers.length}`))
      .sort()
      .join(', ')
  }

  #addDurable(name: string, ref: BookRef, handler: ChangeHandler<Doc>): DurableWatcher {
    if (this.#durable.has(name))
      throw new MillraceError(
        'WATCHER_TAKEN',
        `A durable watcher "${name}" is registered already. Its name is the name of its progress: choose another.`,
        { facts: { name } },
      )
    const watcher = { name, ref, handler }
    this.#durable.set(name, watcher)
    return watcher
  }
}
