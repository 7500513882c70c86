import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import type { Ops } from '../../ops/api.js'
import { NoAnswerError } from './storage.js'

/** How long the command line waits for answers. */
export interface Timeouts {
  /** For the first answer: an unreachable host would otherwise block for minutes. */
  readonly firstMs: Ms
  /** For each further query, which may wait for a lock. */
  readonly answerMs: Ms
}

const DEFAULTS: Timeouts = { firstMs: 15_000, answerMs: 30_000 }

/** `--timeout` sets both. */
export function timeoutsOf(timeoutMs: Ms | undefined): Timeouts {
  return timeoutMs === undefined ? DEFAULTS : { firstMs: timeoutMs, answerMs: timeoutMs }
}

/** The answer, or an error once it has taken too long. */
export function within<T>(answer: Promise<T>, limitMs: Ms, name: string, clock: Clock): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const cancel = clock.after(limitMs, () => reject(new NoAnswerError(name, limitMs)))
    answer.then(resolve, reject).finally(cancel)
  })
}

/**
 * Ops whose queries time out. Actions have no timeout, because the caller could not know whether an abandoned one took effect;
 * a person can interrupt it.
 */
export function withTimeouts(ops: Ops, limitMs: Ms, name: string, clock: Clock): Ops {
  const timed = QUERIES.map((query) => {
    const ask = ops[query] as (...args: unknown[]) => Promise<unknown>
    return [query, (...args: unknown[]) => within(ask(...args), limitMs, name, clock)] as const
  })
  return { ...ops, ...Object.fromEntries(timed) }
}

const QUERIES = [
  ...['overview', 'counts', 'list', 'item', 'findId', 'explain', 'preview', 'failures', 'workers'],
  ...['schedules', 'log', 'actions', 'writs', 'writ', 'rig'],
] as readonly (keyof Ops)[]
