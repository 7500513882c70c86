import { newToken } from '../../core/ids.js'
import type { ResultOf } from '../../core/stream/result.js'
import { errorMessage } from '../../core/text/error-text.js'
import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import type { NatsMessageLike } from '../../drivers/nats/index.js'
import type { Applied, BrokerAdapter } from '../inlets/broker/broker-subscription.js'
import { wordsToWrite } from '../inlets/broker/letter-words.js'
import { StreamFetchError } from '../inlets/broker/stream-fetch-error.js'
import type { Headers } from '../message/headers.js'
import type { JsApi } from './js-api.js'
import type { JsConsumer } from './js-consumer.js'
import type { JsLetterBox } from './js-letters.js'
import { deliveryInfo, JsMessage } from './js-message.js'

export interface JsAdapterOptions {
  readonly clock: Clock
  readonly api: JsApi
  readonly consumer: JsConsumer
  readonly origin: object
  readonly leaseMs: Ms
  readonly idlePollMs: Ms
  readonly timeoutMs: Ms
  readonly letters: JsLetterBox | undefined
  readonly keyOf: ((subject: string, headers: Headers) => string | undefined) | undefined
}

/** A pull that the server has not answered in full. */
interface Pull {
  readonly reply: string
  left: number
  readonly endsAt: Ms
}

/** Where the answers to pulls arrive. */
interface Inbox {
  readonly prefix: string
  readonly drain: () => Promise<void>
}

/** Most messages that one pull asks for. */
const MOST_PER_PULL = 500
/** How much later than the server this process gives a pull up. */
const GRACE_MS: Ms = 500
/** How long the end of a stream is waited for. */
const END_MS: Ms = 2_000
const NS_PER_MS = 1_000_000

/**
 * A pull consumer, as its subscription needs it. At most one pull is open, for no more messages than were asked for; what comes is kept
 * until the next call, so an abort takes nothing.
 */
export class JsAdapter implements BrokerAdapter<JsMessage> {
  readonly #o: JsAdapterOptions
  /** Delivered to this process, and not handed out yet. */
  #arrived: JsMessage[] = []
  #pull: Pull | undefined
  #pulls = 0
  #inbox: Inbox | undefined
  #waiters: (() => void)[] = []
  #isClosed = false
  #isEnded = false
  readonly #stopListening: () => void

