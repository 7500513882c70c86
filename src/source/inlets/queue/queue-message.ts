import type { PulledWork } from '../../../ports/ports.js'
import { Headers } from '../../message/headers.js'
import { type Cursor, type Message, type VendorToken, vendorToken } from '../../message/message.js'
import { readMessageBody } from './message-body.js'

/** Gives the leased body behind a message of a {@link QueueInlet}, for handlers that settle by themselves. */
export const pulledWork: VendorToken<PulledWork> = vendorToken<PulledWork>('pulled work')

const utf8 = new TextEncoder()

/** What an inlet knows of a body that it pulled. */
export interface MessagePlace {
  readonly subject: string
  readonly cursor: string
  /** The queue counts the deliveries that begin to run. */
  readonly countsStarts: boolean
  /** The routing key in a value; its bytes have none. */
  readonly keyIn: (text: string | undefined) => string | undefined
}

/** One lease of one body as a message. */
export class QueueMessage implements Message {
  readonly key: Uint8Array | null
  readonly value: Uint8Array
  readonly headers: Headers
  readonly subject: string
  readonly partitionKey: string = ''
  readonly cursor: Cursor
  readonly deliveryCount: number
  readonly note: string | undefined
  /** @internal */
  readonly origin: object
  /** @internal */
  readonly pulled: PulledWork
  /** @internal */
  state: 'out' | 'settling' | 'settled' = 'out'
  /** @internal A copy of it lies in the dead-letter sink. */
  isDeadLettered = false
  /** @internal This delivery has been counted as a start. */
  isStarted = false

  constructor(origin: object, pulled: PulledWork, at: MessagePlace) {
    const wrapped = readMessageBody(pulled.body)
    const key = wrapped?.key ?? at.keyIn(wrapped === undefined ? pulled.body : wrapped.text)
    this.origin = origin
    this.pulled = pulled
    this.subject = at.subject
    this.headers = wrapped?.headers ?? Headers.empty
    this.key = key === undefined ? null : utf8.encode(key)
    this.value = wrapped?.value ?? utf8.encode(pulled.body)
    this.cursor = { toString: () => at.cursor }
    this.deliveryCount = at.countsStarts ? (pulled.starts ?? 0) + 1 : pulled.attempt
    this.note = pulled.note
  }

  as<T>(token: VendorToken<T>): T | undefined {
    // The token is ours, so T is PulledWork.
    return (token as VendorToken<unknown>) === pulledWork ? (this.pulled as T) : undefined
  }
}
