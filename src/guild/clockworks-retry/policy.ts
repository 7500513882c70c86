import { numberOption, OptionError, OptionTypeError, optionsObject } from '../../core/options.js'
import { backoff } from '../../core/retry/backoff.js'
import { isObject } from '../../core/text/safe-read.js'
import type { Ms } from '../../core/time/time.js'
import { MAX_RETRY_ATTEMPTS } from './cap.js'

/** How often a writ is tried, and how long it waits before it is tried again. */
export interface RigRetry {
  /** How many rigs a writ may have before it stays stuck for a person. Default: 2. */
  readonly maxRigs?: number
  /** How long a writ waits for its next rig. Default: it does not wait. */
  readonly backoff?: {
    /** Before the second rig. Default: 0. */
    readonly initialMs?: Ms
    /** At most. Default: an hour, or `initialMs` where that is more. */
    readonly maxMs?: Ms
    /** From one rig to the next. Default: 2. */
    readonly factor?: number
  }
}

/** Clockworks-Retry's part of `guild.json`, under `clockworks-retry`. */
export interface ClockworksRetryConfig extends RigRetry {
  /** What is different for writs of a type. */
  readonly types?: Readonly<Record<string, RigRetry>>
}

/** A policy with everything filled in. */
export interface ResolvedRigRetry {
  readonly maxRigs: number
  readonly backoff: { readonly initialMs: Ms; readonly maxMs: Ms; readonly factor: number }
}

const HOUR_MS: Ms = 3_600_000

/** Checks the configuration: a policy that cannot be kept fails the start. */
export function checkRetryConfig(given: ClockworksRetryConfig): ClockworksRetryConfig {
  const path = 'guild.json.clockworks-retry'
  const config = optionsObject<ClockworksRetryConfig>(path, given, ['maxRigs', 'backoff', 'types'])
  const { types = {}, ...base } = config
  if (!isObject(types) || Array.isArray(types)) throw new OptionTypeError(`${path}.types`, 'an object', types)
  resolve(base, path)
  for (const [type, policy] of Object.entries(types))
    resolve(merged(base, checkedType(path, type, policy)), `${path}.types.${type}`)
  return config
}

function checkedType(path: string, type: string, policy: RigRetry): RigRetry {
  return optionsObject<RigRetry>(`${path}.types.${type}`, policy, ['maxRigs', 'backoff'])
}

/** The policy of a type of writs. */
export function rigPolicyOf(config: ClockworksRetryConfig, type: string): ResolvedRigRetry {
  return resolve(merged(config, config.types?.[type] ?? {}), 'clockworks-retry')
}

/** How long a writ waits that has had so many rigs. */
export function rigDelayMs({ backoff: wait }: ResolvedRigRetry, rigs: number): Ms {
  if (wait.initialMs === 0) return 0
  return backoff(rigs, { base: wait.initialMs, factor: wait.factor, max: wait.maxMs, jitter: 0 })
}

function merged(base: RigRetry, own: RigRetry): RigRetry {
  return { ...base, ...own, backoff: { ...base.backoff, ...own.backoff } }
}

function resolve(policy: RigRetry, path: string): ResolvedRigRetry {
  const wait = optionsObject(`${path}.backoff`, policy.backoff, ['initialMs', 'maxMs', 'factor'])
  const maxRigs = numberOption(`${path}.maxRigs`, policy.maxRigs, {
    integer: true,
    min: 1,
    default: MAX_RETRY_ATTEMPTS,
  })
  const initialMs = numberOption(`${path}.backoff.initialMs`, wait.initialMs, { min: 0, default: 0 })
  const maxMs = numberOption(`${path}.backoff.maxMs`, wait.maxMs, { min: 0, default: Math.max(HOUR_MS, initialMs) })
  if (maxMs < initialMs) throw new OptionError(`${path}.backoff.maxMs`, `at least initialMs (${initialMs})`, maxMs)
  const factor = numberOption(`${path}.backoff.factor`, wait.factor, { min: 1, default: 2 })
  return { maxRigs, backoff: { initialMs, maxMs, factor } }
}
