import { doublingDelay } from '../../core/retry/backoff.js'
import { type Clock, systemClock } from '../../core/time/clock.js'
import { keepAlive } from '../../core/time/keep-alive.js'
import type { Ms } from '../../core/time/time.js'
import type { Connection } from './connection.js'

const ANNOUNCE = 'select {schema}.announce($1)'
/** Between two looks at what is open: transactions that enqueue are mostly over a moment later. */
const PAUSE = { baseMs: 4, maxMs: 1_000 }
/** How long a program that is otherwise done stays for a transaction to end. Its items are found by polling then. */
const STAY_MS: Ms = 500

/** What a transaction of the user made ready: queues, and since when. */
export type MadeReady = readonly (readonly [queue: string, due: number])[]

/**
 * Wakes workers when transactions of the user have committed. A NOTIFY within such a transaction would make its commit hold a lock that all
 * commits with a NOTIFY on the server wait for, one flush of the log after the other. So the transaction only tells its number, and here
 * it is asked, for all of them at once, which have committed; their queues are notified together, in a transaction of ours.
 */
export class Announcer {
  readonly #connection: Connection
  readonly #clock: Clock
  readonly #open = new Map<string, MadeReady>()
  #looks = 0
  #cancel: (() => void) | undefined
  #looking: Promise<void> | undefined
  #isClosed = false
  #letGo: (() => void) | undefined

  /** `clock`: real time, whatever the clock of the backend, because it is transactions of the server that are waited for. */
  constructor(connection: Connection, clock: Clock = systemClock) {
    this.#connection = connection
    this.#clock = clock
  }

  add(transaction: string, ready: MadeReady): void {
    if (this.#isClosed || ready.length === 0) return
    if (this.#open.size === 0) this.#stay()
    this.#open.set(transaction, [...(this.#open.get(transaction) ?? []), ...ready])
    this.#looks = 0
    this.#cancel?.()
    this.#plan()
  }

  /** Announces what has committed by now, and nothing more. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancel?.()
    await this.#looking
    if (this.#open.size > 0) await this.#look()
    this.#letGo?.()
  }

  #stay(): void {
    this.#letGo = keepAlive()
    this.#clock.after(STAY_MS, this.#letGo)
  }

  #plan(): void {
    this.#cancel = undefined
    if (this.#isClosed || this.#open.size === 0 || this.#looking !== undefined) return
    this.#cancel = this.#clock.after(doublingDelay(this.#looks, PAUSE), () => {
      this.#looks += 1
      this.#looking = this.#look().finally(() => {
        this.#looking = undefined
        if (this.#open.size === 0) this.#letGo?.()
        this.#plan()
      })
    })
  }

  async #look(): Promise<void> {
    const asked = [...this.#open.keys()]
    const transactions = asked.map((xid) => ({ xid, ready: this.#open.get(xid) }))
    try {
      const { driver, sql } = await this.#connection.ready()
      const [row] = await driver.apart.query<[string[]]>(sql('announce', ANNOUNCE, [JSON.stringify(transactions)]))
      const open = new Set(row![0])
      for (const { xid, ready } of transactions) {
        // What was added meanwhile stays.
        if (!open.has(xid) && this.#open.get(xid) === ready) this.#open.delete(xid)
      }
    } catch {
      // It is only about time: polls find the items. The next look tries again.
    }
  }
}
