import { numberOption, OptionError, optionsObject } from '../../core/options.js'
import type { EngineRetry } from './engine-design.js'

/** A retry policy with everything filled in. `maxAttempts` counts the tries after the first, as `retries` does. */
export interface ResolvedEngineRetry {
  readonly maxAttempts: number
  readonly backoff: { readonly initialMs: number; readonly maxMs: number; readonly factor: number }
}

/** Checks a design's `retry` and fills in what it leaves out. `path` is how messages call it. */
export function resolveEngineRetry(retry: EngineRetry | undefined, path = 'retry'): ResolvedEngineRetry {
  const given = optionsObject<Partial<EngineRetry>>(path, retry, ['retries', 'maxAttempts', 'backoff'])
  const backoff = optionsObject(`${path}.backoff`, given.backoff, ['initialMs', 'maxMs', 'factor'])
  // Without a policy nothing is tried again; a policy has to say how often.
  const noRetry = retry === undefined ? { default: 0 } : {}
  if (given.retries !== undefined && given.maxAttempts !== undefined)
    throw new OptionError(`${path}.maxAttempts`, 'left out: retries means the same', given.maxAttempts)
  const name = given.maxAttempts === undefined ? 'retries' : 'maxAttempts'
  const maxAttempts = numberOption(`${path}.${name}`, given[name], { integer: true, min: 0, ...noRetry })
  const initialMs = numberOption(`${path}.backoff.initialMs`, backoff.initialMs, { min: 0, default: 30_000 })
  const maxMs = numberOption(`${path}.backoff.maxMs`, backoff.maxMs, { min: 0, default: 600_000 })
  if (maxMs < initialMs) throw new OptionError(`${path}.backoff.maxMs`, `at least initialMs (${initialMs})`, maxMs)
  const factor = numberOption(`${path}.backoff.factor`, backoff.factor, { above: 1, default: 2 })
  return Object.freeze({ maxAttempts, backoff: Object.freeze({ initialMs, maxMs, factor }) })
}
