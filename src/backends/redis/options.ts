import { functionOption, integerOption, OptionError, OptionTypeError, optionsObject } from '../../core/options.js'
import { warnOnce } from '../../core/process/warn-once.js'
import type { Clock } from '../../core/time/clock.js'
import type { At, Ms } from '../../core/time/time.js'
import type { RedisAddress } from '../../drivers/redis/index.js'
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
const ADDRESSES = ['url', 'options', 'cluster', 'client'] as const

export function resolveOptions(options: RedisBackendOptions): ResolvedOptions {
  const given = optionsObject(OWNER, options, [
    ...ADDRESSES,
    ...(['prefix', 'maxItemBytes', 'commandTimeoutMs', 'onError', 'now', 'clock'] as const),
  ])
  const onError = functionOption<(error: Error) => void>(`${OWNER}.onError`, given.onError, (error) =>
    warnOnce('MILLRACE_REDIS', error, `${OWNER}({ onError })`),
  )
  return Object.freeze({
    address: addressOf(given),
    prefix: checkName(`${OWNER}.prefix`, given.prefix === undefined ? 'millrace' : given.prefix),
    maxItemBytes: integerOption(`${OWNER}.maxItemBytes`, given.maxItemBytes, { min: 1_024, default: 1_048_576 }),
    commandTimeoutMs: integerOption(`${OWNER}.commandTimeoutMs`, given.commandTimeoutMs, { min: 1, default: 10_000 }),
    onError,
    now: nowOf(given, OWNER),
  })
}

function addressOf(given: RedisBackendOptions): RedisAddress {
  const { url, options, cluster, client } = given
  const named = ADDRESSES.filter((name) => given[name] !== undefined)
  if (client !== undefined) {
    if (named.length > 1) throw new OptionError(`${OWNER}.client`, 'given without url, options and cluster', named)
    const isClient = typeof client === 'object' && client !== null && typeof client.evalsha === 'function'
    if (!isClient) throw new OptionTypeError(`${OWNER}.client`, 'a client of ioredis', client)
    return { client }
  }
  if (cluster !== undefined) {
    if (named.length > 1) throw new OptionError(`${OWNER}.cluster`, 'given without url, options and client', named)
    if (!Array.isArray(cluster.nodes) || cluster.nodes.length === 0)
      throw new OptionTypeError(`${OWNER}.cluster.nodes`, 'a list of nodes', cluster.nodes)
    return { cluster }
  }
  if (url === undefined && options === undefined)
    throw new OptionError(`${OWNER}.url`, 'an address (or give options, cluster or a client)', undefined)
  // Not left to the driver: its error would quote the address, password included.
  if (url !== undefined && !(/^rediss?:\/\/./.test(url) && URL.canParse(url)))
    throw new OptionTypeError(`${OWNER}.url`, "'redis://host:port' or 'rediss://host:port'", url)
  return { ...(url === undefined ? {} : { url }), ...(options === undefined ? {} : { options }) }
}
