import { tell } from '../../core/tell.js'
import type { At } from '../../core/time.js'
import type { SqliteConnection } from '../../drivers/sqlite/connection.js'
import type { Settled } from '../../ports/ledger.js'
import { SIGNALS_AT_ONCE, type Statements } from './sql.js'
import type { Told } from './told.js'

type Wake = (queue: string, dueAt?: At) => void
type Hear = (what: Settled) => void

/** Kinds of rows in the table of signals. */
const INBOX = 'i'
const PUBLISHED = 'p'

/**
 * Who is told what, in this process and in others. Our own listeners are called once a transaction is written; other
 * processes find inboxes and messages in a table, and look by themselves whether their queues have work. A listener that
 * throws is the listener's affair.
 */
export class Signals {
  readonly #connection: SqliteConnection<Statements>
  /** Rows that we wrote ourselves are not read again. */
  readonly #sender: string
  readonly #wakes = new Set<{ readonly wake: Wake }>()
  readonly #inboxes = new Map<string, Set<{ readonly hear: Hear }>>()
  readonly #subscribers = new Set<{ readonly hear: (message: string) => void }>()
  /** The queues that this process has claimed from: only those can concern it. */
  readonly #queues = new Set<string>()
  #since: number | undefined
  #leave: (() => void) | undefined

  constructor(connection: SqliteConnection<Statements>, sender: string) {
    this.#connection = connection
    this.#sender = sender
  }

  onReady(wake: Wake): () => void {
    const one = { wake }
    this.#wakes.add(one)
    this.#listen()
    return () => {
      this.#wakes.delete(one)
      this.#rest()
    }
  }

  onInbox(name: string, hear: Hear): () => void {
    const one = { hear }
    const listeners = this.#inboxes.get(name) ?? new Set()
    this.#inboxes.set(name, listeners.add(one))
    this.#listen()
    return () => {
      listeners.delete(one)
      if (listeners.size === 0 && this.#inboxes.get(name) === listeners) this.#inboxes.delete(name)
      this.#rest()
    }
  }

  subscribe(hear: (message: string) => void): () => void {
    const one = { hear }
    this.#subscribers.add(one)
    this.#listen()
    return () => {
      this.#subscribers.delete(one)
      this.#rest()
    }
  }

  claimsFrom(queue: string): void {
    this.#queues.add(queue)
  }

  /** Leaves word for other processes, within the transaction that it is about. */
  leaveWord(sql: Statements, told: Told, now: At): void {
    for (const [inbox, what] of told.inboxes) sql.addSignal.run(now, this.#sender, INBOX, inbox, JSON.stringify(what))
  }

  leaveMessage(sql: Statements, message: string, now: At): void {
    sql.addSignal.run(now, this.#sender, PUBLISHED, '', message)
  }

  /** The transaction is written: tells our own listeners. */
  tell(told: Told, now: At): void {
    for (const [queue, dueAt] of told.ready) this.#wake(queue, dueAt <= now ? undefined : dueAt)
    for (const [inbox, what] of told.inboxes) this.#hear(inbox, what)
  }

  publish(message: string): void {
    for (const one of [...this.#subscribers]) if (this.#subscribers.has(one)) tell(() => one.hear(message))
  }

  close(): void {
    this.#leave?.()
    this.#leave = undefined
    this.#wakes.clear()
    this.#inboxes.clear()
    this.#subscribers.clear()
  }

  #wake(queue: string, dueAt: At | undefined): void {
    for (const { wake } of [...this.#wakes]) tell(() => (dueAt === undefined ? wake(queue) : wake(queue, dueAt)))
  }

  #hear(inbox: string, what: Settled): void {
    for (const { hear } of [...(this.#inboxes.get(inbox) ?? [])]) tell(() => hear(what))
  }

  #listen(): void {
    this.#leave ??= this.#connection.onChange(() => void this.#look().catch(() => undefined))
    // From now on: what was said before concerns nobody here. If it cannot be read, whoever uses the file hears why.
    if (this.#since === undefined)
      this.#connection
        .read((sql) => sql.lastSignal.get()?.[0] ?? 0)
        .then(
          (last) => {
            this.#since ??= last
          },
          () => undefined,
        )
  }

  #rest(): void {
    if (this.#wakes.size + this.#inboxes.size + this.#subscribers.size > 0) return
    this.#leave?.()
    this.#leave = undefined
    this.#since = undefined
  }

  /** Another process has written: reads what it has left for us, and whether our queues have work. */
  async #look(): Promise<void> {
    const since = this.#since
    const found = await this.#connection.read((sql, now) => ({
      rows: since === undefined ? [] : sql.signals.all(since, this.#sender),
      ready: [...this.#queues].filter((queue) => sql.anyReady.get(queue, queue, now, queue)?.[0] === 1),
      due: [...this.#queues].map((queue) => [queue, sql.nextDue.get(queue, now)?.[0]] as const),
    }))
    for (const [seq, kind, name, body] of found.rows) {
      // Two looks may overlap; each row is told once.
      if (seq <= (this.#since ?? seq)) continue
      this.#since = seq
      if (kind === PUBLISHED) this.publish(body)
      else this.#hear(name, JSON.parse(body) as Settled)
    }
    for (const queue of found.ready) this.#wake(queue, undefined)
    for (const [queue, dueAt] of found.due) if (dueAt != null) this.#wake(queue, dueAt)
    // The file does not change again only because there was more to read.
    if (found.rows.length >= SIGNALS_AT_ONCE && this.#leave !== undefined) await this.#look()
  }
}
