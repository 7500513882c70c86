import type { Clock } from '../../core/time/clock.js'
import { keepAlive } from '../../core/time/keep-alive.js'
import type { ClerkApi } from '../clerk/api.js'
import type { WritDoc } from '../clerk/writs/writ.js'
import type { ClockworksRetryApi } from '../clockworks-retry/api.js'
import type { StacksApi } from '../stacks/api.js'

/** How often writs are read again, in case a change in another process went unnoticed. */
const POLL_MS = 1_000

interface Waiter {
  readonly id: string
  readonly resolve: (writ: WritDoc) => void
  readonly reject: (error: unknown) => void
}

/** Callers that wait until writs have ended, or are stuck and stay so. */
export class Endings {
  readonly #options: { readonly clerk: ClerkApi; readonly retry: ClockworksRetryApi; readonly clock: Clock }
  readonly #waiters = new Set<Waiter>()
  readonly #stopListening: () => void
  #cancelTimer: (() => void) | undefined

  constructor(options: {
    readonly clerk: ClerkApi
    readonly retry: ClockworksRetryApi
    readonly stacks: StacksApi
    readonly clock: Clock
  }) {
    this.#options = options
    this.#stopListening = options.stacks.onChangeElsewhere(() => this.check())
  }

  of(id: string): Promise<WritDoc> {
    const release = this.#options.clock.isReal === true ? keepAlive() : () => undefined
    const ended = new Promise<WritDoc>((resolve, reject) => this.#waiters.add({ id, resolve, reject }))
    this.check(id)
    return ended.finally(release)
  }

  /** This writ may have changed; without an id, any of them. */
  check(id?: string): void {
    if (this.#waiters.size === 0) return
    this.#cancelTimer ??= this.#options.clock.after(POLL_MS, () => {
      this.#cancelTimer = undefined
      this.check()
    })
    for (const waiter of this.#waiters) if (id === undefined || waiter.id === id) void this.#look(waiter)
  }

  /** Callers that still wait are rejected. */
  close(why: Error): void {
    this.#stopListening()
    this.#cancelTimer?.()
    for (const { reject } of this.#waiters) reject(why)
    this.#waiters.clear()
  }

  async #look(waiter: Waiter): Promise<void> {
    const { clerk, retry } = this.#options
    try {
      const writ = await clerk.show(waiter.id)
      const isOver = clerk.isTerminal(writ) || (await this.#isStuckForGood(writ, retry))
      if (isOver && this.#waiters.delete(waiter)) waiter.resolve(writ)
    } catch (error) {
      if (this.#waiters.delete(waiter)) waiter.reject(error)
    }
  }

  async #isStuckForGood(writ: WritDoc, retry: ClockworksRetryApi): Promise<boolean> {
    return writ.phase === 'stuck' && (await retry.describe(writ.id)).decision === 'leave'
  }
}
