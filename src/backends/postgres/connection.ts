import { createHash } from 'node:crypto'
import type { At } from '../../core/time/time.js'
import {
  migrate,
  type PostgresDriver,
  quoteIdentifier,
  type SqlValue,
  type Statement,
  withSchema,
} from '../../drivers/postgres/index.js'
import { type Mode, WrongModeError } from '../../ports/mode.js'
import { MIGRATIONS } from './migrations.js'

/** What works on a schema that has been checked. */
export interface Ready {
  readonly driver: PostgresDriver
  /** A statement of ours: its name is unique to the schema, since a user's pool may serve several. */
  sql(name: string, text: string, values?: readonly SqlValue[]): Statement
}

const MODE = "select value from {schema}.setting where name = 'mode'"

/** One schema of one database: checked and migrated when it is first used. */
export class Connection {
  readonly driver: PostgresDriver
  readonly schema: string
  /** Where every statement takes its time from: null is the server's own. */
  readonly now: () => At | null
  readonly #mayMigrate: boolean
  readonly #suffix: string
  readonly #texts = new Map<string, string>()
  #known: Mode | undefined
  readonly #modes = new Map<Mode, Promise<void>>()
  #ready: Promise<Ready> | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(driver: PostgresDriver, schema: string, mayMigrate: boolean, now: () => At | null) {
    this.driver = driver
    this.schema = schema
    this.now = now
    this.#mayMigrate = mayMigrate
    this.#suffix = createHash('md5').update(schema).digest('hex').slice(0, 8)
  }

  /** The channel of this schema: a hash, since names of channels are cut off as other names are. */
  get channel(): string {
    return `millrace_${createHash('md5').update(quoteIdentifier(this.schema)).digest('hex')}`
  }

  ready(): Promise<Ready> {
    this.#ready ??= this.#open()
    return this.#ready
  }

  /**
   * One after the other, in the order of the calls. The plain ports need it: what was called first happens first, as it does
   * where a port is a map in memory or one socket, and statements on several connections would overtake each other.
   */
  inOrder<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#last.then(run)
    this.#last = result.catch(() => undefined)
    return result
  }

  /** Stores how the schema is used; a caller that uses it otherwise later is refused. */
  in(mode: Mode): Promise<void> {
    let stored = this.#modes.get(mode)
    if (stored === undefined) {
      stored = this.#storeMode(mode)
      // Not remembered if it failed: the next call asks again.
      stored.catch(() => this.#modes.delete(mode))
      this.#modes.set(mode, stored)
    }
    return stored
  }

  /** Whether a work system uses the schema natively. Nothing is decided by asking; what is decided is remembered. */
  async isNative(): Promise<boolean> {
    if (this.#known === undefined) {
      const { driver, sql } = await this.ready()
      const [row] = await driver.query<[Mode]>(sql('mode', MODE))
      this.#known = row?.[0]
    }
    return this.#known === 'native'
  }

  async #storeMode(mode: Mode): Promise<void> {
    const {
      driver: { apart: driver },
      sql,
    } = await this.ready()
    await driver.query(
      sql('say_mode', "insert into {schema}.setting values ('mode', $1) on conflict do nothing", [mode]),
    )
    const [row] = await driver.query<[Mode]>(sql('mode', MODE))
    if (row !== undefined && row[0] !== mode)
      throw new WrongModeError(`The schema ${JSON.stringify(this.schema)}`, 'schema', row[0], mode)
  }

  async #open(): Promise<Ready> {
    const { driver, schema } = this
    try {
      // Apart, because a transaction of the user may be what first asks for it.
      await migrate({
        driver: driver.apart,
        schema,
        part: 'ledger',
        migrations: MIGRATIONS,
        mayMigrate: this.#mayMigrate,
      })
    } catch (error) {
      this.#ready = undefined
      throw error
    }
    return {
      driver,
      sql: (name, text, values) => {
        let rendered = this.#texts.get(name)
        if (rendered === undefined) {
          rendered = withSchema(text, schema)
          this.#texts.set(name, rendered)
        }
        const statement = { name: `millrace_${name}_${this.#suffix}`, text: rendered }
        return values === undefined ? statement : { ...statement, values }
      },
    }
  }
}
