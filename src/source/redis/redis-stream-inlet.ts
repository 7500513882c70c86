import { hostname } from 'node:os'
import { newToken } from '../../core/ids.js'
import {
  functionOption,
  numberOption,
  OptionError,
  OptionTypeError,
  oneOfOption,
  optionsObject,
  stringOption,
} from '../../core/options.js'
import { warnOnce } from '../../core/process/warn-once.js'
import { clock } from '../../core/read-options.js'
import { type Clock, systemClock } from '../../core/time/clock.js'
import type { At, Ms } from '../../core/time/time.js'
import { REDIS_ADDRESSES, type RedisAddress, RedisConnection, redisAddressOption } from '../../drivers/redis/index.js'
import { ForeignCursorError, InletClosedError, SubscriptionClosedError } from '../errors.js'
import { BrokerCursor } from '../inlets/broker/broker-message.js'
import { BrokerSubscription } from '../inlets/broker/broker-subscription.js'
import { explainStream, type StreamExplanation, type StreamLetters } from '../inlets/broker/stream-letters.js'
import { Subscriptions } from '../inlets/broker/subscriptions.js'
import type { Capabilities, CapabilityName, Inlet, SubscribeConfig, Subscription } from '../inlets/subscription.js'
import type { Cursor } from '../message/message.js'

import { RedisAdapter } from './redis-adapter.js'
import { redisLetters } from './redis-letters.js'
import type { FieldNames, RedisMessage } from './redis-message.js'
import { script } from './scripts.js'
import { CONSUMER_MARK, KEY_FIELD, VALUE_FIELD } from './wire-names.js'

/** Options of {@link RedisStreamInlet}: one of `url`, `options`, `cluster` and `client`, a stream, a group, and what may differ. */
export interface RedisStreamInletOptions extends RedisAddress {
  /** The key of the stream. */
  readonly stream: string
  /** The consumer group: its consumers share the stream. It is made when it is first needed. */
  readonly group: string
  /** Where a group begins that has to be made: with everything, or with what comes next. Default `'start'`. */
  readonly from?: 'start' | 'end'
  /** The stream to which terminated messages are moved, in the step that settles them. Default: none, and a term only ends its message. */
  readonly deadLetters?: string
  /** How long a message may be out without a heartbeat before another consumer gets it. Default 30 000. */
  readonly leaseMs?: Ms
  /** The longest wait between two looks at a quiet stream; new messages are noticed immediately. Default 1000. */
  readonly idlePollMs?: Ms
  /** How this consumer begins its name in the group; every subscription adds a token. Default: host and process id. */
  readonly consumer?: string
  /** The field with the payload. Default `'value'`. */
  readonly valueField?: string
  /** The field with the routing key. Default `'crucible-key'`. */
  readonly keyField?: string
  /** How long a call may take, the wait for a connection included. Default 10 000. */
  readonly commandTimeoutMs?: Ms
  /** Called when a connection is lost; it is made anew. Default: a warning. */
  readonly onError?: (error: Error) => void
  /** For waits in this process. Leases and delays live by the server's time. */
  readonly clock?: Clock
}

const OWNER = 'redisStreamInlet'
const CAPABILITIES = [
  'seekable',
  'sharedDurable',
  'batched',
  'lagReporter',
  'leaseExtender',
  'starter',
  'identity',
  'releaser',
  'nakSupport',
] as const satisfies readonly CapabilityName[]
/** A consumer that has not been heard of for so many leases, and holds nothing, is removed from the group. */
const GONE_AFTER_LEASES = 20
/** Most messages that are counted one by one, where the server does not know the lag. */
const MOST_COUNTED = 10_000

/**
 * A Redis stream as an inlet, read by a consumer group. What a killed consumer held comes to the others when its lease lapses; delays are
 * kept by the server, whichever process dies; only deliveries that began to run count. Nothing is acknowledged by a consumer that has lost its lease.
 *
 * @example
 * ```ts
 * const inlet = new RedisStreamInlet({ url: 'redis://127.0.0.1:6379', stream: 'orders', group: 'shipping', deadLetters: 'orders:dead' })
 * await new Hopper({ concurrency: 8 }).receive(inlet, { topics: [] }, () => ack())
 * ```
 */
