import { MillraceError } from '../../core/error.js'
import { type Answer, GroupCommit } from '../../core/group-commit.js'
import type { ResultOf } from '../../core/stream/result.js'
import { errorMessage } from '../../core/text/error-text.js'
import type { Clock } from '../../core/time/clock.js'
import type { MaybePromise, Ms } from '../../core/time/time.js'
import type { RedisConnection } from '../../drivers/redis/index.js'
import type { Applied, BrokerAdapter } from '../inlets/broker/broker-subscription.js'
import { wordsToWrite } from '../inlets/broker/letter-words.js'
import { StreamFetchError } from '../inlets/broker/stream-fetch-error.js'
import { groupedOperations, HAS_NOTE, NO_WORDS, type Operation } from './operations.js'
import { type Claimed, type FieldNames, RedisMessage } from './redis-message.js'
import { script } from './scripts.js'

export interface RedisAdapterOptions {
  readonly clock: Clock
  readonly connection: RedisConnection
  /** To wait on. Undefined: new messages are polled for. */
  readonly line: RedisConnection | undefined
  readonly origin: object
  readonly stream: string
  readonly group: string
  readonly consumer: string
  /** The id behind which a group begins that has to be made. */
  readonly from: string
  readonly leaseMs: Ms
  readonly idlePollMs: Ms
  /** `''`: none are kept. */
  readonly letters: string
  readonly names: FieldNames
}

/** No caller waits for it. */
const UNHEARD: Answer<unknown> = { resolve: () => undefined, reject: () => undefined }
const DONE = 1
/** Most messages that one claim takes: the server does nothing else meanwhile. */
const MOST_PER_CLAIM = 500
/** Most operations of one call, and how many calls may be under way: the process goes on with the answers to one while the server is at the next. */
const MOST_PER_CALL = 128
const CALLS_AT_ONCE = 4
/** The first wait at an empty stream that cannot be waited on; each further one is twice as long. */
const FIRST_POLL_MS: Ms = 10
/** One wait on the server. Another follows. */
const BLOCK_MS: Ms = 5_000

/** A consumer of a group, as its subscription needs it. */
export class RedisAdapter implements BrokerAdapter<RedisMessage> {
  readonly #o: RedisAdapterOptions
  readonly #operations: GroupCommit<Operation, unknown>
  /** What this consumer was given last under each id, until it is settled. */
  readonly #out = new Map<string, RedisMessage>()
  /** Where the search for lapsed leases goes on; `''` between two searches. */
  #cursor = ''
  /** Monotonic time of the next search. */
  #searchAt = -Infinity
  #dueInMs: Ms = -1
  #emptyPulls = 0
  #lastId = '$'
  #arrival: Promise<void> | undefined
  #isClosed = false
  #isEnded = false

