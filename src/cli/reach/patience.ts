import type { Clock } from '../../core/clock.js'
import type { Ms } from '../../core/time.js'
import type { Ops } from '../../ops/api.js'
import { NoAnswerError } from './storage.js'

/** How long somebody who sits and waits does so. */
export interface Patience {
  /** For a first answer: a host that swallows packets would otherwise keep us for minutes. */
  readonly firstMs: Ms
  /** For each further question, such as one behind a lock. */
  readonly answerMs: Ms
}

const PATIENCE: Patience = { firstMs: 15_000, answerMs: 30_000 }

/** What `--timeout` says, for both; else the defaults. */
export function patienceOf(timeoutMs: Ms | undefined): Patience {
  return timeoutMs === undefined ? PATIENCE : { firstMs: timeoutMs, answerMs: timeoutMs }
}

/** The answer, or an error once it has taken too long. */
export function within<T>(answer: Promise<T>, limitMs: Ms, name: string, clock: Clock): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const cancel = clock.after(limitMs, () => reject(new NoAnswerError(name, limitMs)))
    answer.then(resolve, reject).finally(cancel)
  })
}

/**
 * Ops whose questions end in time. Acts have no limit: nobody would know what became of one that was left in the middle, and
 * whoever watches can interrupt it.
 */
export function answeringWithin(ops: Ops, limitMs: Ms, name: string, clock: Clock): Ops {
  const timed =
    <A extends unknown[], T>(ask: (...args: A) => Promise<T>) =>
    (...args: A): Promise<T> =>
      within(ask(...args), limitMs, name, clock)
  return {
    ...ops,
    overview: timed(ops.overview),
    counts: timed(ops.counts),
    list: timed(ops.list),
    item: timed(ops.item),
    explain: timed(ops.explain),
    preview: timed(ops.preview),
    failures: timed(ops.failures),
    workers: timed(ops.workers),
    schedules: timed(ops.schedules),
    log: timed(ops.log),
    actions: timed(ops.actions),
    writs: timed(ops.writs),
    writ: timed(ops.writ),
    rig: timed(ops.rig),
  }
}
