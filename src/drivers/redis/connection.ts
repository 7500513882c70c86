import { type Clock, systemClock } from '../../core/time/clock.js'
import { keepAlive } from '../../core/time/keep-alive.js'
import type { Ms } from '../../core/time/time.js'
import type { RedisAddress, RedisClientLike } from './client.js'
import {
  isNotSent,
  isReplyLost,
  RedisClosedError,
  RedisDisconnectedError,
  RedisFullError,
  RedisReplyLostError,
  RedisSendsTwiceWarning,
  RedisTimeoutError,
  RedisUnreachableError,
} from './errors.js'
import { letProcessExit } from './let-exit.js'
import { makeClient, sendsTwice } from './make-client.js'
import type { Script } from './script.js'

export interface ConnectionOptions {
  readonly address: RedisAddress
  /** How long a call may take, the wait for a connection included. */
  readonly commandTimeoutMs: Ms
  /** Troubles of the connection: it goes on trying by itself. */
  readonly onError: (error: Error) => void
  /** Called with every connection that is made, the first one included. */
  readonly onConnect?: (client: RedisClientLike) => void
  readonly isListening?: boolean
  /** Real time: what it measures is how long a server takes. */
  readonly clock?: Clock
}

const LOOK_AGAIN_MS: Ms = 20

/**
 * A connection that is made when it is first needed, and made anew for as long as it is wanted. A call either gets an answer
 * or rejects in time; one that is not answered ends the connection, so that no call waits on a dead one.
 */
export class RedisConnection {
  readonly #options: ConnectionOptions
  readonly #clock: Clock
  #client: Promise<RedisClientLike> | undefined
  /** The same, once it has been made. */
  #made: RedisClientLike | undefined
  #lastError: Error | undefined
  /** One wait for all who wait. */
  #connecting: Promise<void> | undefined
  /** Ends that wait: no connection is wanted any more. */
  #endWait: (() => void) | undefined
  #isClosed = false
  #wasReady = false
  #onReady: (() => void) | undefined
  readonly #onError = (error: Error): void => {
    this.#lastError = error
    if (!this.#isClosed) this.#options.onError(error)
  }

