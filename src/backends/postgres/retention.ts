import type { Connection } from './connection.js'

/** After so many ended items the hot table is vacuumed. Each leaves two dead rows: some ten megabytes by then. */
const ENDED_BETWEEN = 20_000

/**
 * Vacuums the hot table while it is used. PostgreSQL's own autovacuum runs once a minute; at ten thousand items a second the
 * front of the ready index is then a million dead entries, over which every claim has to step. Here it is done as often as
 * there is something to do, by whichever process comes first (skip_locked). A user that does not own the table only gets a notice from
 * the server, and autovacuum does it as usual.
 */
export class Vacuum {
  readonly #connection: Connection
  #ended = 0
  #isUnderWay = false

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** So many items have ended here. */
  ended(items: number): void {
    this.#ended += items
    if (this.#ended < ENDED_BETWEEN || this.#isUnderWay) return
    this.#ended = 0
    this.#isUnderWay = true
    void this.#vacuum().finally(() => {
      this.#isUnderWay = false
    })
  }

  async #vacuum(): Promise<void> {
    try {
      const { driver, sql } = await this.#connection.ready()
      const { text } = sql('vacuum', 'vacuum (skip_locked, truncate off) {schema}.item')
      // Without a name: it cannot be prepared.
      await driver.query({ name: '', text })
    } catch {
      // It is only tidying up: autovacuum comes, and the next one tries again.
    }
  }
}