  constructor(options: JsAdapterOptions) {
    this.#o = options
    this.#stopListening = options.api.onReconnect(() => {
      // What was asked for went with the line.
      this.#pull = undefined
      this.#wake()
    })
  }

  // ── fetching ──

  async pull(max: number): Promise<readonly JsMessage[]> {
    if (this.#isEnded) return []
    const most = Math.min(max, MOST_PER_PULL)
    const here = this.#take(most)
    if (here.length > 0) return here
    try {
      await this.#ask(most)
      if (this.#isClosed) await this.#answered()
    } catch (error) {
      throw new StreamFetchError(this.#o.consumer.stream, error)
    }
    return this.#take(most)
  }

  arrival(): Promise<void> | undefined {
    if (this.#arrived.length > 0) return Promise.resolve()
    return new Promise((resolve) => this.#waiters.push(resolve))
  }

  idleMs(): Ms {
    const { clock, idlePollMs } = this.#o
    const untilEnd = this.#pull === undefined ? idlePollMs : this.#pull.endsAt - clock.monotonic()
    return Math.max(1, Math.min(untilEnd, idlePollMs + GRACE_MS))
  }

  #take(most: number): JsMessage[] {
    const now = this.#o.clock.monotonic()
    // Its lease has lapsed while no call asked for it: the server delivers it again.
    this.#arrived = this.#arrived.filter((message) => message.leasedUntil > now && this.#isCurrent(message))
    return this.#arrived.splice(0, most)
  }

  async #ask(max: number): Promise<void> {
    const { clock, api, consumer, idlePollMs } = this.#o
    await consumer.ready()
    const connection = await api.connection()
    // Sent now, it would be sent with others when the line is there again, and bring as many times as much.
    if (!api.isConnected) return
    const now = clock.monotonic()
    if (this.#pull !== undefined && now < this.#pull.endsAt && !this.#isClosed) return
    this.#inbox ??= this.#listen(connection)
    this.#pulls += 1
    const reply = `${this.#inbox.prefix}.${this.#pulls}`
    const wait = this.#isClosed ? { no_wait: true } : { expires: idlePollMs * NS_PER_MS }
    this.#pull = { reply, left: max, endsAt: now + (this.#isClosed ? END_MS : idlePollMs + GRACE_MS) }
    connection.publish(
      `$JS.API.CONSUMER.MSG.NEXT.${consumer.stream}.${consumer.name}`,
      JSON.stringify({ batch: max, ...wait }),
      { reply },
    )
  }

  #listen(connection: Awaited<ReturnType<JsApi['connection']>>): Inbox {
    const { options } = connection as { readonly options?: { readonly inboxPrefix?: string } }
    const prefix = `${options?.inboxPrefix ?? '_INBOX'}.${newToken().replaceAll(/[^A-Za-z0-9]/g, '')}`
    const sub = connection.subscribe(`${prefix}.*`, {
      callback: (error, message) => {
        if (error === null) this.#received(message)
      },
    })
    return { prefix, drain: () => sub.drain() }
  }

  #received(raw: NatsMessageLike): void {
    const { clock, consumer, origin, leaseMs, keyOf } = this.#o
    const { reply } = raw
    const info = reply === undefined ? undefined : deliveryInfo(reply)
    if (reply === undefined || info === undefined) {
      this.#status(raw)
      return
    }
    if (this.#pull !== undefined) {
      this.#pull.left -= 1
      if (this.#pull.left <= 0) this.#pull = undefined
    }
    const lease = { until: clock.monotonic() + leaseMs, epoch: consumer.epoch }
    const message = new JsMessage(origin, consumer.stream, { ...picked(raw), reply }, info, lease, keyOf)
    this.#arrived.push(message)
    this.#wake()
  }

  /** An answer without a message: the pull is over. */
  #status({ subject, headers }: NatsMessageLike): void {
    const code = headers?.code ?? 0
    // A heartbeat, or flow control.
    if (code === 100) return
    // 404: nothing is there. 408: its time is up. 409: a limit, or the consumer was deleted. 503: nothing answers to its name.
    if (code === 503 || (code === 409 && /deleted/i.test(headers?.description ?? ''))) this.#o.consumer.lost()
    if (this.#pull?.reply === subject || code === 503) this.#pull = undefined
    this.#wake()
  }

  /** The open pull has brought something, or has ended. */
  async #answered(): Promise<void> {
    const until = this.#o.clock.monotonic() + END_MS
    while (this.#pull !== undefined && this.#arrived.length === 0) {
      const left = until - this.#o.clock.monotonic()
      if (left <= 0) return
      await Promise.race([this.arrival(), this.#o.clock.sleep(left)])
    }
  }

  #wake(): void {
    for (const wakeUp of this.#waiters.splice(0)) wakeUp()
  }

  // ── settling ──

  ack(message: JsMessage): Promise<Applied> {
    return this.#apply(message, '+ACK')
  }

  nak(message: JsMessage, { requeueMs }: ResultOf<'nak'>): Promise<Applied> {
    const delay = requeueMs === 0 ? '' : ` ${JSON.stringify({ delay: Math.ceil(requeueMs) * NS_PER_MS })}`
    return this.#apply(message, `-NAK${delay}`)
  }

  /** The letter first: a crash in between leaves the message, and the letter is known by its id when it is written again. */
  async term(message: JsMessage, result: ResultOf<'term'>): Promise<Applied> {
    const { letters, consumer, api } = this.#o
    if (!this.#isHeld(message)) return 'lost'
    if (letters !== undefined) {
      const words = wordsToWrite(message, result, consumer.name)
      if (words !== undefined) await letters.write(message, words)
    }
    const why = result.error === undefined ? '' : errorMessage(result.error)
    const { info } = await api.connection()
    // Older servers do not know a reason, and would not read the command behind which it stands.
    const isReasoned = why !== '' && isAtLeast(info?.version ?? '', 2, 11)
    return this.#apply(message, isReasoned ? `+TERM ${why.replaceAll(/\s+/g, ' ').slice(0, 500)}` : '+TERM')
  }

  async extend(messages: readonly JsMessage[]): Promise<readonly boolean[]> {
    const { clock, leaseMs } = this.#o
    return Promise.all(
      messages.map(async (message) => {
        const askedAt = clock.monotonic()
        if ((await this.#apply(message, '+WPI')) !== 'applied') return false
        message.leasedUntil = askedAt + leaseMs
        return true
      }),
    )
  }

  async release(messages: readonly JsMessage[]): Promise<void> {
    await Promise.all(messages.map((message) => this.#apply(message, '-NAK')))
  }

  /** No call waits any more: a message that came now would lie here. What has come stays for the next call. */
  async abandon(): Promise<void> {
    const inbox = this.#inbox
    this.#inbox = undefined
    this.#pull = undefined
    // A pull whose inbox has no listener is passed over by the server. What is under way still arrives.
    await inbox?.drain().catch(() => undefined)
  }

  /** What lies here goes back: perhaps no call asks for it any more, and otherwise the next pull brings it again. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#wake()
    await this.abandon()
    await this.release(this.#arrived.splice(0)).catch(() => undefined)
  }

  /** The inlet is closing: nothing more is handed out. */
  async end(): Promise<void> {
    this.#isEnded = true
    await this.close()
    this.#stopListening()
  }

  /** The server acknowledges by itself whatever it is told, so the lease is checked here: by this process' own clock. */
  async #apply(message: JsMessage, word: string): Promise<Applied> {
    if (!this.#isHeld(message)) return 'lost'
    await this.#send(message, word)
    return 'applied'
  }

  #isHeld(message: JsMessage): boolean {
    return message.leasedUntil > this.#o.clock.monotonic() && this.#isCurrent(message)
  }

  #isCurrent(message: JsMessage): boolean {
    return message.epoch === this.#o.consumer.epoch
  }

  /** Resolves when the server has confirmed it. */
  async #send(message: JsMessage, word: string): Promise<void> {
    const connection = await this.#o.api.connection()
    await connection.request(message.reply, word, { timeout: this.#o.timeoutMs })
  }
}

/** The client's own message reads its buffers when it is asked. */
function picked({ subject, data, headers }: NatsMessageLike): NatsMessageLike {
  return { subject, data, ...(headers === undefined ? {} : { headers }) }
}

function isAtLeast(version: string, major: number, minor: number): boolean {
  const [hasMajor = 0, hasMinor = 0] = version.split('.').map(Number)
  return hasMajor > major || (hasMajor === major && hasMinor >= minor)
}
