import { MillraceError, type WithCause } from '../../core/error.js'
import { errorMessage } from '../../core/text/error-text.js'
import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import { connectNats, type NatsAddress, type NatsConnectionLike } from '../../drivers/nats/index.js'
import { InletClosedError } from '../errors.js'

/** JetStream refused something, or could not be reached. */
export class JetStreamRefusedError extends MillraceError {
  /** The server's own code: 404 for what is not there. */
  readonly status: number
  constructor(what: string, status: number, description: string, options?: WithCause) {
    super('JETSTREAM_REFUSED', `JetStream: ${what}: ${description} (${status}).`, {
      ...options,
      facts: { what, status },
    })
    this.status = status
  }
}

/** A consumer as the server describes it. */
export interface ConsumerInfo {
  readonly config: Readonly<Record<string, unknown>>
  readonly num_pending: number
  readonly num_ack_pending: number
  readonly num_redelivered: number
}

/** A stream as the server describes it. */
export interface StreamInfo {
  readonly config: { readonly name: string; readonly subjects?: readonly string[] }
  readonly state: { readonly messages: number; readonly first_seq: number; readonly last_seq: number }
}

export interface JsApiOptions {
  readonly address: NatsAddress
  readonly clock: Clock
  readonly timeoutMs: Ms
  readonly onError: (error: Error) => void
}

const AGAIN_MS: Ms = 100
const utf8 = new TextDecoder()

/** A connection, and the requests to the JetStream of its server. Connects when it is first needed. */
export class JsApi {
  readonly #o: JsApiOptions
  #connecting: Promise<NatsConnectionLike> | undefined
  #isClosed = false
  #isConnected = false
  readonly #onReconnect = new Set<() => void>()

  constructor(options: JsApiOptions) {
    this.#o = options
  }

  /** False: the line is cut, and what is sent now would only be sent later. */
  get isConnected(): boolean {
    return this.#isConnected
  }

  /** Calls back with every connection after the first one. Returns how to stop that. */
  onReconnect(run: () => void): () => void {
    this.#onReconnect.add(run)
    return () => this.#onReconnect.delete(run)
  }

  async connection(): Promise<NatsConnectionLike> {
    if (this.#isClosed) throw new InletClosedError('reach its server')
    this.#connecting ??= this.#connect()
    try {
      return await this.#connecting
    } catch (error) {
      // The next call tries again.
      this.#connecting = undefined
      throw error
    }
  }

  /**
   * A request that is answered with JSON. While nothing answers (the server is being restarted, or elects a leader) it is repeated until
   * its time is up: only for what may be done twice.
   */
  async ask<T>(subject: string, body: object = {}): Promise<T> {
    const { clock, timeoutMs } = this.#o
    const until = clock.monotonic() + timeoutMs
    for (;;) {
      try {
        const connection = await this.connection()
        const left = Math.max(1, until - clock.monotonic())
        const answer = await connection.request(`$JS.API.${subject}`, JSON.stringify(body), { timeout: left })
        const read = JSON.parse(utf8.decode(answer.data)) as T & { readonly error?: ApiError }
        // 503: JetStream itself is not up yet.
        if (read.error === undefined) return read
        if (read.error.code !== 503) throw refused(subject, read.error)
        if (clock.monotonic() >= until) throw refused(subject, read.error)
      } catch (error) {
        if (error instanceof MillraceError || clock.monotonic() >= until) throw this.#unreached(subject, error)
      }
      await clock.sleep(AGAIN_MS)
    }
  }

  consumer(stream: string, name: string): Promise<ConsumerInfo> {
    return this.ask(`CONSUMER.INFO.${stream}.${name}`)
  }

  stream(name: string): Promise<StreamInfo> {
    return this.ask(`STREAM.INFO.${name}`)
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    const connection = await this.#connecting?.catch(() => undefined)
    if (this.#o.address.connection === undefined) await connection?.close()
  }

  async #connect(): Promise<NatsConnectionLike> {
    const connection = await connectNats(this.#o.address)
    this.#isConnected = true
    void this.#watch(connection)
    if (this.#isClosed && this.#o.address.connection === undefined) await connection.close()
    return connection
  }

  async #watch(connection: NatsConnectionLike): Promise<void> {
    for await (const { type } of connection.status()) {
      if (this.#isClosed) return
      if (type === 'disconnect') {
        this.#isConnected = false
        this.#o.onError(new NatsDisconnectedError())
      }
      if (type === 'reconnect') {
        this.#isConnected = true
        for (const run of [...this.#onReconnect]) run()
      }
    }
    this.#isConnected = false
  }

  #unreached(what: string, error: unknown): unknown {
    if (error instanceof MillraceError) return error
    return new JetStreamRefusedError(what, 503, errorMessage(error), { cause: error })
  }
}

/** A connection was lost. Another one is being made. */
export class NatsDisconnectedError extends MillraceError {
  constructor() {
    super('NATS_DISCONNECTED', 'The connection to NATS was lost; another one is being made. Nothing has to be done.')
  }
}

interface ApiError {
  readonly code: number
  readonly description: string
}

function refused(what: string, { code, description }: ApiError): JetStreamRefusedError {
  return new JetStreamRefusedError(what, code, description)
}

/** Whether something is not there. */
export function isMissing(error: unknown): boolean {
  return error instanceof JetStreamRefusedError && error.status === 404
}
