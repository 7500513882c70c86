import { threadId } from 'node:worker_threads'
import pg from 'pg'
import {
  type PostgresBackend,
  type PostgresBackendOptions,
  postgresBackend,
} from '../../../src/backends/postgres/index.js'
import { quoteIdentifier } from '../../../src/drivers/postgres/index.js'
import { startPostgres } from '../../servers/index.js'
import type { PrivateServer } from '../../servers/private-server.js'

let underWay = 0
/** How many calls were answered, and up to which of them every notification has arrived. */
let answered = 0
let heardUpTo = 0
let isAsking = false
const listening = new Set<CountedClient>()

/** Statements that notify no listener, by their names: most of all the polls of an idle system. */
const SILENT = /^millrace_(claim|extend|read|groups|store|list|summaries|open_counts|counts|workers)/

async function counted<T>(work: Promise<T>, isSilent = false): Promise<T> {
  underWay += 1
  try {
    return await work
  } finally {
    underWay -= 1
    if (!isSilent) answered += 1
  }
}

/** A client that is known to wait for its server, so that fake time can stand still meanwhile. */
class CountedClient extends pg.Client {
  override connect(...given: unknown[]) {
    const [callback] = given as [((...answer: unknown[]) => void) | undefined]
    if (callback === undefined) return counted(super.connect()) as never
    // A pool connects with a callback.
    underWay += 1
    return super.connect(((...answer: unknown[]) => {
      underWay -= 1
      callback(...answer)
    }) as never) as never
  }

  override query(...given: unknown[]) {
    const { name = '', text = '' } = Object(given[0]) as { readonly name?: string; readonly text?: string }
    if (text.startsWith('listen ')) this.#listens()
    const asked = super.query(...(given as [string])) as unknown
    return (asked instanceof Promise ? counted(asked, SILENT.test(name)) : asked) as never
  }

  /** Answered after every notification of what had been committed before it was asked. */
  async caughtUp(): Promise<void> {
    await super.query('select 1')
  }

  #listens(): void {
    if (listening.has(this)) return
    listening.add(this)
    for (const over of ['end', 'error'] as const) this.once(over, () => listening.delete(this))
  }
}

/** Rows that are there from the start stay. */
const FILLED: Readonly<Record<string, string>> = {
  item: ' where queue_type > 0',
  ended_item: ' where queue_type > 0',
  item_group: " where id not like E'\\x01filler %'",
}

/**
 * Whether every server has answered, and every notification to its listeners has arrived: a notification comes
 * over another connection than the answer to the commit that made it, and on a busy machine much later.
 */
export function isResting(): boolean {
  if (underWay > 0) return false
  if (heardUpTo === answered || listening.size === 0) return true
  if (isAsking) return false
  isAsking = true
  const upTo = answered
  void Promise.allSettled([...listening].map((client) => client.caughtUp())).then(() => {
    isAsking = false
    heardUpTo = upTo
  })
  return false
}

/** A private server, and empty schemas on it. A schema is emptied and used again: making one takes longer than most tests. */
export class Schemas {
  readonly url: string
  readonly pool: pg.Pool
  readonly #server: PrivateServer | undefined
  readonly #free: string[] = []
  readonly #inUse = new Map<PostgresBackend, string>()
  #made = 0

  private constructor(url: string, server: PrivateServer | undefined) {
    this.url = url
    this.#server = server
    this.pool = new pg.Pool({
      connectionString: url,
      max: 8,
      allowExitOnIdle: true,
      Client: CountedClient,
    } as pg.PoolConfig)
    this.pool.on('error', () => undefined)
  }

  static async start(settings: Readonly<Record<string, string | number>> = { fsync: 'off' }): Promise<Schemas> {
    const server = await startPostgres({ settings })
    return new Schemas(server.url, server)
  }

  /** On a server that another file started. */
  static at(url: string): Schemas {
    return new Schemas(url, undefined)
  }

  get server(): PrivateServer {
    if (this.#server === undefined) throw new Error('this server was started elsewhere')
    return this.#server
  }

  /** A backend on an empty schema whose name needs quoting, so that a statement which forgets to quote it fails. */
  make(options: PostgresBackendOptions = {}): PostgresBackend {
    const schema = this.#free.pop() ?? this.#next()
    const backend = postgresBackend({
      ...(options.connectionString === undefined ? { pool: this.pool } : {}),
      onError: () => undefined,
      schema,
      ...options,
    })
    this.#inUse.set(backend, schema)
    return backend
  }

  /** The same, with its tables there already. */
  async open(options: PostgresBackendOptions = {}): Promise<PostgresBackend> {
    const backend = this.make(options)
    await backend.migrate()
    return backend
  }

  schemaOf(backend: PostgresBackend): string {
    return quoteIdentifier(this.#inUse.get(backend) ?? '')
  }

  async close(backend: PostgresBackend): Promise<void> {
    const schema = this.#inUse.get(backend)
    if (schema === undefined) return
    this.#inUse.delete(backend)
    // One that was never used has no tables yet.
    await backend.migrate().catch(() => undefined)
    await backend.close()
    const s = quoteIdentifier(schema)
    const tables = [
      ...[
        'item',
        'ended_item',
        'item_tag',
        'item_watcher',
        'item_group',
        'gate',
        'gate_member',
        'gate_check',
        'group_share',
        'pause',
        'schedule',
        'action_log',
        'worker',
      ],
      ...['message', 'dead_letter', 'store', 'setting', 'queue_type', 'queue'],
    ]
    await this.pool.query(tables.map((table) => `delete from ${s}.${table}${FILLED[table] ?? ''}`).join(';'))
    this.#free.push(schema)
  }

  async stop(): Promise<void> {
    for (const backend of this.#inUse.keys()) await backend.close()
    await this.pool.end()
    await this.#server?.stop()
  }

  #next(): string {
    this.#made += 1
    return `Schema "${this.#made}" {of} 'tests' ${process.pid} ${threadId}`
  }
}
