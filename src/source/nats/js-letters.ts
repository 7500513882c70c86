import { MillraceError, type WithCause } from '../../core/error.js'
import { errorMessage } from '../../core/text/error-text.js'
import type { Ms } from '../../core/time/time.js'
import { type NatsHeadersLike, natsHeaders } from '../../drivers/nats/index.js'
import {
  keepWithMessage,
  LETTER_MARK,
  type LetterWords,
  readWords,
  wordsOfRecord,
} from '../inlets/broker/letter-words.js'
import type { StreamLetter, StreamLetters } from '../inlets/broker/stream-letters.js'
import { AttemptHeader } from '../message/context.js'
import { type Header, Headers } from '../message/headers.js'
import { isMissing, type JsApi, type StreamInfo } from './js-api.js'
import { type JsMessage, KEY_HEADER } from './js-message.js'

/** The header by which a stream knows what it has stored before. */
export const ID_HEADER = 'Nats-Msg-Id'
/** Where a letter's message had been published: where a redrive publishes it again. */
const SUBJECT_HEADER = `${LETTER_MARK}subject`
/** How long a stream of letters that is made here knows a letter again. */
const REMEMBER_MS: Ms = 86_400_000
const NS_PER_MS = 1_000_000

export interface JsLetterOptions {
  readonly api: JsApi
  readonly origin: object
  readonly stream: string
  readonly group: string
  /** The stream of the letters. It is made when it is not there. */
  readonly letters: string
  readonly timeoutMs: Ms
}

/** What the settlement of a termination needs. */
export interface JsLetterBox {
  write(message: JsMessage, words: LetterWords): Promise<void>
}

/** A message could not be stored. */
export class JetStreamPublishError extends MillraceError {
  constructor(subject: string, why: string, options?: WithCause) {
    super('JETSTREAM_NOT_STORED', `What was published to "${subject}" was not stored: ${why}. It is tried again.`, {
      ...options,
      facts: { subject },
    })
  }
}

/** Publishes, and resolves when a stream has stored it. One with an id that the stream remembers is not stored again. */
export async function publishStored(
  api: JsApi,
  subject: string,
  value: Uint8Array | string,
  headers: Iterable<Header>,
  timeoutMs: Ms,
): Promise<void> {
  const connection = await api.connection()
  const sent: NatsHeadersLike = await natsHeaders()
  for (const { key, value: text } of headers) sent.append(key, text.replaceAll(/[\r\n]+/g, ' '))
  let answer: { readonly stream?: string; readonly error?: { readonly description: string } }
  try {
    const reply = await connection.request(subject, value, { timeout: timeoutMs, headers: sent })
    answer = JSON.parse(new TextDecoder().decode(reply.data)) as typeof answer
  } catch (error) {
    throw new JetStreamPublishError(subject, errorMessage(error), { cause: error })
  }
  if (answer.error !== undefined) throw new JetStreamPublishError(subject, answer.error.description)
}

interface StoredMessage {
  readonly message: {
    readonly subject: string
    readonly seq: number
    readonly hdrs?: string
    readonly data?: string
    readonly time: string
  }
}

/** The dead letters of a stream, in a stream of their own. */
export class JsLetters implements StreamLetters, JsLetterBox {
  readonly #o: JsLetterOptions
  #subject: Promise<string> | undefined

  constructor(options: JsLetterOptions) {
    this.#o = options
  }

