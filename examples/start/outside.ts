import Database from 'better-sqlite3'
import { PoisonError } from 'millrace'
import { BUSY_TERMINAL_ATTEMPTS, PRICES, STREETS } from './plan.js'

// The world that the handlers meet: a bank, a printer, a store room, a board on the wall. It behaves badly on purpose, and the same
// way in every run. It has its own file, because none of it is Millrace's: what happened here cannot be rolled back.

/** Something that happened outside. */
export interface Effect {
  readonly kind: string
  readonly subject: string
  readonly amount: number
}

/** What happened, and how often it was asked for. */
export interface EffectSum {
  readonly kind: string
  readonly effects: number
  readonly amount: number
  readonly calls: number
}

const TABLES = `
  create table if not exists van (one integer primary key check (one = 1), called_at integer not null);
  create table if not exists call (key text not null, kind text not null, pid integer not null, at integer not null);
  create table if not exists effect (key text not null, kind text not null, subject text not null, amount integer not null,
    at integer not null);
  create index if not exists effect_key on effect (key);
  create table if not exists board (place text primary key, says text not null, fence integer not null);`

export class Outside {
  readonly #db: Database.Database

  constructor(file: string) {
    this.#db = new Database(file, { timeout: 10_000 })
    this.#db.pragma('journal_mode = wal')
    this.#db.exec(TABLES)
  }

  /**
   * Makes something happen, once for each key: it is how a good bank takes payments. Called again with the same key, it does
   * nothing and answers false. Give it what stays the same when a handler runs again: `ctx.id` of an item, `ctx.idempotencyKey` of
   * an engine; never the attempt, the fence or the time.
   */
  once(key: string, { kind, subject, amount }: Effect): boolean {
    const db = this.#db
    return db
      .transaction(() => {
        db.prepare('insert into call values (?, ?, ?, ?)').run(key, kind, process.pid, Date.now())
        if (db.prepare('select 1 from effect where key = ?').get(key) !== undefined) return false
        db.prepare('insert into effect values (?, ?, ?, ?, ?)').run(key, kind, subject, amount, Date.now())
        return true
      })
      .immediate()
  }

  /**
   * Writes on the board what is true now. Writing it twice does no harm; writing it *late* would: a run that lost its lease might
   * wake up and wipe out what its successor wrote. `ctx.fence` rises with every lease, so the board keeps the highest.
   */
  write(place: string, says: string, fence: number): boolean {
    const { changes } = this.#db
      .prepare(
        `insert into board values (?, ?, ?) on conflict (place) do update set says = excluded.says, fence = excluded.fence
           where excluded.fence >= board.fence`,
      )
      .run(place, says, fence)
    return changes > 0
  }

  /** How long until the van comes, counted from the first call. 0: it is there. */
  msUntilVan(comesAfterMs: number): number {
    this.#db.prepare('insert into van values (1, ?) on conflict do nothing').run(Date.now())
    const van = this.#db.prepare<[], { calledAt: number }>('select called_at as calledAt from van').get()
    return Math.max(0, (van?.calledAt ?? 0) + comesAfterMs - Date.now())
  }

  /** Everything that happened, for the books. */
  effects(): readonly Effect[] {
    return this.#db.prepare<[], Effect>('select kind, subject, amount from effect order by at, key').all()
  }

  board(): ReadonlyMap<string, string> {
    const rows = this.#db.prepare<[], { place: string; says: string }>('select place, says from board').all()
    return new Map(rows.map(({ place, says }) => [place, says]))
  }

  sums(): readonly EffectSum[] {
    return this.#db
      .prepare<[], EffectSum>(
        `select kind, count(*) as effects, sum(amount) as amount,
           (select count(*) from call where call.kind = effect.kind) as calls
         from effect group by kind order by min(rowid)`,
      )
      .all()
  }

  close(): void {
    this.#db.close()
  }
}

/** What one costs, in cents. */
export function priceOf(bread: string): number {
  const price = PRICES[bread]
  if (price === undefined) throw new PoisonError(`nobody here can bake "${bread}"`)
  return price
}

/** The card terminal does not answer at first. The shape of an error from an HTTP client: its status says that it may pass. */
export function callTerminal(attempt: number): void {
  if (attempt <= BUSY_TERMINAL_ATTEMPTS)
    throw Object.assign(new Error('the card terminal does not answer'), { status: 503 })
}

export function findStreet(street: string): string {
  if (!STREETS.includes(street)) throw new PoisonError(`there is no street "${street}"`)
  return street
}
