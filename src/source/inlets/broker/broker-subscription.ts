import { isResult, type Result, type ResultOf } from '../../../core/stream/result.js'
import { DrainedError, InvalidResultError } from '../../../core/stream/stream-errors.js'
import { describeValue } from '../../../core/text/describe-value.js'
import type { Clock } from '../../../core/time/clock.js'
import { LazySignal } from '../../../core/time/lazy-signal.js'
import { isPromise, type MaybePromise, type Ms } from '../../../core/time/time.js'
import { unreachable } from '../../../core/unreachable.js'
import { AlreadySettledError, ForeignMessageError } from '../../errors.js'
import { LeaseLostError } from '../../loop/errors.js'
import type { Message } from '../../message/message.js'
import type { Capabilities, CapabilityName, Subscription } from '../subscription.js'
import type { BrokerMessage } from './broker-message.js'

/** What became of a settlement. `gone`: the broker has nothing to settle, because it is settled already. */
export type Applied = 'applied' | 'lost' | 'gone'

/** What differs from broker to broker. Everything else about a subscription is written once, in {@link BrokerSubscription}. */
export interface BrokerAdapter<M extends BrokerMessage> {
  /** What is there now, at most `max`, without waiting for more. */
  pull(max: number): Promise<readonly M[]>
  /** Resolves when there may be something to pull: too early is harmless, too late is what `idleMs` is for. Never rejects. */
  arrival(): Promise<void> | undefined
  /** The caller that waited for it has gone. What has come meanwhile is for the next pull. Never rejects. */
  abandon?(): Promise<void>
  /** How long to wait at most before pulling again. */
  idleMs(): Ms
  ack(message: M): MaybePromise<Applied>
  nak(message: M, result: ResultOf<'nak'>): MaybePromise<Applied>
  term(message: M, result: ResultOf<'term'>): MaybePromise<Applied>
  extend(messages: readonly M[]): Promise<readonly boolean[]>
  /** Back to their place, as if they had not been delivered, as well as the broker can. */
  release(messages: readonly M[]): Promise<void>
  /** Nothing is waited for any more. What is out can still be settled. */
  close(): Promise<void>
}

/** What a {@link BrokerSubscription} is made of. */
export interface BrokerSubscriptionOptions<M extends BrokerMessage> {
  readonly clock: Clock
  readonly adapter: BrokerAdapter<M>
  /** Whose messages these are: those of any subscription of the inlet. */
  readonly origin: object
  /** Capabilities beside those that are written here. */
  readonly capabilities: Partial<Capabilities>
  /** Which of all these the inlet claims. */
  readonly claims: ReadonlySet<CapabilityName>
  readonly leaseMs: Ms
  readonly isPaused: () => boolean
  readonly onClose: (sub: BrokerSubscription<M>) => void
}

/**
 * A subscription over the adapter of a broker: waiting, aborting, draining, and the life of a delivery, which is settled once, by
 * the inlet that delivered it, while its lease is held.
 */
export class BrokerSubscription<M extends BrokerMessage> implements Subscription {
  readonly #o: BrokerSubscriptionOptions<M>
  readonly #can: Partial<Capabilities>
  #isClosed = false
  #wakeUp: (() => void) | undefined
  /** A caller asked for a pull, and none has happened since. */
  #isNudged = false

  constructor(options: BrokerSubscriptionOptions<M>) {
    this.#o = options
    this.#can = { ...this.#common(), ...options.capabilities }
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  async next({ signal }: { readonly signal: AbortSignal }): Promise<Message> {
    const [message] = await this.#take(1, signal)
    return message!
  }

  async settle(message: Message, result: Result, options?: { readonly signal: AbortSignal }): Promise<void> {
    const mine = this.mine(message)
    if (!isResult(result)) throw new InvalidResultError(describeValue(result))
    // Its handler has settled it, or will.
    if (result.action === 'manual') return
    this.#checkOut(mine)
    mine.state = 'settling'
    mine.tries += 1
    try {
      const applied = await unlessAborted(this.#apply(mine, result), options)
      if (applied !== 'applied') throw this.#refusalOf(mine, applied)
      mine.state = result.action === 'inProgress' ? 'out' : 'settled'
    } catch (error) {
      // Not known to be settled: it may be tried again.
      if (mine.state === 'settling') mine.state = 'out'
      throw error
    }
    // It can be delivered again now, also to this subscription.
    if (result.action === 'nak') this.nudge()
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#o.onClose(this)
    this.nudge()
    await this.#o.adapter.close()
  }

  capability<K extends CapabilityName>(name: K): Capabilities[K] | undefined {
    return this.#o.claims.has(name) ? this.#can[name] : undefined
  }

  /** @internal Something may be there: pull now. */
  nudge(): void {
    this.#isNudged = true
    this.#wakeUp?.()
  }

  /** @internal The message as this inlet delivered it. */
  mine(message: Message): M {
    // Only our own messages have an origin that is this inlet, so M is what it is.
    if ((message as Partial<BrokerMessage>).origin === this.#o.origin) return message as M
    throw new ForeignMessageError(message.subject)
  }

  #checkOut(mine: M): void {
    if (mine.state === 'out') return
    if (mine.state === 'lost') throw new LeaseLostError()
    throw new AlreadySettledError(mine.subject, mine.cursor.toString())
  }

  #apply(mine: M, result: Exclude<Result, ResultOf<'manual'>> | Result): MaybePromise<Applied> {
    const { adapter } = this.#o
    switch (result.action) {
      case 'ack':
        return adapter.ack(mine)
      case 'nak':
        return adapter.nak(mine, result)
      case 'term':
        return adapter.term(mine, result)
      case 'inProgress':
        return adapter.extend([mine]).then(([isHeld]) => (isHeld === true ? 'applied' : 'lost'))
      case 'manual':
        return 'applied'
      default:
        return unreachable(result)
    }
  }

  #refusalOf(mine: M, applied: 'lost' | 'gone'): Error {
    // At the first try it was another consumer that settled it, after our lease; at a later one it was an earlier try of ours.
    if (applied === 'gone' && mine.tries > 1) {
      mine.state = 'settled'
      return new AlreadySettledError(mine.subject, mine.cursor.toString())
    }
    mine.state = 'lost'
    return new LeaseLostError()
  }

