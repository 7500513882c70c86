import { randomUUID } from 'node:crypto'
import {
  type Applied,
  type BrokerAdapter,
  BrokerMessage,
  BrokerSubscription,
  type CapabilityName,
  type Clock,
  Headers,
  type Inlet,
  InletClosedError,
  type ResultOf,
  type Subscription,
} from 'millrace/source'

/** What an inlet for SQS needs of a client, in the words of SQS. */
export interface SqsLike {
  receive(max: number, visibilityMs: number): Promise<readonly SqsReceived[]>
  delete(receipt: string): Promise<void>
  changeVisibility(receipt: string, ms: number): Promise<void>
  /** `ApproximateNumberOfMessages` and those that are not visible. */
  count(): Promise<number>
}

export interface SqsReceived {
  readonly messageId: string
  readonly receipt: string
  readonly body: string
  readonly receiveCount: number
}

class SqsMessage extends BrokerMessage {
  readonly receipt: string
  leasedUntil: number

  constructor(origin: object, subject: string, received: SqsReceived, leasedUntil: number) {
    const { messageId: cursor, receiveCount: deliveryCount, body } = received
    const value = new TextEncoder().encode(body)
    super(origin, { key: null, value, headers: Headers.empty, subject, cursor, deliveryCount })
    this.receipt = received.receipt
    this.leasedUntil = leasedUntil
  }

  as(): undefined {
    return undefined
  }
}

/** Most that SQS hands out in one call. */
const MOST = 10
const NAMES = ['batched', 'leaseExtender', 'lagReporter', 'identity', 'nakSupport'] as const

/** An inlet as one for SQS would be: a receipt is no fence, so the lease is checked by the clock of the process. */
export class SqsInlet implements Inlet {
  readonly capabilities: ReadonlySet<CapabilityName> = new Set(NAMES)
  readonly #o: { readonly client: SqsLike; readonly queue: string; readonly clock: Clock; readonly leaseMs: number }
  readonly #open = new Set<BrokerSubscription<SqsMessage>>()
  #isClosed = false

  constructor(options: {
    readonly client: SqsLike
    readonly queue: string
    readonly clock: Clock
    readonly leaseMs: number
  }) {
    this.#o = options
  }

  async subscribe(_?: unknown, options?: { readonly signal?: AbortSignal }): Promise<Subscription> {
    options?.signal?.throwIfAborted()
    if (this.#isClosed) throw new InletClosedError('be subscribed to')
    const { client, clock, leaseMs } = this.#o
    const sub = new BrokerSubscription<SqsMessage>({
      clock,
      leaseMs,
      origin: this,
      adapter: this.#adapter(),
      claims: this.capabilities,
      capabilities: { lagReporter: { lag: () => client.count() }, identity: true },
      isPaused: () => false,
      onClose: (closed) => this.#open.delete(closed),
    })
    this.#open.add(sub)
    return sub
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#open].map((sub) => sub.close()))
  }

  #adapter(): BrokerAdapter<SqsMessage> {
    const { client, queue, clock, leaseMs } = this.#o
    const held = async (message: SqsMessage, run: () => Promise<void>): Promise<Applied> => {
      if (message.leasedUntil <= clock.monotonic()) return 'lost'
      await run()
      return 'applied'
    }
    return {
      pull: async (max) => {
        const askedAt = clock.monotonic()
        const found = await client.receive(Math.min(max, MOST), leaseMs)
        return found.map((received) => new SqsMessage(this, queue, received, askedAt + leaseMs))
      },
      // A long poll that is abandoned still takes messages, so it is not waited on.
      arrival: () => undefined,
      idleMs: () => 100,
      ack: (message) => held(message, () => client.delete(message.receipt)),
      nak: (message, { requeueMs }: ResultOf<'nak'>) =>
        held(message, () => client.changeVisibility(message.receipt, requeueMs)),
      // Its dead letter is the business of middleware, or of the redrive policy of the queue.
      term: (message) => held(message, () => client.delete(message.receipt)),
      extend: (messages) =>
        Promise.all(
          messages.map(async (message) => {
            const askedAt = clock.monotonic()
            const applied = await held(message, () => client.changeVisibility(message.receipt, leaseMs))
            if (applied === 'applied') message.leasedUntil = askedAt + leaseMs
            return applied === 'applied'
          }),
        ),
      release: async (messages) => {
        await Promise.all(messages.map((message) => client.changeVisibility(message.receipt, 0)))
      },
      close: async () => undefined,
    }
  }
}

/** A queue in memory that behaves as SQS does, its weak sides included: an old receipt still works. */
export class FakeSqs implements SqsLike {
  readonly #clock: Clock
  readonly #messages = new Map<string, { body: string; visibleAt: number; receiveCount: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  send(body: string): void {
    this.#messages.set(randomUUID(), { body, visibleAt: this.#clock.monotonic(), receiveCount: 0 })
  }

  async receive(max: number, visibilityMs: number): Promise<readonly SqsReceived[]> {
    const now = this.#clock.monotonic()
    const found = [...this.#messages].filter(([, { visibleAt }]) => visibleAt <= now).slice(0, max)
    return found.map(([messageId, message]) => {
      message.receiveCount += 1
      message.visibleAt = now + visibilityMs
      const { body, receiveCount } = message
      return { messageId, receipt: `${messageId}/${receiveCount}`, body, receiveCount }
    })
  }

  async delete(receipt: string): Promise<void> {
    this.#messages.delete(receipt.split('/')[0]!)
  }

  async changeVisibility(receipt: string, ms: number): Promise<void> {
    const message = this.#messages.get(receipt.split('/')[0]!)
    if (message !== undefined) message.visibleAt = this.#clock.monotonic() + ms
  }

  async count(): Promise<number> {
    return this.#messages.size
  }
}
