import { type Clock, systemClock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import type { RedisAddress, RedisClientLike } from './client.js'
import { RedisConnection } from './connection.js'

type Receive = (message: string) => void

export interface SubscriptionsOptions {
  readonly address: RedisAddress
  readonly commandTimeoutMs: Ms
  readonly onError: (error: Error) => void
  /** The connection was lost, or came late, and is back: messages that were published meanwhile were missed. */
  readonly onMissed: () => void
  readonly clock?: Clock
}

/** How often a silent connection is asked whether it is still there. */
const ASK_EVERY_MS: Ms = 15_000
/** How long a call waits for the subscriptions that were asked for before it. */
const MAX_WAIT_MS: Ms = 2_000

/**
 * The channels that have listeners, on a separate connection. After a loss they are subscribed to again, and the listeners
 * are notified that they may have missed something. A silent connection is asked every few seconds, so that one that has died
 * without a word is noticed.
 */
export class RedisSubscriptions {
  readonly #options: SubscriptionsOptions
  readonly #clock: Clock
  readonly #connection: RedisConnection
  readonly #listeners = new Map<string, Set<{ readonly receive: Receive }>>()
  #pending = new Set<Promise<void>>()
  #connects = 0
  /** A subscription failed: its channel is subscribed to with the next connection. */
  #hasFailed = false
  #client: RedisClientLike | undefined
  #stopAsking: (() => void) | undefined
  #isClosed = false

  constructor(options: SubscriptionsOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#connection = new RedisConnection({ ...options, isListening: true, onConnect: (client) => this.#met(client) })
  }

  /** Receives what is published on a channel from now on. */
  on(channel: string, receive: Receive): () => void {
    const one = { receive }
    let listeners = this.#listeners.get(channel)
    if (listeners === undefined) {
      listeners = new Set()
      this.#listeners.set(channel, listeners)
      this.#ask((client) => client.subscribe(channel))
    }
    listeners.add(one)
    const mine = listeners
    return () => {
      mine.delete(one)
      if (mine.size > 0 || this.#listeners.get(channel) !== mine) return
      this.#listeners.delete(channel)
      this.#ask((client) => (this.#listeners.has(channel) ? Promise.resolve() : client.unsubscribe(channel)))
    }
  }

  /** Resolves when the channels asked for so far are subscribed to, or after a moment. */
  settled(): Promise<void> | undefined {
    if (this.#pending.size === 0) return undefined
    const all = Promise.allSettled([...this.#pending])
    return new Promise((resolve) => {
      const cancel = this.#clock.after(MAX_WAIT_MS, () => resolve())
      void all.then(() => {
        cancel()
        resolve()
      })
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopAsking?.()
    this.#listeners.clear()
    await this.#connection.close()
  }

  #ask(what: (client: RedisClientLike) => Promise<unknown>): void {
    if (this.#isClosed) return
    const asked: Promise<void> = this.#connection
      .ready()
      .then((client) => this.#connection.within('a subscription', client, what(client)))
      .then(
        () => undefined,
        (error: unknown) => {
          this.#hasFailed = true
          if (!this.#isClosed) this.#options.onError(error as Error)
        },
      )
      .finally(() => this.#pending.delete(asked))
    this.#pending.add(asked)
  }

  #met(client: RedisClientLike): void {
    if (this.#client !== client) {
      this.#client = client
      client.on('message', (channel, message) => this.#deliver(channel, message))
    }
    const mayHaveMissed = this.#connects > 0 || this.#hasFailed
    this.#connects += 1
    this.#hasFailed = false
    if (this.#isClosed) return
    this.#keepAsking()
    // With every connection, the first one included: a caller that asked before it may have given up waiting. Twice is harmless.
    const channels = [...this.#listeners.keys()]
    if (channels.length > 0) this.#ask((again) => again.subscribe(...channels))
    if (!mayHaveMissed) return
    const report = () => {
      if (!this.#isClosed) this.#options.onMissed()
    }
    const settled = this.settled()
    if (settled === undefined) report()
    else void settled.then(report)
  }

  #deliver(channel: string, message: string): void {
    for (const one of [...(this.#listeners.get(channel) ?? [])]) {
      if (!this.#listeners.get(channel)?.has(one)) continue
      try {
        one.receive(message)
      } catch {
        // A listener's fault is the listener's: neither the others nor the connection notice.
      }
    }
  }

  #keepAsking(): void {
    this.#stopAsking?.()
    this.#stopAsking = this.#clock.after(ASK_EVERY_MS, () => {
      const client = this.#client
      if (client === undefined || this.#isClosed) return
      if (client.status !== 'ready') {
        this.#keepAsking()
        return
      }
      this.#connection
        .within('a ping of the listening connection', client, client.ping())
        .catch((error: unknown) => {
          if (!this.#isClosed) this.#options.onError(error as Error)
        })
        .finally(() => {
          if (!this.#isClosed) this.#keepAsking()
        })
    })
  }
}
