import { functionOption, integerOption, numberOption, optionsObject, stringOption } from '../../core/options.js'
import { warnOnce } from '../../core/process/warn-once.js'
import type { Ms } from '../../core/time/time.js'
import { REDIS_ADDRESSES, type RedisAddress, RedisConnection, redisAddressOption } from '../../drivers/redis/index.js'
import type { Outlet, OutletMessage } from '../outlets/outlet.js'
import { streamFields } from './redis-fields.js'
import { script } from './scripts.js'

/** Options of {@link RedisStreamOutlet}: one of `url`, `options`, `cluster` and `client`, a stream, and what may differ. */
export interface RedisStreamOutletOptions extends RedisAddress {
  /** The key of the stream. */
  readonly stream: string
  /** How long an id is remembered: longer than any repetition can come late. Default: a week. */
  readonly rememberMs?: Ms
  /** Trims the stream to about so many entries with each that is added. Default: no limit. */
  readonly maxLength?: number
  /** How long a call may take, the wait for a connection included. Default 10 000. */
  readonly commandTimeoutMs?: Ms
  /** Called when a connection is lost; it is made anew. Default: a warning. */
  readonly onError?: (error: Error) => void
}

const OWNER = 'redisStreamOutlet'
const WEEK_MS: Ms = 7 * 86_400_000

/**
 * Publishes to a Redis stream, once for each id: the entry and the memory of its id are written in one step.
 *
 * @example
 * ```ts
 * const outlet = new RedisStreamOutlet({ url: 'redis://127.0.0.1:6379', stream: 'receipts' })
 * await outlet.publish({ id: 'o-1', value: '{"paid":true}' })
 * ```
 */
export class RedisStreamOutlet implements Outlet {
  readonly #connection: RedisConnection
  readonly #stream: string
  readonly #rememberMs: Ms
  readonly #maxLength: number | undefined

  constructor(options: RedisStreamOutletOptions) {
    const given = optionsObject(OWNER, options, [
      ...REDIS_ADDRESSES,
      ...(['stream', 'rememberMs', 'maxLength', 'commandTimeoutMs', 'onError'] as const),
    ])
    this.#stream = stringOption(`${OWNER}.stream`, given.stream)
    this.#rememberMs = integerOption(`${OWNER}.rememberMs`, given.rememberMs, { min: 1, default: WEEK_MS })
    this.#maxLength =
      given.maxLength === undefined ? undefined : integerOption(`${OWNER}.maxLength`, given.maxLength, { min: 1 })
    this.#connection = new RedisConnection({
      address: redisAddressOption(OWNER, given),
      commandTimeoutMs: numberOption(`${OWNER}.commandTimeoutMs`, given.commandTimeoutMs, { min: 1, default: 10_000 }),
      onError: functionOption<(error: Error) => void>(`${OWNER}.onError`, given.onError, (error) =>
        warnOnce('MILLRACE_REDIS', error, `${OWNER}({ onError })`),
      ),
    })
  }

  async publish({ id, value, key, headers }: OutletMessage): Promise<void> {
    const around = { ...(key === undefined ? {} : { key }), ...(headers === undefined ? {} : { headers }) }
    const fields = streamFields(value, { id: stringOption('publish.id', id), ...around })
    const words = ['', '', id, this.#rememberMs, this.#maxLength ?? '', ...fields]
    await this.#connection.run(script('publish'), this.#stream, words)
  }

  /** Ends the connection that the outlet made; a client that was given stays open. */
  close(): Promise<void> {
    return this.#connection.close()
  }
}
