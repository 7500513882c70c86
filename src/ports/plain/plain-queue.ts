import type { Ms } from '../../core/time.js'
import { GroupCommit } from '../group-commit.js'
import type { PulledWork, PushOptions, Queue } from '../ports.js'
import { called, manyOrEach, type Outcome, outcomeOf, type RetryPort, unwrap } from './call.js'

interface Body {
  readonly body: string
  readonly options: PushOptions
}

const MAX_BODIES = 500

/** A queue as the adapter uses it: always asynchronous; pushes and acks of the same turn travel together where it can. */
export class PlainQueue {
  readonly name: string
  readonly #port: Queue
  readonly #retry: RetryPort
  readonly #pushes: GroupCommit<Body, Outcome<void>> | undefined
  readonly #acks: GroupCommit<PulledWork, Outcome<void>> | undefined

  constructor(name: string, port: Queue, retry: RetryPort) {
    this.name = name
    this.#port = port
    this.#retry = retry
    // A call that hangs must hold up nobody else: what is asked for meanwhile travels on its own.
    const unbounded = { maxUnderWay: Infinity, maxUnsent: Infinity, maxUnsentBytes: Infinity, maxBatch: MAX_BODIES }
    if (port.pushMany !== undefined)
      this.#pushes = new GroupCommit({
        ...unbounded,
        flush: (bodies) =>
          this.#many(
            bodies,
            () => port.pushMany?.(bodies),
            (one) => this.#pushOne(one),
          ),
      })
    if (port.ackMany !== undefined)
      this.#acks = new GroupCommit({
        ...unbounded,
        flush: (pulled) =>
          this.#many(
            pulled,
            () => port.ackMany?.(pulled),
            (one) => called(() => port.ack(one)),
          ),
      })
  }

  /** A pop that returns this many may have left some behind. */
  full(max: number): number {
    return Math.min(max, this.#port.maxPop ?? Infinity)
  }

  /** Not repeated: what a lost reply had leased comes back by itself. */
  async pop(max: number, leaseMs: Ms): Promise<readonly PulledWork[]> {
    return (await called(() => this.#port.pop(max, leaseMs))) ?? []
  }

  async push(body: string, options: PushOptions): Promise<void> {
    const delay = Math.min(Math.max(0, options.delay ?? 0), this.#port.maxDelay ?? Infinity)
    const { delay: _, ...rest } = options
    // No key at all where there is no delay: simple queues look at the key, not at its value.
    const one: Body = { body, options: delay > 0 ? { ...rest, delay } : rest }
    if (this.#pushes !== undefined) return unwrap(await this.#pushes.add(one))
    return this.#retry(() => this.#pushOne(one))
  }

  async ack(pulled: PulledWork): Promise<void> {
    if (this.#acks !== undefined) return unwrap(await this.#acks.add(pulled))
    return this.#retry(() => called(() => this.#port.ack(pulled)))
  }

  fail(pulled: PulledWork, delayMs?: Ms): Promise<void> {
    return this.#retry(() =>
      called(() => (delayMs === undefined ? this.#port.fail(pulled) : this.#port.fail(pulled, Math.max(0, delayMs)))),
    )
  }

  /** Each lease has its own outcome; `false` says that it was lost, and nothing is said where the port does not know. */
  async heartbeats(pulled: readonly PulledWork[], leaseMs: Ms): Promise<readonly Outcome<boolean | void>[]> {
    const one = (lease: PulledWork) => called(() => this.#port.heartbeat(lease, leaseMs))
    if (this.#port.heartbeatMany === undefined) return Promise.all(pulled.map((lease) => outcomeOf(one(lease))))
    return manyOrEach(pulled, () => called(async () => (await this.#port.heartbeatMany?.(pulled, leaseMs)) ?? []), one)
  }

  get hasDeadLetters(): boolean {
    return this.#port.deadLetter !== undefined
  }

  async deadLetter(body: string, error: string): Promise<void> {
    await called(() => this.#port.deadLetter?.(body, error))
  }

  #pushOne({ body, options }: Body): Promise<void> {
    return called(() => this.#port.push(body, options))
  }

  #many<T>(
    batch: readonly T[],
    many: () => Promise<void> | void | undefined,
    each: (one: T) => Promise<void>,
  ): Promise<readonly Outcome<void>[]> {
    const all = async () => {
      await called(many)
      return batch.map(() => undefined)
    }
    return manyOrEach(batch, () => this.#retry(all), each)
  }
}
