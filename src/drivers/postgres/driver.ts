import { type Clock, systemClock } from '../../core/time/clock.js'
import { keepAlive } from '../../core/time/keep-alive.js'
import type { Ms } from '../../core/time/time.js'
import {
  isContention,
  isNotSent,
  isOfProgram,
  isPoolEnded,
  isPoolerError,
  isReplyLost,
  PostgresClosedError,
  PostgresReplyLostError,
  PostgresUnreachableError,
  sqlStateOf,
} from './errors.js'
import { Listener } from './listener.js'
import { OpenClients } from './open-clients.js'
import { type PgClientLike, type PgPoolLike, type PgQuery, pgLibrary } from './pg-library.js'
import type { Queryable, Row, Statement } from './statement.js'

const READ_ONLY = '25006'
/**
 * How long a connection may take to come about. The client's own limit, and not the pool's, which would count the wait for a free
 * connection, too.
 */
const CONNECT_WAIT: Ms = 10_000
const TIMED = { connectionTimeoutMillis: CONNECT_WAIT }
/** How long a close waits for a running statement. Then it cuts the connection. */
const CLOSE_WAIT: Ms = 5_000
/** How often a statement is repeated that the server ended because others were in its way. */
const MAX_REPEATS = 8

export interface PostgresDriverOptions {
  readonly connectionString?: string | undefined
  /** The user's own pool of `pg`. It is never closed here. */
  readonly pool?: PgPoolLike | undefined
  /** Where to listen, if the connection string leads to a pooler. */
  readonly listenConnectionString?: string | undefined
  /** Settings of a pool of ours, instead of just the connection string. */
  readonly config?: object | undefined
  /** Connections at most, where the pool is ours. */
  readonly maxConnections?: number | undefined
  /** Let the server keep plans under the names of statements. */
  readonly prepare: boolean
  readonly clock: Clock
  /** Called with errors that no call can return: a listening connection broke, notifications do not arrive. */
  readonly onError: (error: unknown) => void
}

/**
 * Statements, transactions and notifications over `pg`. Nothing connects before it is first used.
 *
 * A statement that fails because its connection broke rejects with `OUTCOME_UNKNOWN`: whether it happened is for the caller to find
 * out. One that found no connection rejects with `POSTGRES_UNREACHABLE`, and with `CLOSED` after a close. What the server itself undid
 * (deadlock, serialization) is repeated here.
 */
export class PostgresDriver implements Queryable {
  readonly #options: PostgresDriverOptions
  readonly #listener: Listener
  #apart: PostgresDriver | undefined
  #pool: Promise<PgPoolLike> | undefined
  #prepare: boolean
  #isClosed = false
  readonly #clients = new OpenClients()

