import type { Metrics } from '../metrics/metrics.js'
import { WORK_METRICS } from '../metrics/work-metrics.js'
import { numberOption, OptionTypeError } from '../options.js'
import { number, optional, readOptions, unchecked } from '../read-options.js'
import type { Ms } from '../time/time.js'

/** Options of {@link adaptiveDelay}. */
export interface AdaptiveDelayOptions {
  /** The work types to watch. Default: all. */
  readonly types?: readonly string[]
  /** The share of failures, 0 to 1, above which the delay grows. Default: 0, any failure. */
  readonly maxFailRate?: number
  /** The delay while all is well. Default: 0. */
  readonly min?: Ms
  /** The longest delay. Default: 30 000. */
  readonly max?: Ms
  /** The first delay once failures appear. Default: 100. */
  readonly base?: Ms
  /** What the delay is multiplied by while failures go on. Default: 2. */
  readonly factor?: number
  /** What is taken off the delay each time there are none. Default: `base`. */
  readonly step?: Ms
}

type Readable = Pick<Metrics, 'get' | 'list'>

/** Answers how long to pause before pulling more, from what has completed since it was last called. */
export type AdaptiveDelay = (context: { readonly metrics: Readable }) => Ms

/**
 * Back-pressure that feels its way: the delay multiplies while work fails and shrinks by steps once it no longer does.
 * For the `backpressure` option of a work system. Each one has its own memory; its first call takes the
 * counters as they stand, so a registry with a history does not count as a burst of failures.
 *
 * @example
 * ```ts
 * createWork({ backpressure: adaptiveDelay({ types: ['call-api'], maxFailRate: 0.2 }) })
 * ```
 */
export function adaptiveDelay(options?: AdaptiveDelayOptions): AdaptiveDelay {
  const { types, maxFailRate, min, max, base, factor, step } = resolveAdaptiveDelay(options)
  const newlySucceeded = countSince(WORK_METRICS.succeeded, types)
  const newlyFailed = countSince(WORK_METRICS.failed, types)
  let delay = min

  return ({ metrics }) => {
    const succeeded = newlySucceeded(metrics)
    const failed = newlyFailed(metrics)
    const rate = failed === 0 ? 0 : failed / (succeeded + failed)
    delay =
      rate > maxFailRate
        ? Math.min(max, Math.max(base, delay === 0 ? base : delay * factor))
        : Math.max(min, delay - step)
    return delay
  }
}

/** By how much a counter has risen since the last call; 0 on the first. */
function countSince(name: string, types: readonly string[] | undefined): (metrics: Readable) => number {
  let seen: number | undefined
  return (metrics) => {
    const before = seen
    const total = totalOf(metrics, name, types)
    seen = total
    if (before === undefined) return 0
    // A counter that fell was replaced by a new one, which began at 0.
    return total < before ? total : total - before
  }
}

function totalOf(metrics: Readable, name: string, types: readonly string[] | undefined): number {
  let total = 0
  if (types !== undefined) for (const type of types) total += metrics.get(name, { type })?.value ?? 0
  // The name is asked for again: a registry that is not ours may not know the argument and list everything.
  else for (const stat of metrics.list(name)) if (stat.meta.name === name) total += stat.value
  return total
}

function resolveAdaptiveDelay(options: AdaptiveDelayOptions | undefined) {
  const { min, base, ...given } = readOptions('adaptiveDelay', options, {
    types: (path: string, types: unknown) => {
      if (types === undefined) return undefined
      if (!Array.isArray(types) || !types.every((type) => typeof type === 'string'))
        throw new OptionTypeError(path, 'an array of names of work types', types)
      return [...new Set<string>(types)]
    },
    maxFailRate: number({ min: 0, max: 1, default: 0 }),
    min: number({ min: 0, default: 0 }),
    max: unchecked,
    base: number({ above: 0, default: 100 }),
    factor: number({ min: 1, default: 2 }),
    step: optional(number({ above: 0 })),
  })
  const max = numberOption('adaptiveDelay.max', given.max, { min, default: Math.max(min, 30_000) })
  return { ...given, min, base, max, step: given.step ?? base }
}
