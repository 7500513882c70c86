import type { Clock } from '../../../core/time/clock.js'
import { keepLease } from '../../../core/time/lease.js'
import type { Ms } from '../../../core/time/time.js'
import type { StacksWarning } from '../api.js'
import type { Writers } from '../backend.js'
import { WatcherMismatchError } from '../errors.js'

export interface WriterRegistrationOptions {
  readonly writers: Writers
  /** The name of this process. */
  readonly instance: string
  readonly clock: Clock
  readonly leaseMs: Ms
  readonly differentWatchers: 'refuse' | 'allow'
  readonly warn: (warning: StacksWarning) => void
}

/** Registers this process among those that write to the store, with the fingerprint of its phase-1 watchers. */
export class WriterRegistration {
  readonly #options: WriterRegistrationOptions
  #stop: (() => void) | undefined

  constructor(options: WriterRegistrationOptions) {
    this.#options = options
  }

  /** Refuses to go on beside processes with other watchers, unless that is allowed. */
  async begin(mine: string): Promise<void> {
    const { writers, instance, leaseMs, differentWatchers, warn } = this.#options
    const known = new Set([mine])
    const registerAndFindOthers = async (): Promise<WatcherMismatchError[]> => {
      const others = new Set(await writers.register(instance, mine, leaseMs))
      const unknown = [...others].filter((other) => !known.has(other))
      for (const other of unknown) known.add(other)
      return unknown.map((other) => new WatcherMismatchError(mine, other))
    }
    const warnOf = (error: WatcherMismatchError): void =>
      warn({ code: 'WATCHERS_DIFFER', message: error.message, error })
    this.#stop = () => undefined
    const mismatches = await registerAndFindOthers()
    if (mismatches[0] !== undefined && differentWatchers === 'refuse') {
      await writers.leave(instance)
      throw mismatches[0]
    }
    mismatches.forEach(warnOf)
    this.#keep(async () => {
      // A process that came later and was not refused: it allows other watchers, or started before this one was registered.
      for (const mismatch of await registerAndFindOthers()) warnOf(mismatch)
      return true
    })
  }

  async end(): Promise<void> {
    if (this.#stop === undefined) return
    this.#stop()
    const { writers, instance } = this.#options
    // The registration lapses by itself; a store that cannot be reached any more must still be closed.
    await writers.leave(instance).catch(() => undefined)
  }

  /** A registration that lapsed because the store could not be reached is made again as soon as it can be. */
  #keep(renew: () => Promise<boolean>): void {
    const { clock, leaseMs } = this.#options
    this.#stop = keepLease({ clock, leaseMs, renew, onLost: () => this.#keep(renew) })
  }
}
