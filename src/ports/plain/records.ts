import type { Clock } from '../../core/clock.js'
import type { Ms } from '../../core/time.js'
import type { Keys } from './keys.js'
import type { PlainStore } from './plain-store.js'
import type { Turns } from './turns.js'

/** Returns the next text of a record, or undefined to leave it as it is. */
type Change = (current: string | undefined) => string | undefined | Promise<string | undefined>

const LOCK_MS = 5_000
const FIRST_WAIT_MS = 5
const LONGEST_WAIT_MS = 100

/**
 * Changes records that several processes write. With `compareAndSet` a change is tried until nobody came in between; without
 * it, a lock key with a token and five seconds to live keeps the others out.
 */
export class Records {
  readonly #store: PlainStore
  readonly #keys: Keys
  readonly #turns: Turns
  readonly #clock: Clock
  readonly #newToken: () => string

  constructor(store: PlainStore, keys: Keys, turns: Turns, clock: Clock, newToken: () => string) {
    this.#store = store
    this.#keys = keys
    this.#turns = turns
    this.#clock = clock
    this.#newToken = newToken
  }

  /** Applies the change to what is there. `change` may be called several times, and must be harmless to repeat. */
  update(key: string, ttl: Ms, change: Change): Promise<void> {
    return this.#turns.inTurn(`record ${key}`, () =>
      this.#store.canCompare ? this.#byComparing(key, ttl, change) : this.#byLocking(key, ttl, change),
    )
  }

  async #byComparing(key: string, ttl: Ms, change: Change): Promise<void> {
    for (;;) {
      const current = await this.#store.get(key)
      const next = await change(current)
      if (next === undefined || next === current) return
      if (await this.#store.compareAndSet(key, current, next, ttl)) return
    }
  }

  async #byLocking(key: string, ttl: Ms, change: Change): Promise<void> {
    const lock = this.#keys.lock(key)
    const token = this.#newToken()
    try {
      for (let wait = FIRST_WAIT_MS; (await this.#store.claim(lock, token, LOCK_MS)) !== token; ) {
        await this.#clock.sleep(wait)
        wait = Math.min(LONGEST_WAIT_MS, wait * 2)
      }
      const current = await this.#store.get(key)
      const next = await change(current)
      if (next !== undefined && next !== current) await this.#store.set(key, next, ttl)
    } finally {
      // Also after a claim that failed: it may have happened. Twice, because a lock that stays is in the way of everybody
      // until it runs out by itself; the change has been made either way.
      const unlock = () => this.#unlock(lock, token)
      await unlock()
        .catch(unlock)
        .catch(() => undefined)
    }
  }

  async #unlock(lock: string, token: string): Promise<void> {
    if ((await this.#store.get(lock)) === token) await this.#store.remove(lock)
  }
}
