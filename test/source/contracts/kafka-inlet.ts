import {
  type Applied,
  type BrokerAdapter,
  BrokerCursor,
  BrokerMessage,
  BrokerSubscription,
  type CapabilityName,
  type Clock,
  ForeignCursorError,
  Headers,
  type Inlet,
  InletClosedError,
  type ResultOf,
  type Subscription,
  SubscriptionClosedError,
} from 'millrace/source'
import { OffsetTracker } from './offset-tracker.js'

/** What an inlet for one partition of Kafka needs of a client, in the words of Kafka. */
export interface KafkaLike {
  readonly topic: string
  readonly partition: number
  /** Joins the group. */
  join(member: object): void
  /** Records from the position on, which moves. Nothing where the partition belongs to another member. */
  poll(member: object, max: number): Promise<readonly KafkaRecord[]>
  seek(member: object, offset: number): void
  /** The next offset that the group reads. */
  commit(offset: number): Promise<void>
  /** The first and the next offset, and what is committed. */
  offsets(): Promise<{ readonly first: number; readonly next: number; readonly committed: number }>
  leave(member: object): void
}

export interface KafkaRecord {
  readonly offset: number
  readonly value: string
  readonly timestampMs: number
}

class KafkaMessage extends BrokerMessage {
  readonly record: KafkaRecord
  readonly epoch: number

  constructor(
    origin: object,
    { topic, partition }: KafkaLike,
    record: KafkaRecord,
    deliveryCount: number,
    epoch: number,
  ) {
    super(origin, {
      key: null,
      value: new TextEncoder().encode(record.value),
      headers: Headers.empty,
      subject: topic,
      partitionKey: `${topic}/${partition}`,
      cursor: `${topic}/${partition}@${record.offset}`,
      deliveryCount,
      timestampMs: record.timestampMs,
    })
    this.record = record
    this.epoch = epoch
  }

  as(): undefined {
    return undefined
  }
}

const NAMES = ['batched', 'lagReporter', 'identity', 'nakSupport', 'partitionOrdered', 'seekable'] as const

/** An inlet as one for Kafka would be: a nak keeps its offset open and is redelivered in the process; settling never sleeps. */
export class KafkaInlet implements Inlet {
  readonly capabilities: ReadonlySet<CapabilityName> = new Set(NAMES)
  readonly #o: { readonly client: KafkaLike; readonly clock: Clock }
  readonly #open = new Set<BrokerSubscription<KafkaMessage>>()
  #isClosed = false

  constructor(options: { readonly client: KafkaLike; readonly clock: Clock }) {
    this.#o = options
  }

