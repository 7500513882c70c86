import type { At } from '../../../core/time/time.js'
import type { Headers } from '../../message/headers.js'
import type { Cursor, Message, VendorToken } from '../../message/message.js'
import type { LetterWords } from './letter-words.js'

/** What an adapter read of one delivery. */
export interface BrokerDelivery {
  readonly key: Uint8Array | null
  readonly value: Uint8Array
  readonly headers: Headers
  readonly subject: string
  /** The stream that the cursor is of. Default: the subject. */
  readonly stream?: string
  /** Default `''`: the broker has no partitions. */
  readonly partitionKey?: string
  readonly cursor: string
  readonly deliveryCount: number
  readonly timestampMs?: At
  readonly note?: string
}

/** How far a delivery has come. */
export type BrokerMessageState = 'out' | 'settling' | 'settled' | 'lost'

/** One delivery of a broker: what every adapter needs to know of it between its fetch and its settlement. */
export abstract class BrokerMessage implements Message {
  readonly key: Uint8Array | null
  readonly value: Uint8Array
  readonly headers: Headers
  readonly subject: string
  readonly partitionKey: string
  readonly cursor: BrokerCursor
  readonly deliveryCount: number
  readonly timestampMs?: At
  readonly note?: string
  /** @internal The inlet that delivered it. */
  readonly origin: object
  /** @internal */
  state: BrokerMessageState = 'out'
  /** @internal How often its settlement was tried. */
  tries = 0
  /** @internal What its dead letter says, where middleware has given it up: it is written in the step that settles it. */
  letter: LetterWords | undefined

  constructor(origin: object, read: BrokerDelivery) {
    this.key = read.key
    this.value = read.value
    this.headers = read.headers
    this.subject = read.subject
    this.partitionKey = read.partitionKey ?? ''
    this.cursor = new BrokerCursor(read.stream ?? read.subject, read.cursor)
    this.deliveryCount = read.deliveryCount
    if (read.timestampMs !== undefined) this.timestampMs = read.timestampMs
    if (read.note !== undefined) this.note = read.note
    this.origin = origin
  }

  abstract as<T>(token: VendorToken<T>): T | undefined
}

/** A position that knows the stream it is of. */
export class BrokerCursor implements Cursor {
  readonly stream: string
  readonly #position: string

  constructor(stream: string, position: string) {
    this.stream = stream
    this.#position = position
  }

  toString(): string {
    return this.#position
  }
}
