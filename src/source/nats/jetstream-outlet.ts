import { functionOption, numberOption, optionsObject, stringOption } from '../../core/options.js'
import { warnOnce } from '../../core/process/warn-once.js'
import { systemClock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import { NATS_ADDRESSES, type NatsAddress, natsAddressOption } from '../../drivers/nats/index.js'
import { Headers } from '../message/headers.js'
import type { Outlet, OutletMessage } from '../outlets/outlet.js'
import { JsApi } from './js-api.js'
import { ID_HEADER, publishStored } from './js-letters.js'
import { KEY_HEADER } from './js-message.js'

/** Options of {@link JetStreamOutlet}: one of `servers`, `options` and `connection`, a subject, and what may differ. */
export interface JetStreamOutletOptions extends NatsAddress {
  /** Where to publish. A stream has to take it. */
  readonly subject: string
  /** How long a request may take. Default 10 000. */
  readonly timeoutMs?: Ms
  /** Called when a connection is lost; it is made anew. Default: a warning. */
  readonly onError?: (error: Error) => void
}

const OWNER = 'jetStreamOutlet'

/**
 * Publishes to a stream of JetStream, once for each id, for as long as the stream remembers ids: its `duplicate_window`, two minutes unless
 * it was made with more.
 *
 * @example
 * ```ts
 * const outlet = new JetStreamOutlet({ servers: 'nats://127.0.0.1:4222', subject: 'receipts' })
 * await outlet.publish({ id: 'o-1', value: '{"paid":true}' })
 * ```
 */
export class JetStreamOutlet implements Outlet {
  readonly #api: JsApi
  readonly #subject: string
  readonly #timeoutMs: Ms

  constructor(options: JetStreamOutletOptions) {
    const given = optionsObject(OWNER, options, [...NATS_ADDRESSES, ...(['subject', 'timeoutMs', 'onError'] as const)])
    this.#subject = stringOption(`${OWNER}.subject`, given.subject)
    this.#timeoutMs = numberOption(`${OWNER}.timeoutMs`, given.timeoutMs, { min: 1, default: 10_000 })
    const onError = functionOption<(error: Error) => void>(`${OWNER}.onError`, given.onError, (error) =>
      warnOnce('MILLRACE_NATS', error, `${OWNER}({ onError })`),
    )
    const address = natsAddressOption(OWNER, given)
    this.#api = new JsApi({ address, clock: systemClock, timeoutMs: this.#timeoutMs, onError })
  }

  async publish({ id, value, key, headers }: OutletMessage): Promise<void> {
    const own = new Headers(headers).with('message-id', stringOption('publish.id', id)).with(ID_HEADER, id)
    const all = key === undefined ? own : own.with(KEY_HEADER, key)
    await publishStored(this.#api, this.#subject, value, all, this.#timeoutMs)
  }

  /** Ends the connection that the outlet made; one that was given stays open. */
  close(): Promise<void> {
    return this.#api.close()
  }
}
