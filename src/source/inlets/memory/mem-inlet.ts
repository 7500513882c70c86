import { checkedId, newToken } from '../../../core/ids.js'
import { OptionError } from '../../../core/options.js'
import { callable, clock, flag, number, readOptions, unchecked } from '../../../core/read-options.js'
import { type Clock, systemClock } from '../../../core/time/clock.js'
import type { Ms } from '../../../core/time/time.js'
import { OpenSubscriptions } from '../open-subscriptions.js'
import type { CapabilityName, Inlet, SubscribeConfig, Subscription } from '../subscription.js'
import { type MemMessageSpec, recordOf } from './mem-message.js'
import { MemStream } from './mem-stream.js'
import { MemSubscription, type MemSubscriptionOptions } from './mem-subscription.js'
import { SettlementLog } from './settlement-log.js'

/** Options of {@link MemInlet}. All optional. */
export interface MemInletOptions {
  readonly clock?: Clock
  /**
   * Makes the id, and so the cursor, of each message: never the same twice, nor one that an inlet of an earlier process made, if the keys
   * of `idempotency` outlive the process. Default: a token of the inlet and a number.
   */
  readonly nextId?: () => string
  /** Queued from the beginning. */
  readonly messages?: readonly MemMessageSpec[]
  /** Offers `nextBatch`. Default false. */
  readonly batched?: boolean
  /**
   * A nak comes back after its delay, and what is not settled when its lease has lapsed comes back too, counted as one more
   * delivery. False: settlements are only recorded. Default true.
   */
  readonly redeliver?: boolean
  /** How long a message may be out unsettled. Default 30 000. */
  readonly leaseMs?: Ms
  /**
   * A closed subscription hands out redeliveries as well, and is drained only when nothing can come back any more. Batches
   * then need a `maxWaitMs`, since a partial one is out, too. Default false: only what was never delivered.
   */
  readonly drainRedeliveries?: boolean
  /** Says that order holds over the whole subscription, so that a hopper runs one lane. Default false. */
  readonly ordered?: boolean
  /** Offers to hold back partitions. Default false. */
  readonly pausable?: boolean
  /** Offers the hooks of a consumer group; see `assign` and `revoke`. Default false. */
  readonly consumerGroups?: boolean
}

/**
 * A stream in memory, for tests and for trying things out. It behaves as a broker does: leases that lapse, redeliveries
 * that count, delays that are kept; and it remembers every settlement in its `ledger`. All its subscriptions share one
 * queue, whatever topics they ask for.
 *
 * @example
 * ```ts
 * const inlet = new MemInlet({ messages: [{ key: 'a', value: '1' }] })
 * await new Hopper().receive(inlet, { topics: [] }, () => ack())
 * ```
 */
export class MemInlet implements Inlet {
  readonly capabilities: ReadonlySet<CapabilityName>
  /** Every settlement so far. */
  readonly ledger: SettlementLog = new SettlementLog()
  readonly #clock: Clock
  readonly #nextId: () => string
  readonly #ids = new Set<string>()
  readonly #stream: MemStream
  readonly #subscriptionOptions: Omit<MemSubscriptionOptions, 'groupId' | 'onClose'>
  readonly #subscriptions = new OpenSubscriptions<MemSubscription>()

  constructor(options?: MemInletOptions) {
    let ids = 0
    const own = newToken()
    const given = readOptions('memInlet', options, {
      clock: clock(systemClock),
      nextId: callable(() => `${own}-${++ids}`),
      messages: unchecked,
      batched: flag(false),
      redeliver: flag(true),
      leaseMs: number({ above: 0, default: 30_000 }),
      drainRedeliveries: flag(false),
      ordered: flag(false),
      pausable: flag(false),
      consumerGroups: flag(false),
    })
    const { redeliver, leaseMs } = given
    this.#clock = given.clock
    this.#nextId = given.nextId
    this.#stream = new MemStream({ clock: this.#clock, ledger: this.ledger, leaseMs, redeliver })
    this.capabilities = new Set<CapabilityName>([
      'seekable',
      'lagReporter',
      'releaser',
      'nakSupport',
      'identity',
      // Recorded only, a message is never taken back: there is no lease to extend.
      ...(redeliver ? (['leaseExtender'] as const) : []),
      ...(given.batched ? (['batched'] as const) : []),
      ...(given.ordered ? (['orderedDelivery'] as const) : []),
      ...(given.pausable ? (['pausable'] as const) : []),
      ...(given.consumerGroups ? (['consumerGroups'] as const) : []),
    ])
    this.#subscriptionOptions = {
      stream: this.#stream,
      capabilities: this.capabilities,
      leaseMs,
      redeliver,
      drainRedeliveries: given.drainRedeliveries,
    }
    this.#append(given.messages ?? [])
  }

  /** Adds messages at the end and wakes waiting consumers. Returns their ids. */
  queue(...messages: readonly MemMessageSpec[]): string[] {
    this.#subscriptions.check('queue messages')
    const ids = this.#append(messages)
    this.#stream.wake()
    return ids
  }

  async subscribe(
    config: SubscribeConfig = { topics: [] },
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<Subscription> {
    const own = { ...this.#subscriptionOptions, groupId: config.group ?? '' }
    return this.#subscriptions.add(options.signal, (onClose) => new MemSubscription({ ...own, onClose }))
  }

  /** Closes every subscription. What is out stays out, and can still be settled. */
  close(): Promise<void> {
    return this.#subscriptions.close()
  }

  /** Gives partitions to the group, as a rebalance does: they are delivered, and `onAssigned` is called. */
  async assign(...partitionKeys: readonly string[]): Promise<void> {
    for (const partition of partitionKeys) this.#stream.letGo(partition)
    await this.#notify('assigned', partitionKeys)
  }

  /** Takes partitions from the group: nothing of them is delivered any more. Resolves when `onRevoked` has done its part. */
  async revoke(...partitionKeys: readonly string[]): Promise<void> {
    for (const partition of partitionKeys) this.#stream.holdBack(partition)
    await this.#notify('revoked', partitionKeys)
  }

  async #notify(what: 'assigned' | 'revoked', partitionKeys: readonly string[]): Promise<void> {
    await Promise.all([...this.#subscriptions].map((sub) => sub.notify(what, partitionKeys)))
  }

  #append(messages: readonly MemMessageSpec[]): string[] {
    const now = this.#clock.now()
    return messages.map((spec) => {
      const id = this.#freshId()
      this.#stream.append(recordOf(spec, id, now))
      return id
    })
  }

  #freshId(): string {
    const id = checkedId(this.#nextId(), 'memInlet.nextId')
    if (this.#ids.has(id))
      throw new OptionError('memInlet.nextId', 'a function that never returns the same id twice', id)
    this.#ids.add(id)
    return id
  }
}
