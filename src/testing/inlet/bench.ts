import assert from 'node:assert/strict'
import type { Result } from '../../core/stream/result.js'
import type { MaybePromise, Ms } from '../../core/time/time.js'
import type { Inlet, SubscribeConfig, Subscription } from '../../source/inlets/subscription.js'
import type { Message } from '../../source/message/message.js'
import { holds, same } from '../conformance/check.js'
import type { TestTime } from '../conformance/time.js'

/** An inlet as the suite needs it. */
export interface InletUnderTest {
  readonly inlet: Inlet
  /** Puts values on the stream, in this order, as any producer would. Resolves when they can be delivered. */
  publish(...values: readonly string[]): MaybePromise<void>
  /** What to subscribe to. Default: `{ topics: ['conformance'] }`. */
  readonly config?: SubscribeConfig
  close?(): MaybePromise<void>
}

const utf8 = new TextDecoder()

export const textIn = (message: Message): string => utf8.decode(message.value)

/** What a clause gets: an empty stream with a subscription to it, and its time. */
export class InletBench {
  readonly time: TestTime
  readonly leaseMs: Ms
  readonly inlet: Inlet
  readonly sub: Subscription
  readonly #subject: InletUnderTest
  readonly #fresh: () => Promise<InletBench>

  constructor(
    subject: InletUnderTest,
    sub: Subscription,
    time: TestTime,
    leaseMs: Ms,
    fresh: () => Promise<InletBench>,
  ) {
    this.#subject = subject
    this.inlet = subject.inlet
    this.sub = sub
    this.time = time
    this.leaseMs = leaseMs
    this.#fresh = fresh
  }

  /** Another stream of the same kind, with nothing in common. */
  fresh(): Promise<InletBench> {
    return this.#fresh()
  }

  subscribe(): Promise<Subscription> {
    return this.inlet.subscribe(this.#subject.config ?? { topics: ['conformance'] })
  }

  async publish(...values: readonly string[]): Promise<void> {
    await this.#subject.publish(...values)
  }

  /** The next message; fails when none comes. */
  async next(what: string, sub: Subscription = this.sub): Promise<Message> {
    const message = await this.#nextWithin(sub, this.time.ms(20))
    holds(message !== undefined, `${what} is delivered`)
    return message
  }

  /** The values of the next `n` messages, and the messages. */
  async take(n: number, what: string, sub: Subscription = this.sub): Promise<Message[]> {
    const messages: Message[] = []
    while (messages.length < n) messages.push(await this.next(`${what} (${messages.length + 1} of ${n})`, sub))
    return messages
  }

  /** Nothing is delivered for `ticks`. */
  async nothing(ticks: number, when: string, sub: Subscription = this.sub): Promise<void> {
    const message = await this.#nextWithin(sub, this.time.ms(ticks))
    same(message === undefined ? [] : [textIn(message)], [], `values delivered ${when}`)
  }

  async settle(message: Message, result: Result, sub: Subscription = this.sub): Promise<void> {
    await sub.settle(message, result, { signal: new AbortController().signal })
  }

  /** Rejects, and with what. */
  async rejection(promise: Promise<unknown>, what: string): Promise<unknown> {
    let found: { readonly error: unknown } | 'resolved' | undefined
    promise.then(
      () => {
        found = 'resolved'
      },
      (error: unknown) => {
        found = { error }
      },
    )
    const hasEnded = await this.time.eventually(() => found !== undefined)
    if (typeof found === 'object') return found.error
    const how = hasEnded ? 'it resolves' : 'it neither resolves nor rejects'
    throw new assert.AssertionError({ message: `not so: ${what} rejects; ${how}` })
  }

  /** Waits in steps: one jump would pass over a poll or a lease that is due in between. */
  async #nextWithin(sub: Subscription, ms: Ms): Promise<Message | undefined> {
    const stop = new AbortController()
    let message: Message | undefined
    let failure: { readonly error: unknown } | undefined
    let hasEnded = false
    sub.next({ signal: stop.signal }).then(
      (found) => {
        hasEnded = true
        message = found
      },
      (error: unknown) => {
        hasEnded = true
        if (!stop.signal.aborted) failure = { error }
      },
    )
    const steps = 20
    for (let i = 0; i < steps && !hasEnded; i += 1) {
      await this.time.quiet()
      if (!hasEnded) await this.time.pass(ms / steps)
    }
    stop.abort(new Error('the clause has waited long enough'))
    holds(await this.time.eventually(() => hasEnded), 'next ends when its signal aborts')
    if (failure !== undefined) throw failure.error
    return message
  }
}
