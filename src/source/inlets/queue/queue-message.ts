import type { PulledWork } from '../../../ports/ports.js'
import { Headers } from '../../message/headers.js'
import { type Cursor, type Message, type VendorToken, vendorToken } from '../../message/message.js'

/** Gives the leased body behind a message of a {@link QueueInlet}, for handlers that settle by themselves. */
export const pulledWork: VendorToken<PulledWork> = vendorToken<PulledWork>('pulled work')

const utf8 = new TextEncoder()

/** One lease of one body as a message. */
export class QueueMessage implements Message {
  readonly key: Uint8Array | null
  readonly value: Uint8Array
  readonly headers: Headers = Headers.empty
  readonly subject: string
  readonly partitionKey: string = ''
  readonly cursor: Cursor
  readonly deliveryCount: number
  /** @internal */
  readonly origin: object
  /** @internal */
  readonly pulled: PulledWork
  /** @internal */
  state: 'out' | 'settling' | 'settled' = 'out'
  /** @internal A copy of it lies in the dead-letter sink. */
  isDeadLettered = false

  constructor(origin: object, pulled: PulledWork, at: { subject: string; position: number; key: string | undefined }) {
    this.origin = origin
    this.pulled = pulled
    this.subject = at.subject
    this.key = at.key === undefined ? null : utf8.encode(at.key)
    this.value = utf8.encode(pulled.body)
    this.cursor = { toString: () => String(at.position) }
    this.deliveryCount = pulled.attempt
  }

  as<T>(token: VendorToken<T>): T | undefined {
    // The token is ours, so T is PulledWork.
    return (token as VendorToken<unknown>) === pulledWork ? (this.pulled as T) : undefined
  }
}
