import type { Clock } from '../../core/clock.js'
import type { Ms } from '../../core/time.js'
import type { StacksWarning } from './api.js'
import type { Writers } from './backend.js'
import { WatcherMismatchError } from './errors.js'

export interface EnrolmentOptions {
  readonly writers: Writers
  /** The name of this process. */
  readonly instance: string
  readonly clock: Clock
  readonly leaseMs: Ms
  readonly differentWatchers: 'refuse' | 'allow'
  readonly warn: (warning: StacksWarning) => void
}

/** The place of this process among those that write to the store: it says which phase-1 watchers it has, and keeps saying so. */
export class Enrolment {
  readonly #options: EnrolmentOptions
  #cancel: () => void = () => undefined
  #hasEnrolled = false
  #isOver = false

  constructor(options: EnrolmentOptions) {
    this.#options = options
  }

  /** Says which watchers these are, and refuses to go on beside others. */
  async begin(mine: string): Promise<void> {
    const { writers, instance, leaseMs, differentWatchers, warn } = this.#options
    this.#hasEnrolled = true
    const enrol = () => writers.enrol(instance, mine, leaseMs)
    const theirs = (await enrol()).find((fingerprint) => fingerprint !== mine)
    if (theirs !== undefined) {
      const error = new WatcherMismatchError(mine, theirs)
      if (differentWatchers === 'refuse') {
        await writers.leave(instance)
        throw error
      }
      warn({ code: 'WATCHERS_DIFFER', message: error.message, error })
    }
    const known = new Set([mine, ...(theirs === undefined ? [] : [theirs])])
    this.#renewEvery(leaseMs / 3, async () => {
      // One that came later and was not refused, because it allows it or has not heard of us: told once.
      for (const other of await enrol()) {
        if (known.has(other)) continue
        known.add(other)
        const error = new WatcherMismatchError(mine, other)
        warn({ code: 'WATCHERS_DIFFER', message: error.message, error })
      }
    })
  }

  async end(): Promise<void> {
    this.#isOver = true
    this.#cancel()
    const { writers, instance } = this.#options
    // Its place lapses by itself; a store that cannot be reached any more must still be closed.
    if (this.#hasEnrolled) await writers.leave(instance).catch(() => undefined)
  }

  #renewEvery(ms: Ms, enrol: () => Promise<void>): void {
    this.#cancel = this.#options.clock.after(ms, () => {
      if (this.#isOver) return
      this.#renewEvery(ms, enrol)
      // A store that cannot be reached now is tried again at the next turn.
      enrol().catch(() => undefined)
    })
  }
}
