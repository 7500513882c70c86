import { MillraceError } from '../../core/error.js'
import type { Ms } from '../../core/time.js'
import type { Store } from '../ports.js'
import { called, type RetryPort } from './call.js'
import type { PlainStore } from './plain-store.js'
import type { Turns } from './turns.js'

export interface Counted {
  /** What the counter says now; undefined where it has expired. */
  readonly value: number | undefined
  /** It was moved by this call, not by an earlier one. */
  readonly applied: boolean
}

/** An increment that has begun and whose outcome is not known yet. */
interface Open {
  /** Who asked for it: the same one asking again means the same increment. */
  readonly by: string
  /** What is written under the marker: new each time, so that a finished increment is never taken for one under way. */
  readonly token: string
  readonly before: number
  isSent: boolean
}

const MAX_OPEN = 10_000

/**
 * Counters on a plain store. An increment is never simply repeated: after a reply was lost nobody can tell from the answer
 * whether it happened.
 */
export class Counters {
  readonly #port: Store
  readonly #store: PlainStore
  readonly #retry: RetryPort
  readonly #turns: Turns
  readonly #newToken: () => string
  readonly #onUncertain: (error: unknown) => void
  readonly #open = new Map<string, Open>()

  constructor(
    port: Store,
    store: PlainStore,
    retry: RetryPort,
    turns: Turns,
    newToken: () => string,
    onUncertain: (error: unknown) => void,
  ) {
    this.#port = port
    this.#store = store
    this.#retry = retry
    this.#turns = turns
    this.#newToken = newToken
    this.#onUncertain = onUncertain
  }

  /** The store itself moves a counter once per marker, in one atomic step. */
  get areExact(): boolean {
    return this.#port.incrementOnce !== undefined
  }

  async read(key: string): Promise<number | undefined> {
    return countOf(await this.#store.get(key))
  }

  /** One increment. Without the port's own it is read and written back, one at a time per key: right in one process only. */
  increment(key: string, by: number, ttl: Ms): Promise<number> {
    if (this.#port.increment !== undefined) return called(() => this.#port.increment!(key, by, ttl))
    return this.#turns.inTurn(`count ${key}`, async () => {
      const next = ((await this.read(key)) ?? 0) + by
      await called(() => this.#port.set(key, String(next), ttl))
      return next
    })
  }

  /**
   * Moves `counter` once for `marker`, however often it is called and by however many processes. `asker` names the one who
   * asks, so that a repetition after a failure goes on where it was.
   *
   * Where the store has no `incrementOnce`, the marker is claimed first and the counter moved afterwards: at most once. A
   * crash in between leaves it unmoved. A failure in between is found out by reading the counter back; only when others have
   * moved it at the same time is the outcome uncertain, and then it is reported and taken for done.
   */
  incrementOnce(counter: string, marker: string, by: number, ttl: Ms, asker: string): Promise<Counted> {
    if (this.#port.incrementOnce !== undefined)
      return this.#retry(() => called(() => this.#port.incrementOnce!(counter, marker, by, ttl)))
    return this.#turns.inTurn(`once ${counter}`, () => this.#emulated(counter, marker, by, ttl, asker))
  }

  async #emulated(counter: string, marker: string, by: number, ttl: Ms, asker: string): Promise<Counted> {
    const open = await this.#begin(counter, marker, asker)
    if ((await this.#store.claim(marker, open.token, ttl)) !== open.token) {
      this.#open.delete(marker)
      return { value: await this.read(counter), applied: false }
    }
    if (open.isSent) {
      const now = await this.#afterwards(open, counter, by)
      if (now !== 'unmoved') return this.#done(marker, now)
    }
    open.isSent = true
    try {
      return this.#done(marker, await this.increment(counter, by, ttl))
    } catch (error) {
      const now = await this.read(counter).catch(() => undefined)
      if (now === open.before + by) return this.#done(marker, now)
      if ((now ?? 0) === open.before) open.isSent = false
      throw error
    }
  }

  /** What became of an increment that failed: the value if it was moved, `unmoved` if it surely was not. */
  async #afterwards(open: Open, counter: string, by: number): Promise<number | 'unmoved'> {
    const now = (await this.read(counter)) ?? 0
    if (now === open.before) return 'unmoved'
    if (now !== open.before + by) this.#onUncertain(uncertain(counter, open.before, by, now))
    return now
  }

  #done(marker: string, value: number): Counted {
    this.#open.delete(marker)
    return { value, applied: true }
  }

  async #begin(counter: string, marker: string, asker: string): Promise<Open> {
    const known = this.#open.get(marker)
    if (known?.by === asker) return known
    const open: Open = { by: asker, token: this.#newToken(), before: (await this.read(counter)) ?? 0, isSent: false }
    this.#open.set(marker, open)
    const [oldest] = this.#open.keys()
    if (this.#open.size > MAX_OPEN && oldest !== undefined) this.#open.delete(oldest)
    return open
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
