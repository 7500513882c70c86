import {
  functionOption,
  integerOption,
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
import type { Ms } from '../../core/time/time.js'
import { NATS_ADDRESSES, type NatsAddress, natsAddressOption } from '../../drivers/nats/index.js'
import { ForeignCursorError, InletClosedError, SubscriptionClosedError } from '../errors.js'
import { BrokerCursor } from '../inlets/broker/broker-message.js'
import { BrokerSubscription } from '../inlets/broker/broker-subscription.js'
import { explainStream, type StreamExplanation, type StreamLetters } from '../inlets/broker/stream-letters.js'
import { Subscriptions } from '../inlets/broker/subscriptions.js'
import type { Capabilities, CapabilityName, Inlet, SubscribeConfig, Subscription } from '../inlets/subscription.js'
import type { Headers } from '../message/headers.js'
import type { Cursor } from '../message/message.js'
import { JsAdapter } from './js-adapter.js'
import { JsApi } from './js-api.js'
import { JsConsumer, type StartAt } from './js-consumer.js'
import { JsLetters } from './js-letters.js'
import type { JsMessage } from './js-message.js'

/** Options of {@link JetStreamInlet}: one of `servers`, `options` and `connection`, a stream, a durable, and what may differ. */
export interface JetStreamInletOptions extends NatsAddress {
  /** The stream. It has to be there. */
  readonly stream: string
  /** The durable consumer: its subscriptions share the stream. It is made when it is first needed. */
  readonly durable: string
  /** One subject of the stream, wildcards allowed, for a consumer that has to be made. Default: all. */
  readonly filter?: string
  /** Where a consumer begins that has to be made: with everything, or with what comes next. Default `'start'`. */
  readonly from?: 'start' | 'end'
  /** The stream to which terminated messages are copied before they end; it is made when it is not there. Default: none. */
  readonly deadLetters?: string
  /** How long a message may be out without a heartbeat (`ack_wait`). Default 30 000. */
  readonly leaseMs?: Ms
  /** Most messages that all subscriptions of the durable may have out (`max_ack_pending`). Default 10 000. */
  readonly maxUnsettled?: number
  /** How long the server keeps one pull open. Default 1000. */
  readonly idlePollMs?: Ms
  /** The routing key of a message. Default: the header `Crucible-Key`, else its subject. */
  readonly keyOf?: (subject: string, headers: Headers) => string | undefined
  /** How long a request may take. Default 10 000. */
  readonly timeoutMs?: Ms
  /** Called when a connection is lost; it is made anew. Default: a warning. */
  readonly onError?: (error: Error) => void
  /** For waits and leases in this process. The server has its own. */
  readonly clock?: Clock
}

const OWNER = 'jetStreamInlet'
const CAPABILITIES = [
  'seekable',
  'sharedDurable',
  'batched',
  'lagReporter',
  'leaseExtender',
  'identity',
  'nakSupport',
] as const satisfies readonly CapabilityName[]

/**
 * A stream of NATS JetStream as an inlet, read by a durable pull consumer. Settlements are confirmed by the server; naks may be delayed, and the
 * server keeps the delay; leases are its `ack_wait`.
 *
 * @example
 * ```ts
 * const inlet = new JetStreamInlet({ servers: 'nats://127.0.0.1:4222', stream: 'ORDERS', durable: 'shipping', deadLetters: 'ORDERS_DEAD' })
 * await new Hopper({ concurrency: 8 }).receive(inlet, { topics: [] }, () => ack())
 * ```
 */
export class JetStreamInlet implements Inlet {
  readonly capabilities: ReadonlySet<CapabilityName> = new Set<CapabilityName>(CAPABILITIES)
  readonly #clock: Clock
  readonly #leaseMs: Ms
  readonly #idlePollMs: Ms
  readonly #timeoutMs: Ms
  readonly #keyOf: ((subject: string, headers: Headers) => string | undefined) | undefined
  readonly #api: JsApi
  readonly #consumer: JsConsumer
  readonly #letters: JsLetters | undefined
  readonly #subscriptions = new Subscriptions<JsMessage>()
  readonly #adapters = new Set<JsAdapter>()
  #isClosed = false

  constructor(options: JetStreamInletOptions) {
    const given = optionsObject(OWNER, options, [
      ...NATS_ADDRESSES,
      ...(['stream', 'durable', 'filter', 'from', 'deadLetters', 'leaseMs', 'maxUnsettled'] as const),
      ...(['idlePollMs', 'keyOf', 'timeoutMs', 'onError', 'clock'] as const),
    ])
    const address = natsAddressOption(OWNER, given)
    const stream = nameOption('stream', given.stream)
    const name = nameOption('durable', given.durable)
    this.#clock = clock(systemClock)(`${OWNER}.clock`, given.clock)
    this.#leaseMs = numberOption(`${OWNER}.leaseMs`, given.leaseMs, { min: 10, default: 30_000 })
    this.#idlePollMs = integerOption(`${OWNER}.idlePollMs`, given.idlePollMs, { min: 10, default: 1_000 })
    this.#timeoutMs = numberOption(`${OWNER}.timeoutMs`, given.timeoutMs, { min: 1, default: 10_000 })
    this.#keyOf = given.keyOf === undefined ? undefined : functionOption(`${OWNER}.keyOf`, given.keyOf)
    const onError = functionOption<(error: Error) => void>(`${OWNER}.onError`, given.onError, (error) =>
      warnOnce('MILLRACE_NATS', error, `${OWNER}({ onError })`),
    )
    this.#api = new JsApi({ address, clock: this.#clock, timeoutMs: this.#timeoutMs, onError })
    this.#consumer = new JsConsumer({
      api: this.#api,
      stream,
      name,
      leaseMs: this.#leaseMs,
      maxUnsettled: integerOption(`${OWNER}.maxUnsettled`, given.maxUnsettled, { min: 1, default: 10_000 }),
      filter: given.filter === undefined ? undefined : stringOption(`${OWNER}.filter`, given.filter),
      isFromStart: oneOfOption(`${OWNER}.from`, given.from, ['start', 'end'], 'start') === 'start',
    })
    if (given.deadLetters !== undefined) {
      const letters = nameOption('deadLetters', given.deadLetters)
      if (letters === stream)
        throw new OptionError(`${OWNER}.deadLetters`, 'another stream than the one that is read', letters)
      const { timeoutMs } = { timeoutMs: this.#timeoutMs }
      this.#letters = new JsLetters({ api: this.#api, origin: this, stream, group: name, letters, timeoutMs })
    }
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
    const { stream, name } = this.#consumer
    if (config.topics.some((topic) => topic !== stream))
      throw new OptionError('subscribe.topics', `none, or the stream of the inlet, "${stream}"`, config.topics)
    if (config.group !== undefined && config.group !== name)
      throw new OptionError('subscribe.group', `the durable of the inlet, "${name}", or none`, config.group)
    if (this.#isClosed) throw new InletClosedError('be subscribed to')
    await this.#consumer.ready()
    if (this.#isClosed) throw new InletClosedError('be subscribed to')
    const adapter = new JsAdapter({
      clock: this.#clock,
      api: this.#api,
      consumer: this.#consumer,
      origin: this,
      leaseMs: this.#leaseMs,
      idlePollMs: this.#idlePollMs,
      timeoutMs: this.#timeoutMs,
      letters: this.#letters,
      keyOf: this.#keyOf,
    })
    this.#adapters.add(adapter)
    const sub: BrokerSubscription<JsMessage> = new BrokerSubscription<JsMessage>({
      clock: this.#clock,
      adapter,
      origin: this,
      leaseMs: this.#leaseMs,
      claims: this.capabilities,
      isPaused: () => this.isPaused,
      capabilities: this.#capabilities(() => sub),
      onClose: (closed) => this.#subscriptions.delete(closed),
    })
    this.#subscriptions.add(sub)
    return sub
  }

  /** Where the stream stands for this durable, and what stops it. */
  async explain(): Promise<StreamExplanation> {
    await this.#consumer.ready()
    const { stream, name } = this.#consumer
    const { num_pending: waiting, num_ack_pending: unsettled } = await this.#consumer.info()
    const facts = {
      stream,
      group: name,
      waiting,
      unsettled,
      // The server counts what was delivered again, and not what waits for it.
      putBack: undefined,
      consumers: undefined,
      isPaused: this.isPaused,
    }
    return explainStream(facts, this.#letters)
  }

  /** Closes every subscription, and the connection that the inlet made. What was fetched and not run goes back. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#subscriptions.close()
    await Promise.all([...this.#adapters].map((adapter) => adapter.end()))
    await this.#api.close()
  }

  #capabilities(sub: () => BrokerSubscription<JsMessage>): Partial<Capabilities> {
    const { name, stream } = this.#consumer
    const seek = async (at: StartAt): Promise<void> => {
      if (sub().isClosed) throw new SubscriptionClosedError('seek')
      await this.#consumer.restart(at)
      sub().nudge()
    }
    return {
      seekable: {
        seekToTime: (at) =>
          seek({ deliver_policy: 'by_start_time', opt_start_time: new Date(Math.max(0, at)).toISOString() }),
        seekToCursor: async (cursor) =>
          seek({ deliver_policy: 'by_start_sequence', opt_start_seq: sequenceIn(cursor, stream) + 1 }),
        seekToStart: () => seek({ deliver_policy: 'all' }),
        seekToEnd: () => seek({ deliver_policy: 'new' }),
      },
      sharedDurable: { name },
      lagReporter: {
        lag: async () => {
          const { num_pending: waiting, num_ack_pending: unsettled } = await this.#consumer.info()
          return waiting + unsettled
        },
      },
      identity: true,
    }
  }
}

/** Sequences of different streams look alike; a stored one, which is only text, is taken at its word. */
function sequenceIn(cursor: Cursor, stream: string): number {
  const text = cursor.toString()
  const isForeign = cursor instanceof BrokerCursor && cursor.stream !== stream
  if (isForeign || !/^\d+$/.test(text)) throw new ForeignCursorError(text)
  return Number(text)
}

/** A name of the server's: it becomes part of subjects. */
function nameOption(which: string, value: unknown): string {
  const name = stringOption(`${OWNER}.${which}`, value)
  if (/[\s.*>/\\]/.test(name))
    throw new OptionTypeError(`${OWNER}.${which}`, 'a name without spaces, dots, wildcards and slashes', name)
  return name
}