  constructor(options: RedisAdapterOptions) {
    this.#o = options
    this.#operations = new GroupCommit<Operation, unknown>({
      maxBatch: MOST_PER_CALL,
      maxUnderWay: CALLS_AT_ONCE,
      maxUnsent: Infinity,
      maxUnsentBytes: Infinity,
      flush: (batch) => this.#send(batch),
    })
  }

  // ── fetching ──

  async pull(max: number): Promise<readonly RedisMessage[]> {
    if (this.#isEnded) return []
    const { clock, leaseMs, stream, names, origin } = this.#o
    const now = clock.monotonic()
    if (this.#cursor === '' && now >= this.#searchAt) {
      this.#searchAt = now + leaseMs / 2
      this.#cursor = '0-0'
    }
    const reply = await this.#claim(Math.min(max, MOST_PER_CLAIM))
    const [cursor, dueInMs, lastId, taken] = reply as [Buffer, number, Buffer, [Buffer, number, Buffer, Buffer[]][]]
    this.#cursor = cursor.toString()
    this.#dueInMs = dueInMs
    this.#emptyPulls = taken.length === 0 ? this.#emptyPulls + 1 : 0
    if (lastId.length > 0) this.#lastId = lastId.toString()
    return taken.map(([id, starts, note, words]) => {
      const claimed: Claimed = { id: id.toString(), starts, note: note.toString(), words }
      const message = new RedisMessage(origin, stream, claimed, names)
      const earlier = this.#out.get(claimed.id)
      // Its lease has lapsed, and this consumer is who got it again.
      if (earlier !== undefined && earlier.state !== 'settled') earlier.state = 'lost'
      this.#out.set(claimed.id, message)
      return message
    })
  }

  async #claim(max: number): Promise<unknown> {
    const { connection, stream, group, consumer, leaseMs, from } = this.#o
    const claim = () => connection.runForBytes(script('claim'), stream, [group, consumer, leaseMs, max, this.#cursor])
    try {
      try {
        return await claim()
      } catch (error) {
        if (!isNoGroup(error)) throw error
        // The server lost it, or it was removed.
        await connection.run(script('open'), stream, [group, consumer, from])
        return await claim()
      }
    } catch (error) {
      throw new StreamFetchError(stream, error)
    }
  }

  idleMs(): Ms {
    const { clock, idlePollMs, line } = this.#o
    const untilSearch = this.#cursor === '' ? this.#searchAt - clock.monotonic() : 0
    const poll = line === undefined ? FIRST_POLL_MS * 2 ** Math.min(20, this.#emptyPulls) : idlePollMs
    const due = this.#dueInMs < 0 ? Infinity : this.#dueInMs
    return Math.max(0, Math.min(poll, idlePollMs, due, untilSearch))
  }

  /** One wait at a time; while it lasts, nothing has come behind the last id. It takes nothing: that is what the claim does. */
  arrival(): Promise<void> | undefined {
    const { line, clock, idlePollMs } = this.#o
    if (line === undefined || this.#isClosed) return undefined
    this.#arrival ??= this.#wait(line)
      .catch(() => clock.sleep(idlePollMs))
      .finally(() => {
        this.#arrival = undefined
      })
    return this.#arrival
  }

  async #wait(line: RedisConnection): Promise<void> {
    const lastId = this.#lastId
    const client = await line.ready()
    for (;;) {
      if (this.#isClosed) return
      const found = await client.xread?.('COUNT', 1, 'BLOCK', BLOCK_MS, 'STREAMS', this.#o.stream, lastId)
      if (found !== null) return
    }
  }

  // ── settling ──

  ack(message: RedisMessage): Promise<Applied> {
    return this.#settle({ what: 'ack', message, words: message.note === undefined ? NO_WORDS : HAS_NOTE })
  }

  nak(message: RedisMessage, { requeueMs, note }: ResultOf<'nak'>): Promise<Applied> {
    return this.#settle({ what: 'nak', message, words: [Math.ceil(requeueMs), message.deliveryCount, note ?? ''] })
  }

  term(message: RedisMessage, result: ResultOf<'term'>): Promise<Applied> {
    const { letters, group } = this.#o
    const written = letters === '' ? undefined : wordsToWrite(message, result, group)
    const added = written === undefined ? '' : JSON.stringify(written.flat())
    return this.#settle({
      what: 'term',
      message,
      words: [written === undefined ? '' : letters, added, message.note === undefined ? '' : '1'],
    })
  }

  async extend(messages: readonly RedisMessage[]): Promise<readonly boolean[]> {
    const replies = await this.#operations.addMany(
      messages.map((message) => ({ what: 'extend', message, words: NO_WORDS }) as const),
    )
    return replies.map((reply) => reply === DONE)
  }

  async release(messages: readonly RedisMessage[]): Promise<void> {
    await this.#operations.addMany(messages.map((message) => ({ what: 'release', message, words: NO_WORDS }) as const))
    for (const message of messages) this.#forget(message)
  }

  /**
   * Starts of one turn travel in one call. A first delivery begins while its start is being written; a later one may be what
   * ended its process, so it waits until it counts.
   */
  start(messages: readonly RedisMessage[]): MaybePromise<readonly boolean[]> {
    const starts = messages.map(
      (message): Operation => ({ what: 'start', message, words: [message.deliveryCount, '', ''] }),
    )
    if (messages.some(({ deliveryCount }) => deliveryCount > 1))
      return this.#operations.addMany(starts).then((replies) => replies.map((reply) => reply === DONE))
    // A nak says it again, and a lapse without it is what is not counted.
    for (const start of starts) this.#operations.addFor(UNHEARD, start)
    return messages.map(({ state }) => state !== 'lost')
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#o.line?.close()
  }

  /** The inlet is closing: nothing more is fetched. Resolves when everything that was to be written has been. */
  end(): Promise<void> {
    this.#isEnded = true
    return this.#operations.idle()
  }

  #settle(operation: Operation): Promise<Applied> {
    return new Promise((resolve, reject) => {
      const answered = (reply: unknown) => {
        if (reply !== DONE && reply !== 0 && reply !== 2) {
          reject(new RedisStreamLetterError(this.#o.letters, String(reply)))
          return
        }
        this.#forget(operation.message)
        resolve(reply === DONE ? 'applied' : reply === 0 ? 'lost' : 'gone')
      }
      this.#operations.addFor({ resolve: answered, reject }, operation)
    })
  }

  #forget(message: RedisMessage): void {
    if (this.#out.get(message.id) === message) this.#out.delete(message.id)
  }

  async #send(batch: readonly Operation[]): Promise<readonly unknown[]> {
    const { connection, stream, group, consumer } = this.#o
    // What has ended by now needs no start.
    const isNeeded = ({ what, message }: Operation) => what !== 'start' || message.state === 'out'
    const { words, places } = groupedOperations(batch, isNeeded)
    const replies: unknown[] = batch.map((one) => (!isNeeded(one) && one.message.state === 'lost' ? 0 : DONE))
    if (words.length === 0) return replies
    try {
      const undone = await connection.run(script('apply'), stream, [group, consumer, ...words])
      const pairs = undone as readonly (number | string)[]
      for (let i = 0; i < pairs.length; i += 2) replies[places[Number(pairs[i]) - 1]!] = pairs[i + 1]
    } catch (error) {
      // Without the group nothing is held by anybody. The next pull makes it anew.
      if (!isNoGroup(error)) throw error
      for (const i of places) replies[i] = 0
    }
    return replies
  }
}

/** A dead letter could not be written, so its message is not settled. */
export class RedisStreamLetterError extends MillraceError {
  constructor(letters: string, why: string) {
    super(
      'LETTER_NOT_WRITTEN',
      `The dead letter could not be added to "${letters}": ${why}. Its message is not settled; it is tried again.`,
      { facts: { letters } },
    )
  }
}

const isNoGroup = (error: unknown): boolean => errorMessage(error).includes('NOGROUP')
