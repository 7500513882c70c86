import { numberOption, OptionError, optionsObject } from '../../core/options.js'
import type { EngineRetry } from './engine-design.js'

/** A retry policy with everything filled in. */
export interface ResolvedEngineRetry {
  readonly maxAttempts: number
  readonly backoff: { readonly initialMs: number; readonly maxMs: number; readonly factor: number }
}

/** Checks a design's `retry` and fills in what it leaves out. `path` is how messages call it. */
export function resolveEngineRetry(retry: EngineRetry | undefined, path = 'retry'): ResolvedEngineRetry {
  const given = optionsObject<Partial<EngineRetry>>(path, retry, ['maxAttempts', 'backoff'])
  const backoff = optionsObject(`${path}.backoff`, given.backoff, ['initialMs', 'maxMs', 'factor'])
  // Without a policy nothing is tried again; a policy has to say how often.
  const noRetry = retry === undefined ? { default: 0 } : {}
  const maxAttempts = numberOption(`${path}.maxAttempts`, given.maxAttempts, { integer: true, min: 0, ...noRetry })
  const initialMs = numberOption(`${path}.backoff.initialMs`, backoff.initialMs, { min: 0, default: 30_000 })
  const maxMs = numberOption(`${path}.backoff.maxMs`, backoff.maxMs, { min: 0, default: 600_000 })
  if (maxMs < initialMs) throw new OptionError(`${path}.backoff.maxMs`, `at least initialMs (${initialMs})`, maxMs)
  const factor = numberOption(`${path}.backoff.factor`, backoff.factor, { above: 1, default: 2 })
  return Object.freeze({ maxAttempts, backoff: Object.freeze({ initialMs, maxMs, factor }) })
}
