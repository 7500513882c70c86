import { MillraceError } from '../../core/error.js'
import type { Ms } from '../../core/time.js'
import type { Shared } from '../shared.js'
import { resolveSchedule, type ScheduleConfig } from './config.js'
import { ScheduleDesk } from './schedule-desk.js'
import { Ticker } from './ticker.js'

/** The schedules of one system. They go on whether or not it works, until it is stopped. */
export class Schedules {
  readonly #shared: Shared
  readonly #accepted: () => void
  readonly #tickers = new Set<Ticker>()
  #desk: ScheduleDesk | undefined

  constructor(shared: Shared, accepted: () => void) {
    this.#shared = shared
    this.#accepted = accepted
  }

  /** Begins a schedule. What it returns ends it in this process. */
  add(config: ScheduleConfig): () => void {
    const schedule = resolveSchedule(config)
    this.#desk ??= this.#openDesk()
    const ticker = new Ticker(schedule, this.#desk)
    this.#tickers.add(ticker)
    ticker.on()
    return () => {
      this.#tickers.delete(ticker)
      void ticker.off()
    }
  }

  /** Lets those that were stopped go on. */
  start(): void {
    for (const ticker of this.#tickers) ticker.on()
  }

  /** Stops all of them. What is being fired is waited for, but not for long. */
  async stop(drainMs: Ms): Promise<void> {
    const going = [...this.#tickers].map((ticker) => ticker.off())
    let cancel: () => void = () => undefined
    const late = new Promise<void>((resolve) => {
      cancel = this.#shared.o.clock.after(drainMs, resolve)
    })
    await Promise.race([Promise.all(going), late])
    cancel()
  }

  #openDesk(): ScheduleDesk {
    const { ledger } = this.#shared
    if (ledger.schedules !== undefined)
      return new ScheduleDesk(this.#shared, (names) => ledger.schedules!(names), this.#accepted)
    throw new MillraceError(
      'NOT_SUPPORTED',
      'This backend cannot schedule: its ledger has no schedules(names). Use another backend, or its plain ports.',
    )
  }
}