  async deadLetter(...[ctx, record]: Parameters<StreamLetters['deadLetter']>): Promise<void> {
    const { origin, group } = this.#o
    if (keepWithMessage(ctx, record, origin, group)) return
    const words = wordsOfRecord({ subject: record.subject, cursor: record.cursor }, record, group)
    const key = record.key === null ? undefined : new TextDecoder().decode(record.key)
    // Its attempts start over.
    const headers = new Headers(record.headers).without(AttemptHeader)
    await this.#store(
      record.subject,
      record.value,
      key === undefined || headers.has(KEY_HEADER) ? headers : headers.with(KEY_HEADER, key),
      words,
      `${record.subject}:${record.partitionKey}:${record.cursor}`,
    )
  }

  write(message: JsMessage, words: LetterWords): Promise<void> {
    const { stream, group } = this.#o
    const id = `${stream}:${group}:${message.cursor.toString()}`
    return this.#store(message.natsSubject, message.value, message.headers, words, id)
  }

  async list({
    after = '0',
    limit = 100,
  }: {
    readonly after?: string
    readonly limit?: number
  } = {}): Promise<readonly StreamLetter[]> {
    const found: StreamLetter[] = []
    for (let from = Number(after) + 1; found.length < limit; ) {
      const stored = await this.#next(from)
      if (stored === undefined) break
      found.push(letterOf(stored))
      from = stored.message.seq + 1
    }
    return found
  }

  async count(): Promise<number> {
    return (await this.#info())?.state.messages ?? 0
  }

  async redrive(ids: readonly string[]): Promise<number> {
    const { api, letters, timeoutMs } = this.#o
    let count = 0
    for (const id of ids) {
      const stored = await this.#next(Number(id))
      if (stored?.message.seq !== Number(id)) continue
      const headers = headersOf(stored)
      const to = headers.get(SUBJECT_HEADER) ?? ''
      const kept = headers.entries().filter(({ key }) => !key.startsWith(LETTER_MARK) && key !== ID_HEADER)
      // Repeated after a crash in between, it is known by this id.
      const again = { key: ID_HEADER, value: `redriven:${letters}:${id}` }
      await publishStored(api, to, bytesOf(stored), [...kept, again], timeoutMs)
      count += await this.#remove(id)
    }
    return count
  }

  async discard(ids: readonly string[]): Promise<number> {
    let count = 0
    for (const id of ids) count += await this.#remove(id)
    return count
  }

  async #store(subject: string, value: Uint8Array, headers: Headers, words: LetterWords, id: string): Promise<void> {
    this.#subject ??= this.#open()
    let to: string
    try {
      to = await this.#subject
    } catch (error) {
      this.#subject = undefined
      throw error
    }
    const added = [...words, [SUBJECT_HEADER, subject] as const, [ID_HEADER, id] as const]
    const kept = headers.entries().filter(({ key }) => key !== ID_HEADER)
    const all = [...kept, ...added.map(([key, text]) => ({ key, value: text }))]
    await publishStored(this.#o.api, to, value, all, this.#o.timeoutMs)
  }

  /** The subject on which the stream takes letters. */
  async #open(): Promise<string> {
    const { api, letters } = this.#o
    let info = await this.#info()
    info ??= await api.ask<StreamInfo>(`STREAM.CREATE.${letters}`, {
      name: letters,
      subjects: [`${letters}.letters`],
      storage: 'file',
      duplicate_window: REMEMBER_MS * NS_PER_MS,
    })
    const [subject = `${letters}.letters`] = info.config.subjects ?? []
    return subject.replaceAll(/(^|\.)[*>](?=\.|$)/g, '$1letters')
  }

  async #info(): Promise<StreamInfo | undefined> {
    try {
      return await this.#o.api.stream(this.#o.letters)
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }

  /** The first one from there on. */
  async #next(from: number): Promise<StoredMessage | undefined> {
    try {
      return await this.#o.api.ask(`STREAM.MSG.GET.${this.#o.letters}`, { seq: from, next_by_subj: '>' })
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }

  /** What is not there is asked for first: the server has many ways to say that it cannot be removed. */
  async #remove(id: string): Promise<number> {
    if ((await this.#next(Number(id)))?.message.seq !== Number(id)) return 0
    await this.#o.api.ask(`STREAM.MSG.DELETE.${this.#o.letters}`, { seq: Number(id), no_erase: true })
    return 1
  }
}

function bytesOf({ message }: StoredMessage): Uint8Array {
  return new Uint8Array(Buffer.from(message.data ?? '', 'base64'))
}

/** `NATS/1.0`, then a line for each. */
function headersOf({ message }: StoredMessage): Headers {
  const text = message.hdrs === undefined ? '' : Buffer.from(message.hdrs, 'base64').toString('utf8')
  return new Headers(
    text
      .split('\r\n')
      .slice(1)
      .filter((line) => line.includes(':'))
      .map((line) => {
        const at = line.indexOf(':')
        return [line.slice(0, at), line.slice(at + 1).trim()] as const
      }),
  )
}

function letterOf(stored: StoredMessage): StreamLetter {
  const headers = headersOf(stored)
  const own = headers.entries().filter(({ key }) => !key.startsWith(LETTER_MARK) && key !== ID_HEADER)
  const key = headers.get(KEY_HEADER)
  return Object.freeze({
    id: String(stored.message.seq),
    ...readWords((name) => headers.get(name)),
    atMs: Date.parse(stored.message.time),
    key: key === undefined ? null : new TextEncoder().encode(key),
    value: bytesOf(stored),
    headers: new Headers(own),
  })
}