  constructor(options: PostgresDriverOptions) {
    this.#options = options
    this.#prepare = options.prepare
    this.#listener = new Listener({
      clock: options.clock,
      onError: options.onError,
      connect: () => this.#listening(),
      echo: async (channel, payload) => {
        await this.query({ name: 'millrace_echo', text: 'select pg_notify($1, $2)', values: [channel, payload] })
      },
    })
  }

  /** Whether plans are kept under names: false after a pooler has been met. */
  get prepares(): boolean {
    return this.#prepare
  }

  /**
   * The same server over a connection that no user can hold. Questions that come up inside a user's transaction are asked here:
   * if each connection of the user's pool is held by a transaction that waits for another one, all wait forever.
   */
  get apart(): PostgresDriver {
    const { pool } = this.#options
    if (this.#isClosed || !isPgPool(pool)) return this
    this.#apart ??= new PostgresDriver({ ...this.#options, pool: undefined, config: configOf(pool) })
    return this.#apart
  }

  /** The way of nearly every statement, in one function: the caller of a lone one also waits for each promise on its way. */
  async query<R extends Row>(statement: Statement): Promise<R[]> {
    for (let tries = 1; ; tries += 1) {
      const wasPrepared = this.#prepare
      const client = await this.#client()
      try {
        const { rows } = await client.query(queryOf(statement, wasPrepared))
        client.release?.()
        return rowsFrom<R>(rows)
      } catch (error) {
        const failure = this.#translated(error, wasPrepared ? statement.name : '')
        client.release?.(isSpent(failure))
        this.#mayRepeat(failure, wasPrepared, tries)
      }
    }
  }

  /**
   * Runs `run` inside a transaction, and again from the start if the server undid it. Inside, plans are not kept under
   * names: one that a pooler has lost would end the transaction.
   */
  async transaction<T>(run: (tx: Queryable) => Promise<T>): Promise<T> {
    return this.#repeated(() =>
      this.#withClient(async (client) => {
        await this.#ask(client, { text: 'begin' })
        try {
          const result = await run({
            query: async <R extends Row>(statement: Statement) =>
              rowsFrom<R>((await this.#ask(client, queryOf(statement, false))).rows),
          })
          await this.#ask(client, { text: 'commit' })
          return result
        } catch (error) {
          // On a broken connection the server has rolled back already; the first error is the one to report.
          await client.query({ text: 'rollback' }).catch(() => undefined)
          throw error
        }
      }),
    )
  }

  /** Several statements without parameters, as migrations are. */
  async script(tx: Queryable, text: string): Promise<void> {
    await tx.query({ name: '', text })
  }

  /** Listens to a channel until the returned function is called. `gap`: the connection was lost, and some may have been missed. */
  listen(channel: string, receive: (payload: string) => void, gap: () => void): () => void {
    if (this.#isClosed) throw new PostgresClosedError()
    return this.#listener.listen(channel, receive, gap)
  }

  /** Resolves when every channel that is listened to is known to be heard, or cannot be, or takes too long. */
  listening(): Promise<void> {
    return this.#listener.ready()
  }

  /** Ends what was opened here, when running statements have been answered; a server that does not answer is cut off after 5 s. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    // The connections hold no program open, but a caller that awaits this must get an answer: else a program that closes as its
    // last step would end in the middle, with an error.
    const letGo = keepAlive()
    // In real time, whatever the clock: it is the network that is being waited for.
    const cancel = systemClock.after(CLOSE_WAIT, () => this.#clients.cut())
    try {
      await this.#listener.close()
      await this.#apart?.close()
      const pool = await this.#pool?.catch(() => undefined)
      if (pool !== undefined && this.#options.pool === undefined) await pool.end()
    } finally {
      cancel()
      letGo()
    }
  }

  async #repeated<T>(run: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      const wasPrepared = this.#prepare
      try {
        return await run()
      } catch (error) {
        this.#mayRepeat(error, wasPrepared, tries)
      }
    }
  }

  /** Throws what a repetition would not mend. Others may have met the pooler meanwhile: what counts is how this one was sent. */
  #mayRepeat(error: unknown, wasPrepared: boolean, tries: number): void {
    if (isPoolerError(error) && wasPrepared) this.#prepare = false
    else if (!isContention(error) || tries > MAX_REPEATS) throw error
  }

  async #withClient<T>(use: (client: PgClientLike) => Promise<T>): Promise<T> {
    const client = await this.#client()
    try {
      const result = await use(client)
      client.release?.()
      return result
    } catch (error) {
      client.release?.(isSpent(error))
      throw error
    }
  }

  async #client(): Promise<PgClientLike> {
    if (this.#isClosed) throw new PostgresClosedError()
    this.#pool ??= this.#open()
    const pool = await this.#pool
    try {
      return heard(await pool.connect())
    } catch (error) {
      throw this.#notConnected(error)
    }
  }

  async #ask(client: PgClientLike, query: PgQuery): ReturnType<PgClientLike['query']> {
    try {
      return await client.query(query)
    } catch (error) {
      throw this.#translated(error, query.name ?? '')
    }
  }

  /** What became of a statement, if it is not known; otherwise what the server said. */
  #translated(error: unknown, name: string): unknown {
    if (!isReplyLost(error)) return error
    if (this.#isClosed) return new PostgresClosedError(error)
    return isNotSent(error)
      ? new PostgresUnreachableError(error)
      : new PostgresReplyLostError(name === '' ? 'a statement' : name, error)
  }

  async #connected<T>(connect: () => Promise<T>): Promise<T> {
    try {
      return await connect()
    } catch (error) {
      throw this.#notConnected(error)
    }
  }

  #notConnected(error: unknown): unknown {
    if (isOfProgram(error)) return error
    return this.#isClosed || isPoolEnded(error) ? new PostgresClosedError(error) : new PostgresUnreachableError(error)
  }

  async #open(): Promise<PgPoolLike> {
    const { pool: given, connectionString, config = { connectionString }, maxConnections } = this.#options
    if (given !== undefined) {
      return watched(given)
    }
    const { Pool, Client } = await pgLibrary()
    const { Client: own = Client } = config as { readonly Client?: typeof Client }
    return watched(
      new Pool({
        ...(maxConnections === undefined ? {} : { max: maxConnections }),
        ...config,
        Client: this.#clients.remembered(own, TIMED),
        // An idle library holds no program open.
        allowExitOnIdle: true,
        keepAlive: true,
      }),
    )
  }

  /** A separate connection to listen on: one from a pool would be missing there forever. */
  async #listening(): Promise<PgClientLike> {
    const { pool, connectionString, listenConnectionString } = this.#options
    const address = listenConnectionString ?? connectionString
    let client: PgClientLike
    if (address !== undefined) {
      const Client = this.#clients.remembered((await pgLibrary()).Client, TIMED)
      client = new Client({ connectionString: address, keepAlive: true })
    } else if (isPgPool(pool)) {
      const Client = this.#clients.remembered(pool.Client, {})
      client = new Client({ ...settingsOf(pool), ...TIMED })
    } else return await this.#connected(() => (pool as PgPoolLike).connect())
    // Before it connects: an error without a listener would end the process.
    client.on('error', () => undefined)
    await this.#connected(async () => client.connect?.())
    client.unref?.()
    return client
  }
}

