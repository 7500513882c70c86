import { isDrained } from '../../core/stream-errors.js'
import type { Ms } from '../../core/time.js'
import type { Turns } from '../../core/turns.js'
import type { Admission } from './admission.js'
import type { Feed, Pulled } from './feed.js'
import { GivenBack } from './given-back.js'
import type { LoopOptions } from './loop-options.js'
import type { Observer } from './observer.js'
import { Wake } from './wake.js'

/** Why fetching ended. */
export type FetchEnd = { readonly kind: 'stopped' | 'drained' } | { readonly kind: 'failed'; readonly error: unknown }

const STOPPED: FetchEnd = Object.freeze({ kind: 'stopped' })
const DRAINED: FetchEnd = Object.freeze({ kind: 'drained' })

/** What the fetcher asks the rest of its run. */
export interface FetcherSide<D> {
  /** What the policy wants, beside what is held. */
  readonly appetite: () => ReturnType<Admission<D>['appetite']>
  /** Offers what was pulled to the policy, and says whether any of it was taken. */
  readonly admit: (pulled: Pulled<D>) => boolean
  readonly turns: Turns
}

/** The fetching half of a run: asks the policy how much it wants, and the feed for that much. */
export class Fetcher<D, R> {
  readonly #o: LoopOptions
  readonly #watch: Observer<D, R>
  readonly #feed: Feed<D, R>
  readonly #side: FetcherSide<D>
  readonly #wake: Wake
  readonly #givenBack: GivenBack

  constructor(options: LoopOptions, watch: Observer<D, R>, feed: Feed<D, R>, side: FetcherSide<D>) {
    this.#o = options
    this.#watch = watch
    this.#feed = feed
    this.#side = side
    this.#wake = new Wake(options.clock)
    this.#givenBack = new GivenBack(() => options.clock.now())
  }

  /** Look now: there is something to fetch, room for it, or a reason to stop. */
  ring(): void {
    this.#wake.ring()
  }

  /** What is given back for later is for others first: this loop looks for it a little after it falls due. */
  othersFirst(delayMs: Ms, released: Promise<void>): void {
    this.#givenBack.add(delayMs, released, this.#o.idlePollMs)
  }

  /** Does not reject. */
  async run(stopping: AbortSignal): Promise<FetchEnd> {
    try {
      return await this.#fetch(stopping)
    } catch (error) {
      return { kind: 'failed', error }
    }
  }

  async #fetch(stopping: AbortSignal): Promise<FetchEnd> {
    const { clock, fetchRetry, idlePollMs } = this.#o
    let failures = 0
    // Whoever started the run gets to finish its sentence before the feed is asked for the first time.
    await Promise.resolve()
    while (!stopping.aborted) {
      await this.#side.turns.due()
      this.#wake.reset()
      const asked = this.#appetite()
      const appetite = isLater(asked) ? await asked : asked
      if (stopping.aborted) break
      if (typeof appetite !== 'number') {
        await clock.sleep(appetite.askAgainInMs, stopping).catch(() => undefined)
        continue
      }
      if (appetite <= 0) {
        const sinceMs = clock.monotonic()
        await this.#wake.sleep(idlePollMs)
        this.#watch.stalled?.(clock.monotonic() - sinceMs)
        continue
      }
      let isWorthAnotherLook = false
      try {
        const pulled = await this.#feed.pull(appetite, stopping)
        failures = 0
        const took = this.#side.admit(pulled)
        isWorthAnotherLook = pulled.more && (took || pulled.items.length === 0)
      } catch (error) {
        if (stopping.aborted) break
        if (isDrained(error)) return DRAINED
        failures += 1
        this.#watch.failed?.('pull', error)
        if (!this.#feed.isTransient?.(error) || failures >= fetchRetry.attempts) return { kind: 'failed', error }
        await clock.sleep(fetchRetry.delayMs(failures), stopping).catch(() => undefined)
        continue
      }
      // A round in which everything was given back has nothing to hurry for: it found no room.
      if (!isWorthAnotherLook && !stopping.aborted) await this.#wake.sleep(this.#idleMs())
    }
    return STOPPED
  }

  #appetite(): ReturnType<Admission<D>['appetite']> {
    // A policy that cannot say how much it wants is asked again later; the run goes on.
    const onError = (error: unknown) => {
      this.#watch.failed?.('offer', error)
      return { askAgainInMs: this.#o.idlePollMs }
    }
    try {
      const asked = this.#side.appetite()
      return isLater(asked) ? asked.catch(onError) : asked
    } catch (error) {
      return onError(error)
    }
  }

  #idleMs(): Ms {
    const { clock, idlePollMs } = this.#o
    const now = clock.now()
    return Math.max(0, this.#givenBack.lookAt(this.#feed.nextDueAt?.(), now + idlePollMs) - now)
  }
}

function isLater<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as Partial<Promise<T>>).then === 'function'
}