  async subscribe(_?: unknown, options?: { readonly signal?: AbortSignal }): Promise<Subscription> {
    options?.signal?.throwIfAborted()
    if (this.#isClosed) throw new InletClosedError('be subscribed to')
    const { client, clock } = this.#o
    const adapter = new KafkaAdapter(this, client, clock)
    const seek = async (offset: number) => {
      if (sub.isClosed) throw new SubscriptionClosedError('seek')
      await adapter.seek(offset)
      sub.nudge()
    }
    const sub: BrokerSubscription<KafkaMessage> = new BrokerSubscription<KafkaMessage>({
      clock,
      leaseMs: Number.POSITIVE_INFINITY,
      origin: this,
      adapter,
      claims: this.capabilities,
      capabilities: {
        partitionOrdered: true,
        identity: true,
        nakSupport: 'emulated',
        lagReporter: { lag: () => adapter.lag() },
        seekable: {
          seekToStart: async () => seek((await client.offsets()).first),
          seekToEnd: async () => seek((await client.offsets()).next),
          seekToTime: async () => seek((await client.offsets()).first),
          seekToCursor: async (cursor) => {
            const [place, offset] = cursor.toString().split('@')
            const isForeign = cursor instanceof BrokerCursor && cursor.stream !== client.topic
            if (isForeign || place !== `${client.topic}/${client.partition}`)
              throw new ForeignCursorError(cursor.toString())
            await seek(Number(offset) + 1)
          },
        },
      },
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
}

class KafkaAdapter implements BrokerAdapter<KafkaMessage> {
  readonly #origin: object
  readonly #client: KafkaLike
  readonly #clock: Clock
  readonly #again: { readonly record: KafkaRecord; readonly dueAt: number }[] = []
  readonly #deliveries = new Map<number, number>()
  #offsets = new OffsetTracker()
  #epoch = 0

  constructor(origin: object, client: KafkaLike, clock: Clock) {
    this.#origin = origin
    this.#client = client
    this.#clock = clock
    client.join(this)
  }

  async pull(max: number): Promise<readonly KafkaMessage[]> {
    const now = this.#clock.monotonic()
    const due = this.#again.filter(({ dueAt }) => dueAt <= now).slice(0, max)
    for (const one of due) this.#again.splice(this.#again.indexOf(one), 1)
    const fresh = due.length > 0 ? [] : await this.#client.poll(this, max)
    for (const { offset } of fresh) this.#offsets.open(offset)
    return [...due.map(({ record }) => record), ...fresh].map((record) => {
      const count = (this.#deliveries.get(record.offset) ?? 0) + 1
      this.#deliveries.set(record.offset, count)
      return new KafkaMessage(this.#origin, this.#client, record, count, this.#epoch)
    })
  }

  arrival(): undefined {
    return undefined
  }

  idleMs(): number {
    const soonest = Math.min(...this.#again.map(({ dueAt }) => dueAt))
    return Math.max(1, Math.min(100, soonest - this.#clock.monotonic()))
  }

  ack(message: KafkaMessage): Promise<Applied> {
    return this.#done(message)
  }

  nak(message: KafkaMessage, { requeueMs }: ResultOf<'nak'>): Applied {
    if (message.epoch !== this.#epoch) return 'lost'
    this.#again.push({ record: message.record, dueAt: this.#clock.monotonic() + requeueMs })
    return 'applied'
  }

  term(message: KafkaMessage): Promise<Applied> {
    return this.#done(message)
  }

  async extend(messages: readonly KafkaMessage[]): Promise<readonly boolean[]> {
    return messages.map(() => true)
  }

  async release(messages: readonly KafkaMessage[]): Promise<void> {
    for (const { record } of messages) {
      this.#deliveries.set(record.offset, (this.#deliveries.get(record.offset) ?? 1) - 1)
      this.#again.unshift({ record, dueAt: this.#clock.monotonic() })
    }
  }

  async close(): Promise<void> {
    this.#client.leave(this)
  }

  async seek(offset: number): Promise<void> {
    this.#epoch += 1
    this.#again.length = 0
    this.#deliveries.clear()
    this.#offsets = new OffsetTracker()
    this.#client.seek(this, offset)
    await this.#client.commit(offset)
  }

  async lag(): Promise<number> {
    const { next, committed } = await this.#client.offsets()
    return next - (this.#offsets.position ?? committed) - this.#offsets.doneAhead
  }

  async #done(message: KafkaMessage): Promise<Applied> {
    if (message.epoch !== this.#epoch) return 'lost'
    this.#offsets.done(message.record.offset)
    this.#deliveries.delete(message.record.offset)
    await this.#client.commit(this.#offsets.position ?? message.record.offset + 1)
    return 'applied'
  }
}

/** One partition in memory, and a group that gives it to one member at a time. */
export class FakeKafka implements KafkaLike {
  readonly topic: string
  readonly partition = 0
  readonly #clock: Clock
  readonly #log: KafkaRecord[] = []
  #committed = 0
  readonly #left = new WeakSet<object>()
  #owner: object | undefined
  #position = 0

  constructor(clock: Clock, topic: string) {
    this.#clock = clock
    this.topic = topic
  }

  produce(value: string): void {
    this.#log.push({ offset: this.#log.length, value, timestampMs: this.#clock.now() })
  }

  join(member: object): void {
    if (this.#owner !== undefined || this.#left.has(member)) return
    this.#owner = member
    this.#position = this.#committed
  }

  async poll(member: object, max: number): Promise<readonly KafkaRecord[]> {
    this.join(member)
    if (this.#owner !== member) return []
    const found = this.#log.slice(this.#position, this.#position + max)
    this.#position += found.length
    if (found.length === 0) this.#handOver(member)
    return found
  }

  seek(member: object, offset: number): void {
    if (this.#owner === member) this.#position = offset
  }

  async commit(offset: number): Promise<void> {
    this.#committed = offset
  }

  async offsets() {
    return { first: 0, next: this.#log.length, committed: this.#committed }
  }

  leave(member: object): void {
    this.#left.add(member)
    this.#handOver(member)
  }

  /** A member that has left drains what it was given, and the next one goes on from what is committed. */
  #handOver(member: object): void {
    const isDrained = this.#position === this.#log.length
    if (this.#owner === member && this.#left.has(member) && isDrained) this.#owner = undefined
  }
}
