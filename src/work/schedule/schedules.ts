import { MillraceError } from '../../core/error.js'
import type { Ms } from '../../core/time/time.js'
import { withTimeout } from '../../core/time/with-timeout.js'
import type { EngineContext } from '../engine-context.js'
import { resolveSchedule, type ScheduleConfig } from './config.js'
import { ScheduleStore } from './schedule-store.js'
import { Ticker } from './ticker.js'

/** The schedules of one system. They go on whether or not it works, until it is stopped. */
export class Schedules {
  readonly #context: EngineContext
  readonly #accepted: () => void
  readonly #tickers = new Set<Ticker>()
  #store: ScheduleStore | undefined

  constructor(context: EngineContext, accepted: () => void) {
    this.#context = context
    this.#accepted = accepted
  }

  /** Starts a schedule. The function that it returns ends it in this process. */
  add(config: ScheduleConfig): () => void {
    const schedule = resolveSchedule(config)
    this.#store ??= this.#openStore()
    const ticker = new Ticker(schedule, this.#store)
    this.#tickers.add(ticker)
    ticker.on()
    return () => {
      this.#tickers.delete(ticker)
      void ticker.off()
    }
  }

  /** Starts those again that were stopped. */
  start(): void {
    for (const ticker of this.#tickers) ticker.on()
  }

  /** Stops all of them, and waits a limited time for occurrences that are being fired. */
  async stop(drainMs: Ms): Promise<void> {
    const going = [...this.#tickers].map((ticker) => ticker.off())
    await withTimeout<unknown, void>(this.#context.o.clock, drainMs, Promise.all(going), () => undefined)
  }

  #openStore(): ScheduleStore {
    const { ledger } = this.#context
    if (ledger.schedules !== undefined)
      return new ScheduleStore(this.#context, (names) => ledger.schedules!(names), this.#accepted)
    throw new MillraceError(
      'NOT_SUPPORTED',
      'This backend cannot schedule: its ledger has no schedules(names). Use another backend, or its plain ports.',
    )
  }
}
