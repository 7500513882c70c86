import { isDrained } from '../../core/stream/stream-errors.js'
import type { Clock } from '../../core/time/clock.js'
import type { EventLoopTurns } from '../../core/time/event-loop-turns.js'
import { isPromise, type Ms } from '../../core/time/time.js'
import type { Admission } from './admission.js'
import type { Feed, Pulled } from './feed.js'
import type { LoopObserver } from './loop-observer.js'
import type { LoopOptions } from './loop-options.js'
import { Released } from './released.js'

/** Why fetching ended. */
export type FetchEnd = { readonly kind: 'stopped' | 'drained' } | { readonly kind: 'failed'; readonly error: unknown }

const STOPPED: FetchEnd = Object.freeze({ kind: 'stopped' })
const DRAINED: FetchEnd = Object.freeze({ kind: 'drained' })

/** What the fetcher asks the rest of its run. */
export interface FetcherSide<D> {
  /** How many more the admission policy can take, beside what is held. */
  readonly capacity: () => ReturnType<Admission<D>['capacity']>
  /** Offers what was pulled to the policy, and says whether any of it was taken. */
  readonly admit: (pulled: Pulled<D>) => boolean
  readonly turns: EventLoopTurns
}

/** The fetching half of a run: asks the policy how many it can take, and pulls that many from the feed. */
export class Fetcher<D, R> {
  readonly #o: LoopOptions
  readonly #watch: LoopObserver<D, R>
  readonly #feed: Feed<D, R>
  readonly #side: FetcherSide<D>
  readonly #wakeSignal: WakeSignal
  readonly #released: Released

  constructor(options: LoopOptions, watch: LoopObserver<D, R>, feed: Feed<D, R>, side: FetcherSide<D>) {
    this.#o = options
    this.#watch = watch
    this.#feed = feed
    this.#side = side
    this.#wakeSignal = new WakeSignal(options.clock)
    this.#released = new Released(() => options.clock.now())
  }

  /** Pulls now: there is something to fetch, room for it, or a reason to stop. */
  wake(): void {
    this.#wakeSignal.wake()
  }

  /** Other workers get the first chance at what is released for later: this loop pulls it a little after it falls due. */
  othersFirst(delayMs: Ms, released: Promise<void>): void {
    this.#released.add(delayMs, released, this.#o.idlePollMs)
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
    // The caller's own statement ends before the first pull.
    await Promise.resolve()
    while (!stopping.aborted) {
      await this.#side.turns.due()
      this.#wakeSignal.reset()
      const asked = this.#capacity()
      const capacity = isPromise(asked) ? await asked : asked
      if (stopping.aborted) break
      if (typeof capacity !== 'number') {
        await clock.sleep(capacity.askAgainInMs, stopping).catch(() => undefined)
        continue
      }
      if (capacity <= 0) {
        const sinceMs = clock.monotonic()
        await this.#wakeSignal.sleep(idlePollMs)
        this.#watch.stalled?.(clock.monotonic() - sinceMs)
        continue
      }
      let pullsAgain = false
      try {
        const pulled = await this.#feed.pull(capacity, stopping)
        failures = 0
        const took = this.#side.admit(pulled)
        pullsAgain = pulled.more && (took || pulled.items.length === 0)
      } catch (error) {
        if (stopping.aborted) break
        if (isDrained(error)) return DRAINED
        failures += 1
        this.#watch.failed?.('pull', error)
        if (!this.#feed.isTransient?.(error) || failures >= fetchRetry.attempts) return { kind: 'failed', error }
        await clock.sleep(fetchRetry.delayMs(failures), stopping).catch(() => undefined)
        continue
      }
      // A pull of which everything was released found no room: the next one can wait.
      if (!pullsAgain && !stopping.aborted) await this.#wakeSignal.sleep(this.#idleMs())
    }
    return STOPPED
  }

  #capacity(): ReturnType<Admission<D>['capacity']> {
    // A policy that cannot say how many it can take is asked again later; the run goes on.
    const onError = (error: unknown) => {
      this.#watch.failed?.('offer', error)
      return { askAgainInMs: this.#o.idlePollMs }
    }
    try {
      const asked = this.#side.capacity()
      return isPromise(asked) ? asked.catch(onError) : asked
    } catch (error) {
      return onError(error)
    }
  }

  #idleMs(): Ms {
    const { clock, idlePollMs } = this.#o
    const now = clock.now()
    return Math.max(0, this.#released.lookAt(this.#feed.nextDueAt?.(), now + idlePollMs) - now)
  }
}

/** Lets one sleeper be woken. A wake-up that comes while it is awake is kept, so that none is lost between two pulls. */
class WakeSignal {
  readonly #clock: Clock
  #isWoken = false
  #wakeUp: (() => void) | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  wake(): void {
    if (this.#wakeUp === undefined) this.#isWoken = true
    else this.#wakeUp()
  }

  /** Forgets a wake-up that was kept: the pull that follows finds what it was about. */
  reset(): void {
    this.#isWoken = false
  }

  /** Sleeps until it is woken or `ms` have passed. */
  sleep(ms: Ms): Promise<void> {
    if (this.#isWoken) {
      this.#isWoken = false
      return Promise.resolve()
    }
    return new Promise((resolve) => {
      const wakeUp = () => {
        this.#wakeUp = undefined
        cancel()
        resolve()
      }
      const cancel = this.#clock.after(ms, wakeUp)
      this.#wakeUp = wakeUp
    })
  }
}
