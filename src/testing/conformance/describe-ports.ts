import type { Clock } from '../../core/time/clock.js'
import type { MaybePromise } from '../../core/time/time.js'
import type { PubSub, Queue, Store } from '../../ports/ports.js'
import type { PubSubClauseName, QueueClauseName, StoreClauseName } from './clauses.js'
import { pubsubClauses } from './pubsub-clauses.js'
import { queueClauses } from './queue-clauses.js'
import { storeClauses } from './store-clauses.js'
import { describeClauses, type SuiteOptions, using } from './suite.js'
import type { TestTime } from './time.js'

/** How a suite opens the port it tests. */
export interface PortSuite<Port, Name extends string> extends SuiteOptions<Name> {
  /** Called for every clause; must return an empty port that lives by this clock. */
  readonly open: (clock: Clock) => MaybePromise<Port>
  readonly close?: (port: Port) => MaybePromise<void>
}

/**
 * Describes a suite that holds a queue to its obligations: leases, delays, dedupe, order, stale handles.
 *
 * @example
 * ```ts
 * describeQueue({ name: 'sqs', open: () => sqsQueue({ url }), realTime: true, without: ['priority', 'arrival order'] })
 * ```
 */
export function describeQueue(options: PortSuite<Queue, QueueClauseName>): void {
  describeClauses('describeQueue', 'queue', options, queueClauses, (time, use) =>
    opened(options, time, (queue) => use({ queue, time })),
  )
}

/** Describes a suite that holds a store to its obligations: expiry, atomic claims and counters. */
export function describeStore(options: PortSuite<Store, StoreClauseName>): void {
  describeClauses('describeStore', 'store', options, storeClauses, (time, use) =>
    opened(options, time, (store) => use({ store, time })),
  )
}

/** Describes a suite that holds a pub/sub to its obligations: fan-out, isolation of listeners, unsubscribing. */
export function describePubSub(options: PortSuite<PubSub, PubSubClauseName>): void {
  describeClauses('describePubSub', 'pubsub', options, pubsubClauses, (time, use) =>
    opened(options, time, (pubsub) => use({ pubsub, time })),
  )
}

function opened<Port>(
  { open, close = () => undefined }: Pick<PortSuite<Port, string>, 'open' | 'close'>,
  { clock }: TestTime,
  use: (port: Port) => Promise<void>,
): Promise<void> {
  return using(() => open(clock), close, use)
}
