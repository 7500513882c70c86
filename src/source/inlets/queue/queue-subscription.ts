import { MillraceError } from '../../../core/error.js'
import { classLabel } from '../../../core/failure/failure.js'
import { isResult, type Result, type ResultOf } from '../../../core/stream/result.js'
import { DrainedError, InvalidResultError } from '../../../core/stream/stream-errors.js'
import { describeValue } from '../../../core/text/describe-value.js'
import { errorText } from '../../../core/text/error-text.js'
import type { Clock } from '../../../core/time/clock.js'
import type { MaybePromise, Ms } from '../../../core/time/time.js'
import { unreachable } from '../../../core/unreachable.js'
import type { PulledWork, Queue } from '../../../ports/ports.js'
import { AlreadySettledError, ForeignMessageError } from '../../errors.js'
import { LeaseLostError } from '../../loop/errors.js'
import type { Message } from '../../message/message.js'
import type { Capabilities, CapabilityName, Subscription } from '../subscription.js'
import { QueueMessage } from './queue-message.js'

export interface QueueSubscriptionOptions {
  readonly queue: Queue
  readonly clock: Clock
  readonly leaseMs: Ms
  readonly idlePollMs: Ms
  readonly capabilities: ReadonlySet<CapabilityName>
  readonly messageOf: (pulled: PulledWork) => QueueMessage
  /** Whose messages these are: those of any subscription of the inlet. */
  readonly origin: object
  readonly onClose: (sub: QueueSubscription) => void
}

/** A queue could not be asked. It may be able to answer again soon. */
export class QueueFetchError extends MillraceError {
  /** Makes a hopper try again. */
  readonly transient = true
  constructor(cause: unknown) {
    super('QUEUE_FETCH', `The queue could not be asked: ${errorText(cause)}. It is asked again.`, { cause })
  }
}

/** The first wait at an empty queue; each further one is twice as long, up to the option. */
const FIRST_POLL_MS = 10

/** Pulls from a queue by polling: a plain queue does not notify anyone of new work. */
export class QueueSubscription implements Subscription {
  readonly #o: QueueSubscriptionOptions
  readonly #can: Partial<Capabilities>
  /** What a queue gave beyond what it was asked for: leased all the same, so it comes first. */
  readonly #spare: QueueMessage[] = []
  #isClosed = false
  #wakeUp: (() => void) | undefined
  /** A caller asked for a poll, and none has happened since. */
  #isNudged = false

