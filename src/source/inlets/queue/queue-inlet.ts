import { OptionTypeError } from '../../../core/options.js'
import { callable, clock, number, readOptions, text } from '../../../core/read-options.js'
import { type Clock, systemClock } from '../../../core/time/clock.js'
import type { Ms } from '../../../core/time/time.js'
import type { PulledWork, Queue } from '../../../ports/ports.js'
import { OpenSubscriptions } from '../open-subscriptions.js'
import type { CapabilityName, Inlet, SubscribeConfig, Subscription } from '../subscription.js'
import { QueueMessage } from './queue-message.js'
import { QueueSubscription } from './queue-subscription.js'

/** Options of {@link QueueInlet}. All optional. */
export interface QueueInletOptions {
  readonly clock?: Clock
  /** The subject of its messages. Default `'queue'`. */
  readonly subject?: string
  /** How long a body is leased for, and extended by. Default 30 000. */
  readonly leaseMs?: Ms
  /** The longest wait between two polls of an empty queue; the first ones are shorter. Default 1000. */
  readonly idlePollMs?: Ms
  /** The routing key in the text of a message, for order within a key; a key that its producer gave goes first. Default: none. */
  readonly keyOf?: (body: string) => string | undefined
}

/**
 * Any queue as a stream: bodies become messages with their text as UTF-8, and results become ack, put-back and dead letter.
 *
 * Bodies made by `messageBody` have headers and a key; any other is delivered as it is. On the queues of our backends a message
 * is known by its own id, and only deliveries that begin to run count. On any other queue a put-back counts as a delivery, and a
 * redelivery cannot be told from a new message. A term is kept in the queue's dead-letter sink, where it has one, unless
 * middleware has dead-lettered it. The queue is borrowed: it is never closed.
 *
 * @example
 * ```ts
 * const inlet = new QueueInlet(memoryQueue(), { subject: 'mail' })
 * await new Hopper({ concurrency: 8 }).receive(inlet, { topics: ['mail'] }, handle)
 * ```
 */
export class QueueInlet implements Inlet {
  readonly capabilities: ReadonlySet<CapabilityName>
  readonly #queue: Queue
  readonly #o: Required<QueueInletOptions>
  readonly #subscriptions = new OpenSubscriptions<QueueSubscription>()
  #positions = 0

  constructor(queue: Queue, options?: QueueInletOptions) {
    for (const method of ['pop', 'ack', 'fail', 'heartbeat'] as const) {
      if (typeof queue?.[method] !== 'function') throw new OptionTypeError('queueInlet(queue)', 'a Queue', queue)
    }
    this.#queue = queue
    this.#o = readOptions('queueInlet', options, {
      clock: clock(systemClock),
      subject: text('queue'),
      leaseMs: number({ above: 0, default: 30_000 }),
      idlePollMs: number({ above: 0, default: 1_000 }),
      keyOf: callable<NonNullable<QueueInletOptions['keyOf']>>(() => undefined),
    })
    this.capabilities = new Set<CapabilityName>([
      'batched',
      'leaseExtender',
      'nakSupport',
      ...(queue.start === undefined ? [] : (['starter', 'releaser', 'identity'] as const)),
      ...(queue.size === undefined ? [] : (['lagReporter'] as const)),
    ])
  }

  async subscribe(
    _config: SubscribeConfig = { topics: [] },
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<Subscription> {
    const { clock, leaseMs, idlePollMs } = this.#o
    const messageOf = (pulled: PulledWork) => this.#messageOf(pulled)
    const own = {
      queue: this.#queue,
      clock,
      leaseMs,
      idlePollMs,
      capabilities: this.capabilities,
      messageOf,
      origin: this,
    }
    return this.#subscriptions.add(options.signal, (onClose) => new QueueSubscription({ ...own, onClose }))
  }

  /** Polls the queue now: call it when you know that something was pushed. */
  wake(): void {
    for (const sub of this.#subscriptions) sub.wake()
  }

  close(): Promise<void> {
    return this.#subscriptions.close()
  }

  #messageOf(pulled: PulledWork): QueueMessage {
    this.#positions += 1
    return new QueueMessage(this, pulled, {
      subject: this.#o.subject,
      // Of a queue without ids nothing but the order of arrival in this process is known.
      cursor: pulled.id ?? String(this.#positions),
      countsStarts: this.#queue.start !== undefined,
      keyIn: (text) => (text === undefined ? undefined : this.#keyIn(text)),
    })
  }

  /** A body that `keyOf` cannot read is still delivered: its handler, or the codec, will say what is wrong with it. */
  #keyIn(body: string): string | undefined {
    try {
      return this.#o.keyOf(body)
    } catch {
      return undefined
    }
  }
}
