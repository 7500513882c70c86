import { MillraceError } from '../../core/error.js'
import { newToken } from '../../core/ids.js'
import { doublingDelay } from '../../core/retry/backoff.js'
import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import type { Keys } from './keys.js'
import { called, type PlainStore } from './plain-ports.js'

/** Within this process, one task at a time for each key, in the order of asking. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>()

  run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key)
    const own = before === undefined ? task() : before.then(task, task)
    this.#last.set(key, own)
    const end = () => {
      if (this.#last.get(key) === own) this.#last.delete(key)
    }
    own.then(end, end)
    return own
  }
}

interface Counted {
  /** What the counter says now; undefined where it has expired. */
  readonly value: number | undefined
  /** This call moved it, not an earlier one. */
  readonly applied: boolean
}

/** An increment that has begun and whose outcome is not known yet. */
interface PendingIncrement {
  /** Who asked for it: the same one asking again means the same increment. */
  readonly by: string
  /** What is written under the marker: new each time, so a finished increment is never taken for one in flight. */
  readonly token: string
  readonly before: number
  isSent: boolean
}

const MAX_PENDING = 10_000

/**
 * Counters on a plain store. An increment is never simply repeated: after a lost reply it may or may not have
 * happened.
 */
export class Counters {
  readonly #store: PlainStore
  readonly #onUncertain: (error: unknown) => void
  readonly #mutex = new KeyedMutex()
  readonly #pending = new Map<string, PendingIncrement>()

  constructor(store: PlainStore, onUncertain: (error: unknown) => void) {
    this.#store = store
    this.#onUncertain = onUncertain
  }

  /** The store itself moves a counter once per marker, in one atomic step. */
  get areExact(): boolean {
    return this.#store.port.incrementOnce !== undefined
  }

  async read(key: string): Promise<number | undefined> {
    return countOf(await this.#store.get(key))
  }

  /** One increment. Without the port's own it is read and written back, one at a time per key: right in one process only. */
  increment(key: string, by: number, ttl: Ms): Promise<number> {
    const { port } = this.#store
    if (port.increment !== undefined) return called(() => port.increment!(key, by, ttl))
    return this.#mutex.run(`count ${key}`, async () => {
      const next = ((await this.read(key)) ?? 0) + by
      await port.set(key, String(next), ttl)
      return next
    })
  }

  /**
   * Moves `counter` once for `marker`, however often it is called and by however many processes. `asker` names the caller,
   * so a repetition after a failure continues where it was.
   *
   * Where the store has no `incrementOnce`, the marker is claimed first and the counter moved afterwards: at most once. A
   * crash in between leaves it unmoved. After a failure in between the counter is read back; only when others have moved it
   * at the same time is the outcome uncertain, and then it is reported and taken for done.
   */
  incrementOnce(counter: string, marker: string, by: number, ttl: Ms, asker: string): Promise<Counted> {
    const { port, retry } = this.#store
    if (port.incrementOnce !== undefined)
      return retry(() => called(() => port.incrementOnce!(counter, marker, by, ttl)))
    return this.#mutex.run(`once ${counter}`, () => this.#emulated(counter, marker, by, ttl, asker))
  }

  async #emulated(counter: string, marker: string, by: number, ttl: Ms, asker: string): Promise<Counted> {
    const pending = await this.#begin(counter, marker, asker)
    if ((await this.#store.claim(marker, pending.token, ttl)) !== pending.token) {
      this.#pending.delete(marker)
      return { value: await this.read(counter), applied: false }
    }
    const { before } = pending
    if (pending.isSent) {
      const now = (await this.read(counter)) ?? 0
      if (now !== before && now !== before + by) this.#onUncertain(uncertain(counter, before, by, now))
      if (now !== before) return this.#done(marker, now)
    }
    pending.isSent = true
    try {
      return this.#done(marker, await this.increment(counter, by, ttl))
    } catch (error) {
      const now = await this.read(counter).catch(() => undefined)
      if (now === before + by) return this.#done(marker, now)
      if ((now ?? 0) === before) pending.isSent = false
      throw error
    }
  }

  #done(marker: string, value: number): Counted {
    this.#pending.delete(marker)
    return { value, applied: true }
  }

  async #begin(counter: string, marker: string, asker: string): Promise<PendingIncrement> {
    const known = this.#pending.get(marker)
    if (known?.by === asker) return known
    const pending = { by: asker, token: newToken(), before: (await this.read(counter)) ?? 0, isSent: false }
    this.#pending.set(marker, pending)
    const [oldest] = this.#pending.keys()
    if (this.#pending.size > MAX_PENDING && oldest !== undefined) this.#pending.delete(oldest)
    return pending
  }
}

export function countOf(text: string | undefined): number | undefined {
  const value = text === undefined || text === '' ? Number.NaN : Number(text)
  return Number.isFinite(value) ? value : undefined
}

function uncertain(counter: string, before: number, by: number, now: number): MillraceError {
  return new MillraceError(
    'COUNT_UNCERTAIN',
    `The counter ${counter} was ${before}; adding ${by} failed without saying whether it happened, and others have moved it ` +
      `to ${now} since. It is taken for done; if it was not, its group or gate stays open. ` +
      'Give the store an incrementOnce() to rule this out.',
    { facts: { counter, before, by, now } },
  )
}

/** Returns the next text of a record, or undefined to leave it as it is. */
type Change = (current: string | undefined) => string | undefined | Promise<string | undefined>

const LOCK_MS = 5_000
const LOCK_WAIT = { baseMs: 5, maxMs: 100 }

/**
 * Changes records that several processes write. With `compareAndSet` a change is tried until no other writer came in between;
 * without it, a lock key with a token and five seconds to live keeps the others out.
 */
export class Records {
  readonly #store: PlainStore
  readonly #keys: Keys
  readonly #clock: Clock
  readonly #mutex = new KeyedMutex()

  constructor(store: PlainStore, keys: Keys, clock: Clock) {
    this.#store = store
    this.#keys = keys
    this.#clock = clock
  }

  /** Applies the change to what is there. `change` may be called several times, and must be harmless to repeat. */
  update(key: string, ttl: Ms, change: Change): Promise<void> {
    return this.#mutex.run(key, () =>
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
    const token = newToken()
    try {
      for (let tries = 0; (await this.#store.claim(lock, token, LOCK_MS)) !== token; tries += 1) {
        await this.#clock.sleep(doublingDelay(tries, LOCK_WAIT))
      }
      const current = await this.#store.get(key)
      const next = await change(current)
      if (next !== undefined && next !== current) await this.#store.set(key, next, ttl)
    } finally {
      const unlock = async () => {
        if ((await this.#store.get(lock)) === token) await this.#store.remove(lock)
      }
      // Also after a claim that failed: it may have happened. Twice, because a lock that stays keeps the others out until it
      // expires; the change has been made either way.
      await unlock()
        .catch(unlock)
        .catch(() => undefined)
    }
  }
}
