import { callObserver } from '../../core/call-observer.js'
import { newToken } from '../../core/ids.js'
import { doublingDelay } from '../../core/retry/backoff.js'
import { type Clock, systemClock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import { ListenUnavailableError } from './errors.js'
import { quoteIdentifier } from './identifier.js'
import type { PgClientLike } from './pg-library.js'

const FIRST_PAUSE: Ms = 100
const LONGEST_PAUSE: Ms = 10_000
/** How long a notification to ourselves may take before polling is reported to be all there is. */
const ECHO_WAIT: Ms = 5_000
/** How long commits wait for it: an address where nothing answers must not block them. */
const READY_WAIT: Ms = 2_000
const ECHO = 'millrace-echo '

export interface ListenerOptions {
  readonly clock: Clock
  readonly connect: () => Promise<PgClientLike>
  /** Sends a notification over another connection. */
  readonly echo: (channel: string, payload: string) => Promise<void>
  readonly onError: (error: unknown) => void
}

interface Subscriber {
  readonly receive: (payload: string) => void
  readonly gap: () => void
}

/**
 * LISTEN on a separate connection, which comes back by itself: after a loss it reconnects with growing pauses, listens to
 * every channel again, and notifies the subscribers that there was a gap. A notification to ourselves shows whether they
 * arrive at all; if they do not, that is reported once.
 */
export class Listener {
  readonly #options: ListenerOptions
  readonly #channels = new Map<string, Set<Subscriber>>()
  #client: PgClientLike | undefined
  #isConnecting = false
  #isClosed = false
  #hasReportedSilence = false
  #losses = 0
  #echo: { readonly token: string; readonly arrived: () => void } | undefined
  #ready: Promise<void> = Promise.resolve()
  #cancelPause: (() => void) | undefined

  constructor(options: ListenerOptions) {
    this.#options = options
  }

  listen(channel: string, receive: (payload: string) => void, gap: () => void): () => void {
    const subscriber = { receive, gap }
    const known = this.#channels.get(channel)
    if (known !== undefined) known.add(subscriber)
    else {
      this.#channels.set(channel, new Set([subscriber]))
      this.#ready = within(READY_WAIT, this.#subscribe(channel))
    }
    return () => {
      const subscribers = this.#channels.get(channel)
      if (subscribers?.delete(subscriber) !== true || subscribers.size > 0) return
      this.#channels.delete(channel)
      void this.#client?.query({ text: `unlisten ${quoteIdentifier(channel)}` }).catch(() => undefined)
    }
  }

  ready(): Promise<void> {
    return this.#ready
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#channels.clear()
    this.#cancelPause?.()
    const client = this.#client
    this.#client = undefined
    await end(client)
  }

  async #subscribe(channel: string): Promise<void> {
    const client = this.#client
    if (client === undefined) {
      await this.#connect()
      return
    }
    try {
      await client.query({ text: `listen ${quoteIdentifier(channel)}` })
    } catch (error) {
      this.#lost(client, error)
    }
  }

  async #connect(): Promise<void> {
    if (this.#isConnecting || this.#isClosed || this.#channels.size === 0) return
    this.#isConnecting = true
    let client: PgClientLike | undefined
    try {
      client = await this.#options.connect()
      const mine = client
      mine.on('notification', (message: { channel: string; payload?: string }) =>
        this.#deliver(message.channel, message.payload ?? ''),
      )
      mine.on('error', (error: Error) => this.#lost(mine, error))
      mine.on('end', () => this.#lost(mine, undefined))
      // Those that come while we ask are asked for too.
      const asked = new Set<string>()
      for (let missing = this.#without(asked); missing.length > 0; missing = this.#without(asked)) {
        for (const channel of missing) asked.add(channel)
        await mine.query({ text: missing.map((channel) => `listen ${quoteIdentifier(channel)}`).join('; ') })
      }
      this.#isConnecting = false
      if (this.#isClosed) {
        await end(mine)
        return
      }
      this.#client = mine
      const wasLost = this.#losses > 0
      this.#losses = 0
      if (wasLost)
        for (const subscribers of this.#channels.values()) for (const { gap } of [...subscribers]) quietly(gap)
      this.#askForEcho()
    } catch (error) {
      this.#isConnecting = false
      await end(client)
      this.#again(error)
    }
  }

  #without(asked: ReadonlySet<string>): string[] {
    return [...this.#channels.keys()].filter((channel) => !asked.has(channel))
  }

  #lost(client: PgClientLike, error: unknown): void {
    if (this.#client !== client) return
    this.#client = undefined
    void end(client)
    this.#again(error)
  }

  #again(error: unknown): void {
    if (this.#isClosed) return
    this.#losses += 1
    const pause = doublingDelay(this.#losses - 1, { baseMs: FIRST_PAUSE, maxMs: LONGEST_PAUSE })
    this.#cancelPause = this.#options.clock.after(pause, () => void this.#connect())
    if (error !== undefined) callObserver(() => this.#options.onError(error))
  }

  #askForEcho(): void {
    const [channel] = this.#channels.keys()
    if (channel === undefined || this.#hasReportedSilence) return
    const token = ECHO + newToken()
    // In real time, whatever the clock: it is the network that is being waited for.
    const cancel = systemClock.after(ECHO_WAIT, () => {
      // It may still come, and whatever arrives is delivered. This only reports, and only once.
      if (this.#echo?.token !== token || this.#isClosed || this.#client === undefined) return
      this.#hasReportedSilence = true
      callObserver(() => this.#options.onError(new ListenUnavailableError(ECHO_WAIT)))
    })
    this.#echo = { token, arrived: cancel }
    this.#options.echo(channel, token).catch(cancel)
  }

  #deliver(channel: string, payload: string): void {
    if (payload.startsWith(ECHO)) {
      if (payload !== this.#echo?.token) return
      this.#echo.arrived()
      this.#echo = undefined
      return
    }
    for (const { receive } of [...(this.#channels.get(channel) ?? [])]) quietly(() => receive(payload))
  }
}

async function end(client: PgClientLike | undefined): Promise<void> {
  if (client === undefined) return
  // One that came from a pool goes back broken: it may still be listening.
  if (client.release !== undefined) client.release(true)
  else await client.end?.().catch(() => undefined)
}

/** Waits for it, but no longer than that. In real time: it is the network that is being waited for. */
function within(ms: Ms, step: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const cancel = systemClock.after(ms, resolve)
    void step.finally(() => {
      cancel()
      resolve()
    })
  })
}

function quietly(call: () => void): void {
  try {
    call()
  } catch {
    // A subscriber that throws has only missed this notification, and reads again at its next poll.
  }
}