  constructor(options: QueueSubscriptionOptions) {
    this.#o = options
    this.#can = capabilitiesOf(options, {
      mine: (message) => this.#mine(message),
      pull: (limit, signal) => this.#pull(limit, signal),
      settle: (message, result) => this.settle(message, result),
    })
  }

  async next({ signal }: { readonly signal: AbortSignal }): Promise<Message> {
    const [message] = await this.#pull(1, signal)
    return message!
  }

  async settle(message: Message, result: Result, options?: { readonly signal: AbortSignal }): Promise<void> {
    const mine = this.#mine(message)
    if (!isResult(result)) throw new InvalidResultError(describeValue(result))
    // Its handler has settled it, or will.
    if (result.action === 'manual') return
    if (mine.state !== 'out') throw new AlreadySettledError(mine.subject, mine.cursor.toString())
    mine.state = 'settling'
    try {
      const applied = this.#apply(mine, result)
      if (applied !== undefined) await unlessAborted(applied, options)
      mine.state = result.action === 'inProgress' ? 'out' : 'settled'
    } catch (error) {
      // Not known to be settled: it may be tried again.
      mine.state = 'out'
      throw error
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#o.onClose(this)
    this.nudge()
  }

  capability<K extends CapabilityName>(name: K): Capabilities[K] | undefined {
    return this.#o.capabilities.has(name) ? this.#can[name] : undefined
  }

  /** @internal Something may be there: look now. */
  nudge(): void {
    this.#isNudged = true
    this.#wakeUp?.()
  }

  #mine(message: Message): QueueMessage {
    if (message instanceof QueueMessage && message.origin === this.#o.origin) return message
    throw new ForeignMessageError(message.subject)
  }

  #apply(message: QueueMessage, result: Result): MaybePromise<void> {
    const { queue, leaseMs } = this.#o
    const { pulled } = message
    switch (result.action) {
      case 'ack':
        return queue.ack(pulled)
      case 'nak':
        // Without a delay it keeps its place.
        return result.requeueMs === 0
          ? queue.fail(pulled)
          : queue.fail(pulled, Math.min(result.requeueMs, queue.maxDelay ?? Infinity))
      case 'term':
        return this.#bury(message, result)
      case 'inProgress':
        return keep(queue.heartbeat(pulled, leaseMs))
      case 'manual':
        return undefined
      default:
        return unreachable(result)
    }
  }

  /** The dead letter first: a crash in between leaves two copies rather than none. */
  async #bury(message: QueueMessage, result: ResultOf<'term'>): Promise<void> {
    const { queue } = this.#o
    const { pulled } = message
    if (result.deadLettered !== true && queue.deadLetter !== undefined && !message.isDeadLettered) {
      const error = result.error === undefined ? classLabel(result.class) : errorText(result.error)
      await queue.deadLetter(pulled.body, error)
      message.isDeadLettered = true
    }
    await queue.ack(pulled)
  }

  // ── fetching ──

  async #pull(limit: number, signal: AbortSignal): Promise<QueueMessage[]> {
    const { idlePollMs } = this.#o
    for (let waitMs = FIRST_POLL_MS; ; waitMs *= 2) {
      signal.throwIfAborted()
      const wasClosed = this.#isClosed
      this.#isNudged = false
      if (this.#spare.length === 0) this.#spare.push(...(await this.#pop(limit, signal)))
      if (this.#spare.length > 0) return this.#spare.splice(0, Math.max(1, limit))
      if (wasClosed) throw new DrainedError()
      if (!this.#isNudged) await this.#rest(Math.min(waitMs, idlePollMs), signal)
    }
  }

  /** Leases what is there. What comes after an abort is released: nothing would run it. */
  async #pop(limit: number, signal: AbortSignal): Promise<QueueMessage[]> {
    const { queue, leaseMs, messageOf } = this.#o
    const max = Math.max(1, Math.min(limit, queue.maxPop ?? Infinity))
    const popping = (async () => queue.pop(max, leaseMs))()
    let popped: PulledWork[]
    try {
      popped = await unlessAborted(popping, { signal })
    } catch (error) {
      if (!signal.aborted) throw new QueueFetchError(error)
      void popping.then((late) => Promise.all(late.map((pulled) => queue.fail(pulled)))).catch(() => undefined)
      throw error
    }
    return popped.map(messageOf)
  }

  #rest(ms: Ms, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        cancel()
        signal.removeEventListener('abort', onAbort)
        this.#wakeUp = undefined
      }
      const wakeUp = () => {
        end()
        resolve()
      }
      const onAbort = () => {
        end()
        reject(signal.reason)
      }
      const cancel = this.#o.clock.after(ms, wakeUp)
      signal.addEventListener('abort', onAbort)
      this.#wakeUp = wakeUp
    })
  }
}

/** What the capabilities need of the subscription. */
interface Inside {
  mine(message: Message): QueueMessage
  pull(limit: number, signal: AbortSignal): Promise<readonly Message[]>
  settle(message: Message, result: Result): Promise<void>
}

function capabilitiesOf({ queue, leaseMs }: QueueSubscriptionOptions, inside: Inside): Partial<Capabilities> {
  const { heartbeatMany, size } = queue
  return {
    batched: {
      nextBatch: (limit, { signal }) => inside.pull(limit, signal),
      settleBatch: async (messages, result) => {
        for (const message of messages) await inside.settle(message, result)
      },
    },
    leaseExtender: {
      leaseMs,
      extend: async (message) => {
        const { state, pulled } = inside.mine(message)
        return state === 'settled' ? false : queue.heartbeat(pulled, leaseMs)
      },
      ...(heartbeatMany === undefined
        ? {}
        : {
            extendMany: async (messages: readonly Message[]) => {
              const pulled = messages.map((message) => inside.mine(message).pulled)
              return heartbeatMany(pulled, leaseMs)
            },
          }),
    },
    ...(size === undefined ? {} : { lagReporter: { lag: async () => size() } }),
    nakSupport: 'native',
  }
}

/** A heartbeat as a settlement: a lost lease is a failure here. */
async function keep(beat: MaybePromise<void | boolean>): Promise<void> {
  if ((await beat) === false) throw new LeaseLostError()
}

/** Waits, but not beyond an abort. The signal is read only when there is something to wait for. */
function unlessAborted<T>(pending: MaybePromise<T>, options: { readonly signal: AbortSignal } | undefined): Promise<T> {
  if (options === undefined) return Promise.resolve(pending)
  return new Promise((resolve, reject) => {
    const { signal } = options
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    Promise.resolve(pending)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', onAbort))
  })
}
