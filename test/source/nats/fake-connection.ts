import type { NatsConnectionLike, NatsHeadersLike, NatsMessageLike } from 'millrace/source/nats'

const utf8 = new TextEncoder()

/** A server with one stream and one consumer, as far as an inlet asks it: what it was told stays readable. */
export class FakeConnection implements NatsConnectionLike {
  readonly info: { readonly version: string }
  /** Every word that was sent to a delivery, as `<sequence> <word>`. */
  readonly words: string[] = []
  /** Configurations of the consumers that were made. */
  readonly consumers: Record<string, unknown>[] = []
  /** What was published and stored, with its headers. */
  readonly stored: { readonly subject: string; readonly headers: Record<string, string> }[] = []
  /** So many of the next words to a delivery are never answered. */
  unanswered = 0
  readonly #messages: NatsMessageLike[] = []
  #deliver: ((error: Error | null, message: NatsMessageLike) => void) | undefined
  #hasConsumer = false

  constructor(version = '2.9.10') {
    this.info = { version }
  }

  /** Puts a message on the stream. */
  add(value: string, sequence: number): void {
    const reply = `$JS.ACK.ORDERS.shipping.1.${sequence}.${sequence}.1700000000000000000.0`
    this.#messages.push({ subject: 'orders.new', reply, data: utf8.encode(value) })
  }

  publish(subject: string, payload?: Uint8Array | string): void {
    if (!subject.startsWith('$JS.API.CONSUMER.MSG.NEXT.')) throw new Error(`not expected: ${subject}`)
    const { batch } = JSON.parse(String(payload)) as { readonly batch: number }
    for (const message of this.#messages.splice(0, batch)) queueMicrotask(() => this.#deliver?.(null, message))
  }

  async request(
    subject: string,
    payload: Uint8Array | string = '',
    options?: { readonly headers?: NatsHeadersLike },
  ): Promise<NatsMessageLike> {
    if (subject.startsWith('$JS.ACK.')) {
      this.words.push(`${subject.split('.')[5]} ${String(payload)}`)
      if (this.unanswered > 0) {
        this.unanswered -= 1
        return new Promise(() => undefined)
      }
      return this.#answer('')
    }
    if (subject.startsWith('$JS.API.')) return this.#answer(JSON.stringify(this.#api(subject, String(payload))))
    const { headers } = options ?? {}
    const pairs = (headers?.keys() ?? []).map((key) => [key, headers!.values(key)[0]!])
    this.stored.push({ subject, headers: Object.fromEntries(pairs) })
    return this.#answer('{"stream":"DEAD","seq":1}')
  }

  subscribe(_: string, { callback }: { readonly callback: (error: Error | null, message: NatsMessageLike) => void }) {
    this.#deliver = callback
    return { drain: async () => undefined }
  }

  /** Nothing ever happens to the line. */
  async *status(): AsyncIterable<{ readonly type: string }> {
    await new Promise(() => undefined)
    yield { type: 'close' }
  }

  isClosed(): boolean {
    return false
  }

  async close(): Promise<void> {}

  #api(subject: string, payload: string): unknown {
    const missing = { error: { code: 404, description: 'not found' } }
    if (subject.includes('.CONSUMER.INFO.')) {
      if (!this.#hasConsumer) return missing
      return { config: this.consumers.at(-1), num_pending: 0, num_ack_pending: 0, num_redelivered: 0 }
    }
    if (subject.includes('.CONSUMER.DELETE.')) {
      this.#hasConsumer = false
      return {}
    }
    if (subject.includes('.CONSUMER.DURABLE.CREATE.')) {
      this.#hasConsumer = true
      this.consumers.push((JSON.parse(payload) as { config: Record<string, unknown> }).config)
      return {}
    }
    return { config: { name: 'DEAD', subjects: ['dead.>'] }, state: { messages: 0, first_seq: 0, last_seq: 0 } }
  }

  #answer(text: string): NatsMessageLike {
    return { subject: 'reply', data: utf8.encode(text) }
  }
}