  readonly #onClose = (): void => {
    if (!this.#wasReady || this.#isClosed) return
    this.#wasReady = false
    this.#options.onError(new RedisDisconnectedError())
  }

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
  }

  /** Runs a script on the keys under `prefix`. One that the server does not know is sent whole, once. */
  run(script: Script, prefix: string, words: Words): Promise<unknown> {
    return this.#answered(script, prefix, words, CALL)
  }

  /** The same, with every text of the reply as bytes. */
  runForBytes(script: Script, prefix: string, words: Words): Promise<unknown> {
    return this.#answered(script, prefix, words, CALL_FOR_BYTES)
  }

  /** The way of every call, in one function: the caller of a lone one also waits for each promise on its way. */
  async #answered(script: Script, prefix: string, words: Words, call: Call): Promise<unknown> {
    // The connection holds no program open, but a call that was begun is to be answered.
    const letGo = keepAlive()
    const giveUpAt = this.#clock.monotonic() + this.#options.commandTimeoutMs
    let isKnown = true
    try {
      for (;;) {
        try {
          const client = this.#readyNow ?? (await this.ready())
          const reply = isKnown
            ? call.bySha(client, script.sha, prefix, words)
            : call.whole(client, script.source, prefix, words)
          return await this.within(script.name, client, reply)
        } catch (error) {
          if (isKnown && messageOf(error).startsWith('NOSCRIPT')) {
            isKnown = false
            continue
          }
          if (isFull(error)) throw new RedisFullError(error)
          // The line is being cut just now: nothing was sent, so it is as if there had been none. A timer may fire a little early: what
          // is left of the time then is not worth another wait, which would take the whole time again.
          if (!(error instanceof RedisUnreachableError) || this.#clock.monotonic() + LOOK_AGAIN_MS >= giveUpAt)
            throw error
        }
        await this.#clock.sleep(LOOK_AGAIN_MS)
      }
    } finally {
      letGo()
    }
  }

  /** The client, if it is connected at this moment. */
  get #readyNow(): RedisClientLike | undefined {
    return !this.#isClosed && this.#made?.status === 'ready' ? this.#made : undefined
  }

  /** The client, connected. */
  async ready(): Promise<RedisClientLike> {
    if (this.#isClosed) throw new RedisClosedError()
    this.#client ??= this.#open()
    let client: RedisClientLike
    try {
      client = await this.#client
      this.#made = client
    } catch (error) {
      // The driver is not installed, or the address is no address: the next call tries again.
      this.#client = undefined
      throw error
    }
    if (this.#isClosed) throw new RedisClosedError()
    if (client.status !== 'ready') {
      this.#connecting ??= this.#connected(client).finally(() => {
        this.#connecting = undefined
      })
      await this.#connecting
    }
    return client
  }

  /** Waits for an answer, no longer than allowed. */
  within<T>(what: string, client: RedisClientLike, answer: Promise<T>): Promise<T> {
    const { commandTimeoutMs: ms } = this.#options
    const letGo = keepAlive()
    return new Promise<T>((resolve, reject) => {
      const cancel = this.#clock.after(ms, () => {
        letGo()
        reject(new RedisTimeoutError(what, ms))
        // A line that carries no answers is worth nothing, whatever else waits on it. It is cut, not closed: the other side
        // may be gone, and then nothing would answer that either.
        if (!this.#isOurs) return
        if (client.stream === undefined) client.disconnect(true)
        else client.stream.destroy()
      })
      answer.then(
        (value) => {
          letGo()
          cancel()
          resolve(value)
        },
        (error: unknown) => {
          letGo()
          cancel()
          reject(this.#translated(what, error))
        },
      )
    })
  }

  /** What the driver says, in words that callers can rely on. */
  #translated(what: string, error: unknown): unknown {
    if (isNotSent(error)) return new RedisUnreachableError(this.#options.commandTimeoutMs, error)
    if (!isReplyLost(error)) return error
    return this.#isClosed ? new RedisClosedError() : new RedisReplyLostError(what, error)
  }

  /** Ends what was opened here; a client that was given stays as it is. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#endWait?.()
    const client = await this.#client?.catch(() => undefined)
    if (client === undefined) return
    client.off('close', this.#onClose)
    if (this.#onReady !== undefined) client.off('ready', this.#onReady)
    if (this.#isOurs) client.disconnect()
    else client.off('error', this.#onError)
  }

  /** A client that was given is its owner's to end. */
  get #isOurs(): boolean {
    return this.#options.address.client === undefined || this.#options.isListening === true
  }

  async #open(): Promise<RedisClientLike> {
    const { address, isListening = false, onConnect } = this.#options
    const client = await makeClient(address, isListening)
    if (client === address.client && sendsTwice(client)) this.#options.onError(new RedisSendsTwiceWarning())
    if (client !== address.client) letProcessExit(client)
    client.on('error', this.#onError)
    client.on('close', this.#onClose)
    const met = () => {
      if (this.#isClosed) return
      this.#wasReady = true
      onConnect?.(client)
    }
    this.#onReady = met
    client.on('ready', met)
    if (client.status === 'ready') met()
    if (client.status === 'wait') client.connect().catch(() => undefined) // Reported through `error`; it goes on trying.
    if (this.#isClosed && client !== address.client) client.disconnect()
    return client
  }

  #connected(client: RedisClientLike): Promise<void> {
    const { commandTimeoutMs: ms } = this.#options
    const letGo = keepAlive()
    return new Promise((resolve, reject) => {
      const isReady = () => {
        over()
        resolve()
      }
      const over = () => {
        this.#endWait = undefined
        letGo()
        cancel()
        client.off('ready', isReady)
      }
      this.#endWait = () => {
        over()
        reject(new RedisClosedError())
      }
      const cancel = this.#clock.after(ms, () => {
        over()
        reject(new RedisUnreachableError(ms, this.#lastError))
      })
      client.on('ready', isReady)
      // A client that was ended by hand, or abandoned, is asked once more.
      if (client.status === 'end' || client.status === 'wait') client.connect().catch(() => undefined)
    })
  }
}

/** What a script is called with, beside its key. */
type Words = readonly (string | number | Buffer)[]

/** The two ways to call a script. */
interface Call {
  bySha(client: RedisClientLike, sha: string, key: string, words: Words): Promise<unknown>
  whole(client: RedisClientLike, source: string, key: string, words: Words): Promise<unknown>
}

const CALL: Call = {
  bySha: (client, sha, key, words) => client.evalsha(sha, 1, key, words),
  whole: (client, source, key, words) => client.eval(source, 1, key, words),
}

// Its callers have checked that a client which was given has these.
const CALL_FOR_BYTES: Call = {
  bySha: (client, sha, key, words) => client.evalshaBuffer!(sha, 1, key, words),
  whole: (client, source, key, words) => client.evalBuffer!(source, 1, key, words),
}

/** Inside a script the answer is wrapped in the script's own message. */
function isFull(error: unknown): boolean {
  const message = messageOf(error)
  return /^(ERR .*)?-?OOM /.test(message) || message.includes("'maxmemory'")
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : '')