/** What a pool of `pg` was made with, and what it makes. */
interface PgPoolInside {
  readonly options: { readonly password?: unknown }
  readonly Client: new (config: object) => PgClientLike
}

function isPgPool(pool: PgPoolLike | undefined): pool is PgPoolLike & PgPoolInside {
  const { options, Client } = (pool ?? {}) as Partial<PgPoolInside>
  return typeof options === 'object' && options !== null && typeof Client === 'function'
}

/** What it was made with. The password is hidden from copies, and taken by name. */
function settingsOf({ options }: PgPoolInside): object {
  const { password } = options
  return password === undefined ? options : { ...options, password }
}

/** Settings for a pool of one connection to where that pool leads. */
function configOf(pool: PgPoolInside): object {
  return { ...settingsOf(pool), Client: pool.Client, max: 1, min: 0, idleTimeoutMillis: 1_000 }
}

const watchedPools = new WeakSet<PgPoolLike>()

/** A connection that breaks while it is idle is replaced by its pool; unheard, the event would end the process. */
function watched(pool: PgPoolLike): PgPoolLike {
  if (watchedPools.has(pool)) return pool
  watchedPools.add(pool)
  pool.on('error', () => undefined)
  // From its first moment: one that breaks between its connection and its first use is not idle yet.
  pool.on('connect', heard)
  return pool
}

const heardClients = new WeakSet<PgClientLike>()

/** The same for a connection in use: it may report its end before, during and after a statement, and its pool may not listen. */
function heard(client: PgClientLike): PgClientLike {
  if (heardClients.has(client)) return client
  heardClients.add(client)
  client.on('error', () => undefined)
  return client
}

/** A statement as `pg` takes it. Without a name no plan is kept for it. */
function queryOf({ name, text, values }: Statement, isNamed: boolean): PgQuery {
  return {
    ...(isNamed && name !== '' ? { name } : {}),
    text,
    // Copied, because `pg` wants a list that it may write to.
    ...(values === undefined ? {} : { values: [...values] }),
    rowMode: 'array',
  }
}

/** Several statements in one query have several results, which no caller asks for. */
function rowsFrom<R extends Row>(rows: readonly unknown[] | undefined): R[] {
  return (rows ?? []) as R[]
}

/**
 * Without a word from the server the connection is in an unknown state, and one that leads to a server which only reads (a standby,
 * after a failover) leads there forever: the pool must not hand it out again.
 */
function isSpent(error: unknown): boolean {
  return !isFromServer(error) || sqlStateOf(error) === READ_ONLY
}

/** The server answered with an error: the connection itself is well, unless it said that it is ending it. */
function isFromServer(error: unknown): boolean {
  const { severity } = error as { readonly severity?: unknown }
  return severity === 'ERROR'
}
