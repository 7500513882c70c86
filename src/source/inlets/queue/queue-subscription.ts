import { MillraceError } from '../../../core/error.js'
import { classLabel } from '../../../core/failure/failure.js'
import { GroupCommit } from '../../../core/group-commit.js'
import { isResult, type Result, type ResultOf } from '../../../core/stream/result.js'
import { DrainedError, InvalidResultError } from '../../../core/stream/stream-errors.js'
import { describeValue } from '../../../core/text/describe-value.js'
import { errorName, errorText } from '../../../core/text/error-text.js'
import type { Clock } from '../../../core/time/clock.js'
import type { MaybePromise, Ms } from '../../../core/time/time.js'
import { unreachable } from '../../../core/unreachable.js'
import { writeLetterDetail } from '../../../ports/letter-detail.js'
import type { PulledWork, Queue } from '../../../ports/ports.js'
import { AlreadySettledError, ForeignMessageError, hasCode } from '../../errors.js'
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
  #isWoken = false

  constructor(options: QueueSubscriptionOptions) {
    this.#o = options
    this.#can = capabilitiesOf(options, {
      mine: (message) => this.#mine(message),
      pull: (limit, signal) => this.#pull(limit, signal),
      settle: (message, result) => this.settle(message, result),
      release: (message) => this.#release(message),
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

  /** Back in its place. It has not started, so nothing counts. */
  async #release(message: Message): Promise<void> {
    const mine = this.#mine(message)
    if (mine.state !== 'out') throw new AlreadySettledError(mine.subject, mine.cursor.toString())
    mine.state = 'settling'
    try {
      await this.#o.queue.fail(mine.pulled)
      mine.state = 'settled'
    } catch (error) {
      mine.state = 'out'
      throw error
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#o.onClose(this)
    this.wake()
  }

  capability<K extends CapabilityName>(name: K): Capabilities[K] | undefined {
    return this.#o.capabilities.has(name) ? this.#can[name] : undefined
  }

  /** @internal Something may be there: look now. */
  wake(): void {
    this.#isWoken = true
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
        return this.#putBack(message, result)
      case 'term':
        return this.#deadLetter(message, result)
      case 'inProgress':
        return keep(queue.heartbeat(pulled, leaseMs))
      case 'manual':
        return undefined
      default:
        return unreachable(result)
    }
  }

  /** Its handler said so, so it has run: where starts count, this is one. */
  #putBack(message: QueueMessage, { requeueMs, note }: ResultOf<'nak'>): MaybePromise<void> {
    const { queue } = this.#o
    // Without a delay it keeps its place.
    const delayMs = requeueMs === 0 ? undefined : Math.min(requeueMs, queue.maxDelay ?? Infinity)
    if (queue.start === undefined) return queue.fail(message.pulled, delayMs)
    const fail = () => queue.fail(message.pulled, delayMs, note)
    if (message.isStarted) return fail()
    return (async () => {
      await queue.start?.([message.pulled])
      await fail()
    })()
  }

  /** The dead letter first: a crash in between leaves two copies rather than none. */
  async #deadLetter(message: QueueMessage, result: ResultOf<'term'>): Promise<void> {
    const { queue } = this.#o
    const { pulled } = message
    if (result.deadLettered !== true && queue.deadLetter !== undefined && !message.isDeadLettered) {
      const error = result.error === undefined ? classLabel(result.class) : errorText(result.error)
      const { id, body } = pulled
      if (queue.deadLetters === undefined || id === undefined) await queue.deadLetter(body, error)
      else await queue.deadLetters.add({ id, body, error, detail: detailOf(message, result) })
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
      this.#isWoken = false
      if (this.#spare.length === 0) this.#spare.push(...(await this.#pop(limit, signal)))
      if (this.#spare.length > 0) return this.#spare.splice(0, Math.max(1, limit))
      if (wasClosed) throw new DrainedError()
      if (!this.#isWoken) await this.#rest(Math.min(waitMs, idlePollMs), signal)
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
      // A backend in native use stays so: to ask again would only delay the news.
      if (!signal.aborted) throw hasCode(error, 'WRONG_MODE') ? error : new QueueFetchError(error)
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
  release(message: Message): Promise<void>
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
    ...(queue.start === undefined
      ? {}
      : {
          starter: { start: startWith(queue.start, inside) },
          releaser: { release: (message: Message) => inside.release(message) },
          identity: true as const,
        }),
    ...(size === undefined ? {} : { lagReporter: { lag: async () => size() } }),
    nakSupport: 'native',
  }
}

/**
 * Starts of one turn travel in one call; those that begin while it is in flight share the next, and what has ended by then needs
 * none. A first delivery begins while its start is being written; a later one may be what ended its process, so it waits until it counts.
 */
function startWith(start: NonNullable<Queue['start']>, inside: Inside): Capabilities['starter']['start'] {
  const starts = new GroupCommit<QueueMessage, boolean>({
    async flush(batch) {
      const out = batch.filter(({ state }) => state === 'out')
      const held = out.length === 0 ? [] : await start(out.map(({ pulled }) => pulled))
      for (const [i, message] of out.entries()) message.isStarted = held[i] === true
      return batch.map(({ isStarted, state }) => isStarted || state !== 'out')
    },
  })
  return (messages) => {
    const mine = messages.map((message) => inside.mine(message))
    const counted = starts.addMany(mine)
    if (mine.some(({ pulled }) => pulled.attempt > 1)) return counted
    // A nak says it again, and a lapse without it is what is not counted.
    counted.catch(() => undefined)
    return mine.map(() => true)
  }
}

/** What is kept with a dead letter that no middleware wrote. */
function detailOf(message: QueueMessage, result: ResultOf<'term'>): string {
  const { subject, deliveryCount: attempts } = message
  return writeLetterDetail({ class: result.class, subject, attempts, errorName: errorName(result.error) })
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
