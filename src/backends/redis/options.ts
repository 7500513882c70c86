import { functionOption, integerOption, optionsObject } from '../../core/options.js'
import { warnOnce } from '../../core/process/warn-once.js'
import type { Clock } from '../../core/time/clock.js'
import type { At, Ms } from '../../core/time/time.js'
import { REDIS_ADDRESSES, type RedisAddress, redisAddressOption } from '../../drivers/redis/index.js'
import { checkName } from './keys.js'
import { type Now, nowOf } from './time.js'

/** Options of `redisBackend`: one of `url`, `options`, `cluster` and `client`, and what may differ from the defaults. */
export interface RedisBackendOptions extends RedisAddress {
  /**
   * Separates this system from others on the same server: it begins every key, in braces, so that a cluster keeps all of
   * them in one slot. Default: `millrace`.
   */
  readonly prefix?: string
  /** Largest item, result or group value, in bytes. Default: 1 MiB. */
  readonly maxItemBytes?: number
  /** How long a call may take, the wait for a connection included, before it rejects. Default: 10 000 ms. */
  readonly commandTimeoutMs?: Ms
  /** Called when a connection is lost (it reconnects by itself), and for settings that endanger data. Default: a warning. */
  readonly onError?: (error: Error) => void
  /** Epoch ms, instead of the server's time. For tests: every process on the same data has to have the same. */
  readonly now?: (() => At) | Clock
  /** A clock instead of `now`. */
  readonly clock?: Clock
}

export interface ResolvedOptions {
  readonly address: RedisAddress
  readonly prefix: string
  readonly maxItemBytes: number
  readonly commandTimeoutMs: Ms
  readonly onError: (error: Error) => void
  readonly now: Now
}

const OWNER = 'redisBackend'

export function resolveOptions(options: RedisBackendOptions): ResolvedOptions {
  const given = optionsObject(OWNER, options, [
    ...REDIS_ADDRESSES,
    ...(['prefix', 'maxItemBytes', 'commandTimeoutMs', 'onError', 'now', 'clock'] as const),
  ])
  const onError = functionOption<(error: Error) => void>(`${OWNER}.onError`, given.onError, (error) =>
    warnOnce('MILLRACE_REDIS', error, `${OWNER}({ onError })`),
  )
  return Object.freeze({
    address: redisAddressOption(OWNER, given),
    prefix: checkName(`${OWNER}.prefix`, given.prefix === undefined ? 'millrace' : given.prefix),
    maxItemBytes: integerOption(`${OWNER}.maxItemBytes`, given.maxItemBytes, { min: 1_024, default: 1_048_576 }),
    commandTimeoutMs: integerOption(`${OWNER}.commandTimeoutMs`, given.commandTimeoutMs, { min: 1, default: 10_000 }),
    onError,
    now: nowOf(given, OWNER),
  })
}
