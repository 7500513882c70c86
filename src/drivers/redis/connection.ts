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

  async #answered(script: Script, prefix: string, words: Words, call: Call): Promise<unknown> {
    // The connection holds no program open, but a call that was begun is to be answered.
    const letGo = keepAlive()
    try {
      return await this.#runInTime(script, prefix, words, call)
    } finally {
      letGo()
    }
  }

  async #runInTime(script: Script, prefix: string, words: Words, call: Call): Promise<unknown> {
    const giveUpAt = this.#clock.monotonic() + this.#options.commandTimeoutMs
    for (;;) {
      try {
        return await this.#runOnce(script, prefix, words, call)
      } catch (error) {
        // The line is being cut just now: nothing was sent, so it is as if there had been none.
        if (!(error instanceof RedisUnreachableError) || this.#clock.monotonic() >= giveUpAt) throw error
        await this.#clock.sleep(LOOK_AGAIN_MS)
      }
    }
  }

  async #runOnce(script: Script, prefix: string, words: Words, call: Call): Promise<unknown> {
    const client = await this.ready()
    try {
      try {
        return await this.within(script.name, client, call.bySha(client, script.sha, prefix, words))
      } catch (error) {
        if (!messageOf(error).startsWith('NOSCRIPT')) throw error
        return await this.within(script.name, client, call.whole(client, script.source, prefix, words))
      }
    } catch (error) {
      const message = messageOf(error)
      // Inside a script the answer is wrapped in the script's own message.
      if (/^(ERR .*)?-?OOM /.test(message) || message.includes("'maxmemory'")) throw new RedisFullError(error)
      throw error
    }
  }

  /** The client, connected. */
  async ready(): Promise<RedisClientLike> {
    if (this.#isClosed) throw new RedisClosedError()
    this.#client ??= this.#open()
    let client: RedisClientLike
    try {
      client = await this.#client
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

// Whoever calls it has checked that a client which was given has these.
const CALL_FOR_BYTES: Call = {
  bySha: (client, sha, key, words) => client.evalshaBuffer!(sha, 1, key, words),
  whole: (client, source, key, words) => client.evalBuffer!(source, 1, key, words),
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : '')
