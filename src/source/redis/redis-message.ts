import type { At } from '../../core/time/time.js'
import { BrokerMessage } from '../inlets/broker/broker-message.js'
import { Headers } from '../message/headers.js'
import { type VendorToken, vendorToken } from '../message/message.js'

/** An entry of a stream as Redis has it. */
export interface RedisEntry {
  readonly id: string
  readonly fields: readonly (readonly [name: string, value: Uint8Array])[]
}

/** Gives the entry behind a message of a `RedisStreamInlet`. */
export const redisEntry: VendorToken<RedisEntry> = vendorToken<RedisEntry>('redis stream entry')

/** In which fields the value and the key are. All others are headers. */
export interface FieldNames {
  readonly value: string
  readonly key: string
}

/** What a claim said of one message. */
export interface Claimed {
  readonly id: string
  /** How often it began to run before. */
  readonly starts: number
  readonly note: string
  /** Names and values in turn. */
  readonly words: readonly Uint8Array[]
}

const EMPTY = new Uint8Array()
const utf8 = new TextDecoder()

/** One delivery of one entry. */
export class RedisMessage extends BrokerMessage {
  readonly #fields: RedisEntry['fields']
  readonly id: string

  constructor(origin: object, stream: string, claimed: Claimed, names: FieldNames) {
    const fields = fieldsOf(claimed.words)
    const bytesIn = (name: string) => fields.find(([field]) => field === name)?.[1]
    const rest = fields.filter(([field]) => field !== names.value && field !== names.key)
    super(origin, {
      key: bytesIn(names.key) ?? null,
      value: bytesIn(names.value) ?? EMPTY,
      headers: new Headers(rest.map(([field, value]) => [field, utf8.decode(value)] as const)),
      subject: stream,
      cursor: claimed.id,
      deliveryCount: claimed.starts + 1,
      ...timeIn(claimed.id),
      ...(claimed.note === '' ? {} : { note: claimed.note }),
    })
    this.id = claimed.id
    this.#fields = fields
  }

  as<T>(token: VendorToken<T>): T | undefined {
    if ((token as VendorToken<unknown>) !== redisEntry) return undefined
    const entry: RedisEntry = { id: this.id, fields: this.#fields }
    return entry as T // The token is ours, so T is RedisEntry.
  }
}

function fieldsOf(words: readonly Uint8Array[]): RedisEntry['fields'] {
  const fields: [string, Uint8Array][] = []
  for (let i = 0; i + 1 < words.length; i += 2) fields.push([utf8.decode(words[i]), words[i + 1]!])
  return fields
}

/** An id that the server made begins with its time. */
function timeIn(id: string): { readonly timestampMs?: At } {
  const ms = Number(id.slice(0, id.indexOf('-')))
  return Number.isSafeInteger(ms) ? { timestampMs: ms } : {}
}
