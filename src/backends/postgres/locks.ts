import { type Clock, systemClock } from '../../core/time/clock.js'
import { isLocked } from '../../drivers/postgres/index.js'
import type { CommitResult, Guard } from '../../ports/settlement.js'
import type { Connection } from './connection.js'
import { sendPastLocks } from './past-locks.js'

const HELD = 'select * from {schema}.held_rows($1)'
const FREE = 'select {schema}.when_free($1)'

/** What a commit needs to go past rows that other transactions hold. */
export class Locks {
  readonly #connection: Connection
  readonly #clock: Clock

  /** `clock`: real time, whatever the clock of the backend, because it is other transactions of the server that are waited for. */
  constructor(connection: Connection, clock: Clock = systemClock) {
    this.#connection = connection
    this.#clock = clock
  }

  /** `needs`: the items that each of them has to lock. */
  past<T extends { readonly guard: Guard }, R>(
    batch: readonly T[],
    send: (batch: readonly T[]) => Promise<readonly R[]>,
    needs: (batch: readonly T[]) => Promise<readonly (readonly string[])[]>,
  ): Promise<readonly (R | CommitResult)[]> {
    return sendPastLocks<T, R>(batch, {
      clock: this.#clock,
      send,
      heldRows: async (some) => this.#held(await needs(some)),
      whenFree: (id) => this.#whenFree(id),
    })
  }

  async #held(needs: readonly (readonly string[])[]): Promise<readonly (readonly string[])[]> {
    const { driver, sql } = await this.#connection.ready()
    const rows = await driver.query<[asked: string, held: string]>(sql('held_rows', HELD, [[...new Set(needs.flat())]]))
    return needs.map((ids) => rows.flatMap(([asked, held]) => (ids.includes(asked) ? [held] : [])))
  }

  async #whenFree(id: string): Promise<void> {
    const { driver, sql } = await this.#connection.ready()
    try {
      await driver.query(sql('when_free', FREE, [id]))
    } catch (error) {
      if (!isLocked(error)) throw error
    }
  }
}