  #common(): Partial<Capabilities> {
    const { adapter, leaseMs } = this.#o
    const extend = async (messages: readonly Message[]): Promise<readonly boolean[]> => {
      const mine = messages.map((message) => this.mine(message))
      const held = mine.filter(({ state }) => state === 'out' || state === 'settling')
      const words = new Map((held.length === 0 ? [] : await adapter.extend(held)).map((word, i) => [held[i]!, word]))
      return mine.map((message) => {
        const isHeld = words.get(message) === true
        if (!isHeld && message.state === 'out') message.state = 'lost'
        return isHeld
      })
    }
    return {
      batched: {
        nextBatch: (limit, { signal }) => this.#take(limit, signal),
        settleBatch: async (messages, result) => {
          await Promise.all(messages.map((message) => this.settle(message, result)))
        },
      },
      leaseExtender: { leaseMs, extend: async (message) => (await extend([message]))[0]!, extendMany: extend },
      releaser: {
        release: async (message) => {
          const mine = this.mine(message)
          this.#checkOut(mine)
          mine.state = 'settling'
          try {
            await adapter.release([mine])
            mine.state = 'settled'
          } catch (error) {
            mine.state = 'out'
            throw error
          }
          this.nudge()
        },
      },
      nakSupport: 'native',
    }
  }

  // ── fetching ──

  async #take(limit: number, signal: AbortSignal): Promise<readonly M[]> {
    const max = Math.max(1, Math.floor(limit))
    for (;;) {
      signal.throwIfAborted()
      const wasClosed = this.#isClosed
      this.#isNudged = false
      const found = this.#o.isPaused() ? [] : await this.#pull(max, signal)
      if (found.length > 0) return found
      if (wasClosed) throw new DrainedError()
      if (!this.#isNudged) await this.#rest(signal)
    }
  }

  /** What comes after an abort is given back: nothing would run it. */
  async #pull(max: number, signal: AbortSignal): Promise<readonly M[]> {
    const { adapter } = this.#o
    const pulling = adapter.pull(max)
    try {
      return await unlessAborted(pulling, { signal })
    } catch (error) {
      if (signal.aborted)
        void pulling.then((late) => (late.length === 0 ? undefined : adapter.release(late))).catch(() => undefined)
      throw error
    }
  }

  #rest(signal: AbortSignal): Promise<void> {
    const { adapter, clock } = this.#o
    return new Promise((resolve, reject) => {
      const end = () => {
        cancel()
        signal.removeEventListener('abort', onAbort)
        if (this.#wakeUp === wakeUp) this.#wakeUp = undefined
      }
      const wakeUp = () => {
        end()
        resolve()
      }
      const onAbort = () => {
        end()
        void adapter.abandon?.()
        reject(signal.reason)
      }
      const cancel = clock.after(adapter.idleMs(), wakeUp)
      signal.addEventListener('abort', onAbort)
      this.#wakeUp = wakeUp
      // What is held back is not waited for: it would have arrived already.
      if (!this.#o.isPaused()) void adapter.arrival()?.then(wakeUp)
    })
  }
}

/** Waits, but not beyond an abort. */
function unlessAborted<T>(
  pending: MaybePromise<T>,
  options: { readonly signal: AbortSignal } | undefined,
): MaybePromise<T> {
  if (options === undefined || !isPromise(pending)) return pending
  return new Promise((resolve, reject) => {
    const listenNoMore = onAbort(options, reject)
    pending.then(
      (value) => {
        listenNoMore()
        resolve(value)
      },
      (error: unknown) => {
        listenNoMore()
        reject(error)
      },
    )
  })
}

/** The settlements of a loop bring a signal that is not made unless it is asked for: it is told of an abort all the same. */
function onAbort(options: { readonly signal: AbortSignal }, listener: (reason: unknown) => void): () => void {
  if (options instanceof LazySignal) {
    options.whenAborted(listener)
    return () => options.whenAborted(undefined)
  }
  const { signal } = options
  const heard = () => listener(signal.reason)
  if (signal.aborted) heard()
  signal.addEventListener('abort', heard, { once: true })
  return () => signal.removeEventListener('abort', heard)
}
