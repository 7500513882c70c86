import type { Result } from '../../core/stream/result.js'
import type { At, MaybePromise, Ms } from '../../core/time/time.js'
import type { Cursor, Message } from '../message/message.js'

/** What to read. */
export interface SubscribeConfig {
  readonly topics: readonly string[]
  readonly group?: string
}

/** How faithfully a delayed nak is kept: by the backend, by the adapter while it lives, or not at all. */
export type NakSupport = 'native' | 'emulated' | 'none'

/** What a subscription may be able to do beyond pulling and settling. Asked for by name at run time, never faked. */
export interface Capabilities {
  readonly seekable: {
    seekToTime(at: At): Promise<void>
    /** Resumes after the cursor. Rejects a cursor of another stream. */
    seekToCursor(cursor: Cursor): Promise<void>
    seekToStart(): Promise<void>
    seekToEnd(): Promise<void>
  }
  readonly consumerGroups: {
    readonly groupId: string
    onAssigned(fn: (partitionKeys: readonly string[]) => void | Promise<void>): void
    onRevoked(fn: (partitionKeys: readonly string[]) => void | Promise<void>): void
  }
  readonly sharedDurable: { readonly name: string }
  /** Order holds within a partition. */
  readonly partitionOrdered: true
  /** Order holds over the whole subscription: the engine runs one lane. */
  readonly orderedDelivery: true
  readonly batched: {
    /** Waits for one, then takes what is ready without waiting; never empty. */
    nextBatch(limit: number, options: { readonly signal: AbortSignal }): Promise<readonly Message[]>
    settleBatch(messages: readonly Message[], result: Result): Promise<void>
  }
  readonly transactional: { begin<T>(message: Message, fn: () => Promise<T>): Promise<T> }
  readonly lagReporter: { lag(): Promise<number> }
  readonly leaseExtender: {
    readonly leaseMs: Ms
    /** `false`: the lease was lost. */
    extend(message: Message): Promise<boolean | void>
    /** The same for many in one call, where the backend can. */
    extendMany?(messages: readonly Message[]): Promise<readonly (boolean | void)[]>
  }
  /**
   * Counts the deliveries that begin to run, so that what was fetched and never ran is not counted: `deliveryCount` is then the
   * number of starts, this one included. Answers which messages are still held. A nak without a start counts as one.
   */
  readonly starter: { start(messages: readonly Message[]): MaybePromise<readonly boolean[]> }
  /**
   * The cursor names the message: it is the same in every delivery and in every process, and never that of another message.
   * Without it a redelivery cannot be told from a new message, unless a header of the message does.
   */
  readonly identity: true
  /** Gives a message back without counting an attempt. */
  readonly releaser: { release(message: Message): Promise<void> }
  readonly pausable: { pause(partitionKey: string): void; resume(partitionKey: string): void }
  readonly nakSupport: NakSupport
}

/** The name of something that a subscription may be able to do. */
export type CapabilityName = keyof Capabilities

/** A live pull-and-settle surface: no loop and no concurrency. */
export interface Subscription {
  /**
   * The next message. Waits for one; rejects with the abort reason on abort (nothing is taken then), and with
   * `DrainedError` once closed and nothing remains to fetch. Called by one loop only.
   */
  next(options: { readonly signal: AbortSignal }): Promise<Message>
  /** Applies a result to the backend. Rejects a foreign message, and a second settlement of one delivery. */
  settle(message: Message, result: Result, options: { readonly signal: AbortSignal }): Promise<void>
  /** Idempotent. What was queued can still be fetched. */
  close(): Promise<void>
  /** What this very instance, as configured, can do; undefined where it cannot. */
  capability<K extends CapabilityName>(name: K): Capabilities[K] | undefined
}

/** One backend adapter. It owns its connection, or borrows one and then never closes it. */
export interface Inlet {
  subscribe(config: SubscribeConfig, options?: { readonly signal?: AbortSignal }): Promise<Subscription>
  close(): Promise<void>
  readonly capabilities: ReadonlySet<CapabilityName>
}