export class RedisStreamInlet implements Inlet {
  readonly capabilities: ReadonlySet<CapabilityName> = new Set<CapabilityName>(CAPABILITIES)
  readonly #o: Readonly<
    Required<Pick<RedisStreamInletOptions, 'stream' | 'group' | 'leaseMs' | 'idlePollMs' | 'consumer'>>
  >
  readonly #clock: Clock
  readonly #address: RedisAddress
  readonly #timeoutMs: Ms
  readonly #onError: (error: Error) => void
  readonly #names: FieldNames
  readonly #isFromStart: boolean
  readonly #connection: RedisConnection
  readonly #subscriptions = new Subscriptions<RedisMessage>()
  readonly #adapters = new Map<string, RedisAdapter>()
  readonly #letters: StreamLetters | undefined
  readonly #lettersStream: string
  #isClosed = false

  constructor(options: RedisStreamInletOptions) {
    const given = optionsObject(OWNER, options, [
      ...REDIS_ADDRESSES,
      ...(['stream', 'group', 'from', 'deadLetters', 'leaseMs', 'idlePollMs', 'consumer'] as const),
      ...(['valueField', 'keyField', 'commandTimeoutMs', 'onError', 'clock'] as const),
    ])
    this.#address = redisAddressOption(OWNER, given)
    checkClient(this.#address)
    this.#clock = clock(systemClock)(`${OWNER}.clock`, given.clock)
    this.#timeoutMs = numberOption(`${OWNER}.commandTimeoutMs`, given.commandTimeoutMs, { min: 1, default: 10_000 })
    this.#onError = functionOption<(error: Error) => void>(`${OWNER}.onError`, given.onError, (error) =>
      warnOnce('MILLRACE_REDIS', error, `${OWNER}({ onError })`),
    )
    this.#o = {
      stream: stringOption(`${OWNER}.stream`, given.stream),
      group: stringOption(`${OWNER}.group`, given.group),
      leaseMs: numberOption(`${OWNER}.leaseMs`, given.leaseMs, { min: 10, default: 30_000 }),
      idlePollMs: numberOption(`${OWNER}.idlePollMs`, given.idlePollMs, { above: 0, default: 1_000 }),
      consumer: stringOption(`${OWNER}.consumer`, given.consumer, `${hostname()}-${process.pid}`),
    }
    this.#isFromStart = oneOfOption(`${OWNER}.from`, given.from, ['start', 'end'], 'start') === 'start'
    this.#names = {
      value: stringOption(`${OWNER}.valueField`, given.valueField, VALUE_FIELD),
      key: stringOption(`${OWNER}.keyField`, given.keyField, KEY_FIELD),
    }
    this.#connection = this.#connect(false)
    this.#lettersStream = given.deadLetters === undefined ? '' : stringOption(`${OWNER}.deadLetters`, given.deadLetters)
    if (this.#lettersStream === this.#o.stream)
      throw new OptionError(`${OWNER}.deadLetters`, 'another stream than the one that is read', this.#lettersStream)
    const { stream, group } = this.#o
    if (this.#lettersStream !== '')
      this.#letters = redisLetters({
        connection: this.#connection,
        origin: this,
        stream,
        group,
        letters: this.#lettersStream,
        names: this.#names,
      })
  }

  /** The dead letters, where `deadLetters` names a stream for them. Also a store for `dlq`. */
  get letters(): StreamLetters {
    if (this.#letters !== undefined) return this.#letters
    throw new OptionError(`${OWNER}.deadLetters`, 'the name of a stream, for letters to be kept', undefined)
  }

  get isPaused(): boolean {
    return this.#subscriptions.isPaused
  }

  /** Delivers nothing more until `resume`. What is out goes on; other processes go on. */
  pause(): void {
    this.#subscriptions.pause()
  }

  resume(): void {
    this.#subscriptions.resume()
  }

  /** `topics`: none, or the stream of the inlet. */
  async subscribe(
    config: SubscribeConfig = { topics: [] },
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<Subscription> {
    options.signal?.throwIfAborted()
    const { stream, group, leaseMs, idlePollMs } = this.#o
    checkConfig(config, stream, group)
    if (this.#isClosed) throw new InletClosedError('be subscribed to')
    const consumer = `${CONSUMER_MARK}${this.#o.consumer}:${newToken()}`
    const lastId = (await this.#connection.run(script('open'), stream, [
      ...[group, consumer],
      this.#isFromStart ? '0' : '$',
    ])) as string
    if (this.#isClosed) throw new InletClosedError('be subscribed to')
    await this.#leave(consumer, 0)
    const adapter = new RedisAdapter({
      clock: this.#clock,
      connection: this.#connection,
      line: isCluster(this.#address) ? undefined : this.#connect(true),
      origin: this,
      stream,
      group,
      consumer,
      // A group that is lost later is made again so that nothing is missed which came meanwhile.
      from: this.#isFromStart ? '0' : lastId,
      leaseMs,
      idlePollMs,
      letters: this.#lettersStream,
      names: this.#names,
    })
    this.#adapters.set(consumer, adapter)
    const sub: BrokerSubscription<RedisMessage> = new BrokerSubscription<RedisMessage>({
      clock: this.#clock,
      adapter,
      origin: this,
      leaseMs,
      claims: this.capabilities,
      isPaused: () => this.isPaused,
      capabilities: this.#capabilities(adapter, () => sub),
      onClose: (closed) => this.#subscriptions.delete(closed),
    })
    this.#subscriptions.add(sub)
    return sub
  }

  /** Where the stream stands for this group, and what stops it. */
  async explain(): Promise<StreamExplanation> {
    const { stream, group } = this.#o
    const [waiting, unsettled, putBack, consumers] = await this.#report()
    const facts = {
      stream,
      group,
      waiting,
      unsettled,
      putBack,
      consumers,
      isPaused: this.isPaused,
    }
    return explainStream(facts, this.#letters)
  }

  /** Closes every subscription, and the connections that the inlet made. What is out comes back when its lease lapses. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#subscriptions.close()
    for (const [consumer, adapter] of this.#adapters) {
      await adapter.end()
      await this.#leave(consumer, 1)
    }
    await this.#connection.close()
  }

  #connect(isListening: boolean): RedisConnection {
    return new RedisConnection({
      address: this.#address,
      commandTimeoutMs: this.#timeoutMs,
      onError: this.#onError,
      isListening,
    })
  }

  /** Tidies up. A server that is away keeps an empty consumer, which another one removes later. */
  async #leave(consumer: string, leaves: 0 | 1): Promise<void> {
    const { stream, group, leaseMs } = this.#o
    const words = [group, consumer, CONSUMER_MARK, leaseMs * GONE_AFTER_LEASES, leaves]
    await this.#connection.run(script('leave'), stream, words).catch(() => undefined)
  }

  async #report(): Promise<readonly [number, number, number, number]> {
    const { stream, group } = this.#o
    const reply = await this.#connection.run(script('report'), stream, [
      group,
      '',
      MOST_COUNTED,
      this.#isFromStart ? 1 : 0,
    ])
    return reply as [number, number, number, number]
  }

  #capabilities(adapter: RedisAdapter, sub: () => BrokerSubscription<RedisMessage>): Partial<Capabilities> {
    const { stream, group } = this.#o
    const seek = async (id: string): Promise<void> => {
      if (sub().isClosed) throw new SubscriptionClosedError('seek')
      await this.#connection.run(script('seek'), stream, [group, '', id])
      sub().nudge()
    }
    return {
      seekable: {
        // The last id before that time.
        seekToTime: (at: At) => seek(at <= 0 ? '0' : `${Math.ceil(at) - 1}-18446744073709551615`),
        seekToCursor: async (cursor) => seek(idIn(cursor, stream)),
        seekToStart: () => seek('0'),
        seekToEnd: () => seek('$'),
      },
      sharedDurable: { name: group },
      lagReporter: {
        lag: async () => {
          const [waiting, unsettled] = await this.#report()
          return waiting + unsettled
        },
      },
      starter: { start: (messages) => adapter.start(messages.map((message) => sub().mine(message))) },
      identity: true,
    }
  }
}

