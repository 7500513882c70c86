import type { At, MaybePromise, Ms } from '../core/time/time.js'

/** How a body enters a queue. */
export interface PushOptions {
  /** Hidden until this long from now. Default 0. A backend may cap a single delay; the engine checks again on arrival. */
  readonly delay?: Ms
  /** While a body pushed with this key is still in the queue (visible, delayed or leased), another push is a no-op. */
  readonly dedupeKey?: string
  /** Higher is delivered first. Default 0. Queues that cannot order their backlog ignore it. */
  readonly priority?: number
}

/** One lease of one body. */
export interface PulledWork {
  readonly body: string
  /** The backend's lease token: handed back to `heartbeat`, `ack` and `fail`. */
  readonly handle: unknown
  /** Delivery number of this message: 1 at first, +1 after a lapsed lease and after a `fail`. */
  readonly attempt: number

  // Beyond the seed's contract, not enumerable on ours.
  /** Names the message: the same in every delivery and in every process, and never that of another message. */
  readonly id?: string | undefined
  /** How many deliveries of the message had begun to run before this one. Only where `Queue.start` counts them. */
  readonly starts?: number | undefined
  /** What the last `fail` kept with the message. */
  readonly note?: string | undefined
}

/** What was dead-lettered on a queue. */
export interface DeadLetter {
  /** That of the message it was, where the message had one. */
  readonly id: string
  readonly body: string
  readonly error: string
  readonly at: At
  /** What else its writer kept with it; opaque to the backend. */
  readonly detail?: string | undefined
  /** Where it stands in the list: the cursor behind it. */
  readonly cursor: string
}

/** A body to dead-letter. One with an id replaces the letter that has the same id: repeating it is harmless. */
export type NewDeadLetter = Pick<DeadLetter, 'body' | 'error' | 'detail'> & { readonly id?: string | undefined }

/** The dead letters of a queue, for people and tools. */
export interface DeadLetterSink {
  add(letter: NewDeadLetter): MaybePromise<void>
  /** In the order in which they were dead-lettered. */
  list(query: { readonly after?: string; readonly limit: number }): MaybePromise<readonly DeadLetter[]>
  count(): MaybePromise<number>
  /**
   * Moves those that are still there back to their queue, in one atomic step: due now, with their ids, and as if they had never
   * been delivered. Answers how many.
   */
  redrive(letters: readonly DeadLetter[]): MaybePromise<number>
  /** Removes those that are still there. Answers how many. */
  discard(letters: readonly DeadLetter[]): MaybePromise<number>
}

/**
 * The durable work log: at least once, with leases. A popped body is hidden until its lease lapses; `heartbeat` extends
 * the lease, `ack` removes the body, `fail` gives it back. A stale or unknown handle makes all three silent no-ops.
 *
 * A port is a bag of closures: its methods are called without `this`, and `{ ...queue, pop: mine }` is a queue too.
 */
export interface Queue {
  push(body: string, options?: PushOptions): MaybePromise<void>
  /** Frees lapsed leases, then leases at most `max` visible bodies for `visibility` ms. */
  pop(max: number, visibility: Ms): MaybePromise<PulledWork[]>
  /** The lease now ends `visibility` ms from now. `false` says that it was lost; nothing is said where that is not known. */
  heartbeat(pulled: PulledWork, visibility: Ms): MaybePromise<void | boolean>
  ack(pulled: PulledWork): MaybePromise<void>
  /**
   * Ends the lease; the body is visible again after `delay`. A put-back, not a failure of the job. A queue with `start` also keeps
   * the `note`, for the next delivery.
   */
  fail(pulled: PulledWork, delay?: Ms, note?: string): MaybePromise<void>
  /** Keeps a copy in the dead-letter sink. Does not remove the leased message. */
  deadLetter?(body: string, error: string): MaybePromise<void>
  /** Cheap and approximate; may count leased bodies. */
  size?(): MaybePromise<number>

  // Optional capabilities: used where present, never required.
  pushMany?(bodies: readonly { readonly body: string; readonly options?: PushOptions }[]): MaybePromise<void>
  ackMany?(pulled: readonly PulledWork[]): MaybePromise<void>
  heartbeatMany?(pulled: readonly PulledWork[], visibility: Ms): MaybePromise<readonly (boolean | void)[]>
  /**
   * These deliveries begin to run: their messages count one more start, however often this is called for one delivery. Answers
   * which leases are still held. A queue that has it gives every message an `id` and tells its `starts`.
   */
  start?(pulled: readonly PulledWork[]): MaybePromise<readonly boolean[]>
  /** What was dead-lettered here, where it can be listed. */
  readonly deadLetters?: DeadLetterSink
  /** The largest `max` that makes a difference: 10 for SQS. A round that returns this many counts as full. */
  readonly maxPop?: number
  /** The longest single delay that is honoured. */
  readonly maxDelay?: Ms
}

/** Best-effort fan-out of strings to every subscriber in every process, the publisher's own included. Loss is allowed. */
export interface PubSub {
  publish(message: string): MaybePromise<void>
  /** Returns an idempotent unsubscribe. A listener that throws stops neither the others nor the publisher. */
  subscribe(listener: (message: string) => void): () => void
}

/** Keys and values with expiry. `ttl` undefined or 0 means forever; an entry is gone when its end is not after now. */
export interface Store {
  get(key: string): MaybePromise<string | undefined>
  /** Replaces value and expiry. */
  set(key: string, value: string, ttl?: Ms): MaybePromise<void>
  delete?(key: string): MaybePromise<void>
  /** Atomic: true for exactly one of any set of concurrent callers. */
  setIfNotExists(key: string, value: string, ttl?: Ms): MaybePromise<boolean>
  /** Atomic; absent counts as 0; refreshes the expiry when given; returns the new value. */
  increment?(key: string, by: number, ttl?: Ms): MaybePromise<number>

  // Optional capabilities: used where present, never required.
  /** Atomically: if `marker` is absent, set it and add `by` to `counter`. */
  incrementOnce?(
    counter: string,
    marker: string,
    by: number,
    ttl?: Ms,
  ): MaybePromise<{ readonly value: number; readonly applied: boolean }>
  /** Atomically: if the value is `expected` (undefined: absent), make it `next`. */
  compareAndSet?(key: string, expected: string | undefined, next: string, ttl?: Ms): MaybePromise<boolean>
  getMany?(keys: readonly string[]): MaybePromise<readonly (string | undefined)[]>
  setMany?(entries: readonly { readonly key: string; readonly value: string; readonly ttl?: Ms }[]): MaybePromise<void>
}

/** The three ports an engine runs on. */
export interface Ports {
  readonly queue: Queue
  readonly pubsub: PubSub
  readonly store: Store
}

/** The database of a backend. A pool that was given is passed on, in `pool`. */
export type BackendLocation =
  | { readonly kind: 'sqlite'; readonly file: string }
  | {
      readonly kind: 'postgres'
      readonly schema: string
      readonly connectionString: string | undefined
      readonly listenConnectionString: string | undefined
      readonly pool: unknown
    }

/**
 * Three ports made together. On our own backends everything beyond the three is non-enumerable, so that a spread
 * (`createWork({ ...backend, store: mine })`) carries the plain ports and nothing that no longer holds.
 */
export interface Backend extends Ports {
  /** Ends connections and timers that this backend opened. */
  close?(): Promise<void>
  /** Where everything is kept, for what wants to keep its own beside it. */
  location?(): BackendLocation
  /** A further queue that shares this backend's atomic commit. The default queue is named `default`. */
  named?(queue: string): Queue
}
