import { integer, readOptions } from '../read-options.js'
import type { Doer } from './doer.js'
import { idle } from './idle.js'
import { checkTask, startSoon } from './start.js'

/** Options of {@link unlimitedDoer}. */
export interface UnlimitedDoerOptions {
  /** What `available()` always answers: how much an engine pulls at a time. Default: 256. */
  readonly available?: number
}

const NEVER = (): void => {}

/** A doer without a limit: every task starts immediately. `available()` is constant, so it never rises and never wakes a listener. */
export function unlimitedDoer(options?: UnlimitedDoerOptions): Doer {
  const { available } = readOptions('unlimitedDoer', options, { available: integer({ min: 0, default: 256 }) })
  const whenIdle = idle()
  let running = 0
  const settled = (): void => {
    running -= 1
    if (running === 0) whenIdle.reached()
  }
  return {
    available: () => available,
    do(task) {
      checkTask(task)
      running += 1
      startSoon(task, settled)
    },
    done: () => (running === 0 ? Promise.resolve() : whenIdle.wait()),
    concurrency: Infinity,
    onAvailable: () => NEVER,
  }
}