/** Ids of different streams look alike; a stored one, which is only text, is taken at its word. */
function idIn(cursor: Cursor, stream: string): string {
  const id = cursor.toString()
  const isForeign = cursor instanceof BrokerCursor && cursor.stream !== stream
  if (isForeign || !/^\d+-\d+$/.test(id)) throw new ForeignCursorError(id)
  return id
}

function checkConfig({ topics, group }: SubscribeConfig, stream: string, own: string): void {
  if (topics.some((topic) => topic !== stream))
    throw new OptionError('subscribe.topics', `none, or the stream of the inlet, "${stream}"`, topics)
  if (group !== undefined && group !== own)
    throw new OptionError('subscribe.group', `the group of the inlet, "${own}", or none`, group)
}

function isCluster({ cluster, client }: RedisAddress): boolean {
  return cluster !== undefined || (client as { readonly isCluster?: boolean } | undefined)?.isCluster === true
}

/** What streams need of a client beyond what every part of Millrace does. */
function checkClient({ client }: RedisAddress): void {
  if (client === undefined) return
  for (const method of ['evalBuffer', 'evalshaBuffer', 'xread', 'xrangeBuffer', 'xlen', 'xadd'] as const)
    if (typeof client[method] !== 'function')
      throw new OptionTypeError(`${OWNER}.client`, `a client of ioredis (it has no ${method})`, client)
}
