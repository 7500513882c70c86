import type { Ms } from '../../core/time/time.js'
import type { NatsHeadersLike, NatsMessageLike } from '../../drivers/nats/index.js'
import { BrokerMessage } from '../inlets/broker/broker-message.js'
import { Headers } from '../message/headers.js'
import { type VendorToken, vendorToken } from '../message/message.js'

/** Gives the message of the client behind a message of a `JetStreamInlet`. It is acknowledged by a request to its `reply`. */
export const natsMessage: VendorToken<NatsMessageLike> = vendorToken<NatsMessageLike>('nats message')

/** The header with the routing key. */
export const KEY_HEADER = 'Crucible-Key'

/** What the reply subject of a delivery says. */
export interface DeliveryInfo {
  readonly deliveries: number
  readonly sequence: number
  readonly timestampMs: number
}

/**
 * `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<consumer sequence>.<time in ns>.<pending>`, or the same with domain and
 * account before the stream and a token behind it all.
 */
export function deliveryInfo(reply: string): DeliveryInfo | undefined {
  const tokens = reply.split('.')
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK' || tokens.length < 9) return undefined
  const at = tokens.length === 9 ? 4 : 6
  const [deliveries, sequence, , ns] = tokens.slice(at)
  const info = {
    deliveries: Number(deliveries),
    sequence: Number(sequence),
    timestampMs: Number(BigInt(ns ?? 0) / 1_000_000n),
  }
  return Number.isSafeInteger(info.deliveries) && Number.isSafeInteger(info.sequence) ? info : undefined
}

function headersIn(headers: NatsHeadersLike | undefined): Headers {
  if (headers === undefined) return Headers.empty
  return new Headers(headers.keys().flatMap((key) => headers.values(key).map((value) => [key, value] as const)))
}

const utf8 = new TextEncoder()

/** One delivery of one message. */
export class JsMessage extends BrokerMessage {
  readonly reply: string
  /** Where it was published. */
  readonly natsSubject: string
  readonly #raw: NatsMessageLike
  /** Monotonic time at which its lease ends, as this process knows it. */
  leasedUntil: Ms
  /** How often the consumer had been made anew when it was delivered. */
  readonly epoch: number

  constructor(
    origin: object,
    stream: string,
    raw: NatsMessageLike & { readonly reply: string },
    info: DeliveryInfo,
    lease: { readonly until: Ms; readonly epoch: number },
    keyOf: ((subject: string, headers: Headers) => string | undefined) | undefined,
  ) {
    const headers = headersIn(raw.headers)
    const key = keyOf === undefined ? (headers.get(KEY_HEADER) ?? raw.subject) : keyOf(raw.subject, headers)
    super(origin, {
      key: key === undefined ? null : utf8.encode(key),
      value: raw.data,
      headers,
      subject: raw.subject,
      stream,
      cursor: String(info.sequence),
      deliveryCount: info.deliveries,
      timestampMs: info.timestampMs,
    })
    this.#raw = raw
    this.reply = raw.reply
    this.natsSubject = raw.subject
    this.leasedUntil = lease.until
    this.epoch = lease.epoch
  }

  as<T>(token: VendorToken<T>): T | undefined {
    // The token is ours, so T is NatsMessageLike.
    return (token as VendorToken<unknown>) === natsMessage ? (this.#raw as T) : undefined
  }
}
