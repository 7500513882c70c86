import { callObserver } from '../../core/call-observer.js'
import type { At } from '../../core/time/time.js'
import type { SqliteConnection } from '../../drivers/sqlite/connection.js'
import type { Notification } from '../../ports/ledger.js'
import { Listeners } from '../shared/listeners.js'
import type { Notifications } from '../shared/notifications.js'
import { NOTIFICATIONS_PER_READ, type Statements } from './sql.js'

/** Kinds of rows in the table of notifications. */
const INBOX = 'i'
const PUBLISHED = 'p'

/**
 * Notifies listeners in this process once a transaction is written. Other processes find inboxes and messages in a table, and
 * query by themselves whether their queues have work.
 */
export class Notifier {
  readonly listeners = new Listeners(() => this.#followOrRest())
  readonly #connection: SqliteConnection<Statements>
  /** Rows that this process wrote are not read again. */
  readonly #sender: string
  readonly #subscribers = new Set<{ readonly call: (message: string) => void }>()
  /** The queues that this process has claimed from: only those can concern it. */
  readonly #queues = new Set<string>()
  #since: number | undefined
  #unfollow: (() => void) | undefined

  constructor(connection: SqliteConnection<Statements>, sender: string) {
    this.#connection = connection
    this.#sender = sender
  }

  subscribe(call: (message: string) => void): () => void {
    const one = { call }
    this.#subscribers.add(one)
    this.#followOrRest()
    return () => {
      this.#subscribers.delete(one)
      this.#followOrRest()
    }
  }

  claimsFrom(queue: string): void {
    this.#queues.add(queue)
  }

  /** Stores notifications for other processes, in the transaction that they are about. */
  store(sql: Statements, { inboxes }: Notifications, now: At): void {
    for (const [inbox, what] of inboxes) sql.addNotification.run(now, this.#sender, INBOX, inbox, JSON.stringify(what))
  }

  storeMessage(sql: Statements, message: string, now: At): void {
    sql.addNotification.run(now, this.#sender, PUBLISHED, '', message)
  }

  /** The transaction is written. */
  deliver({ ready, inboxes }: Notifications, now: At): void {
    for (const [queue, dueAt] of ready) this.listeners.wake(queue, dueAt <= now ? undefined : dueAt)
    for (const [inbox, what] of inboxes) this.listeners.notify(inbox, what)
  }

  publish(message: string): void {
    for (const one of [...this.#subscribers]) if (this.#subscribers.has(one)) callObserver(() => one.call(message))
  }

  close(): void {
    this.listeners.clear()
    this.#subscribers.clear()
    this.#followOrRest()
  }

  /** Follows the changes of the file while there are listeners. */
  #followOrRest(): void {
    if (this.listeners.size + this.#subscribers.size === 0) {
      this.#unfollow?.()
      this.#unfollow = undefined
      this.#since = undefined
      return
    }
    this.#unfollow ??= this.#connection.onChange(() => void this.#poll().catch(() => undefined))
    // Earlier rows concern no listener here. If the file cannot be read, the next caller gets the error.
    if (this.#since === undefined)
      this.#connection
        .read((sql) => sql.lastNotification.get()?.[0] ?? 0)
        .then(
          (last) => {
            this.#since ??= last
          },
          () => undefined,
        )
  }

  /** Another process has written: reads its notifications, and whether our queues have work. */
  async #poll(): Promise<void> {
    const since = this.#since
    const found = await this.#connection.read((sql, now) => ({
      rows: since === undefined ? [] : sql.notifications.all(since, this.#sender),
      ready: [...this.#queues].filter(
        (queue) => sql.anyReady.get(queue)?.[0] === 1 || sql.anyToCome.get(queue, now, queue)?.[0] === 1,
      ),
      due: [...this.#queues].map((queue) => [queue, sql.nextDue.get(queue, now)?.[0]] as const),
    }))
    for (const [seq, kind, name, body] of found.rows) {
      // Two polls may overlap; each row is delivered once.
      if (seq <= (this.#since ?? seq)) continue
      this.#since = seq
      if (kind === PUBLISHED) this.publish(body)
      else this.listeners.notify(name, JSON.parse(body) as Notification)
    }
    for (const queue of found.ready) this.listeners.wake(queue)
    for (const [queue, dueAt] of found.due) if (dueAt != null) this.listeners.wake(queue, dueAt)
    // The file does not change again only because there was more to read.
    if (found.rows.length >= NOTIFICATIONS_PER_READ && this.#unfollow !== undefined) await this.#poll()
  }
}
