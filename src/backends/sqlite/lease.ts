import { stringifyWithInfinity } from '../../core/codec/infinite-json.js'
import { isWellFormed } from '../../core/text/well-formed.js'
import type { At, Ms } from '../../core/time/time.js'
import type { Lease } from '../../ports/item.js'
import type { LeaseStatus, WorkerRecord } from '../../ports/ledger.js'
import type { LeaseClock } from './lease-clock.js'
import { listOf } from './places.js'
import type { Statements } from './sql.js'

export interface Held {
  readonly lease: Lease
  readonly running: boolean
  readonly progress?: string
}

/** Heartbeats of many leases, with the record of the process that holds them. */
export function extendLeases(
  sql: Statements,
  held: readonly Held[],
  leaseMs: Ms,
  me: WorkerRecord,
  maxProgressBytes: number,
  now: At,
  leases: Leases,
): LeaseStatus[] {
  const settings = me.settings === undefined ? null : stringifyWithInfinity(me.settings)
  sql.putWorker.run(me.id, me.host, me.version, JSON.stringify(me.types), JSON.stringify(me.queues), settings, now)
  const until = leases.now(sql) + leaseMs
  const touched = new Set<number>()
  const statuses = held.map(({ lease, running, progress }): LeaseStatus => {
    const found = sql.heldRow.get(lease.id, lease.token)
    if (found === undefined) return 'lost'
    const [seq, cancelled, no] = found
    touched.add(no)
    // The engine has checked the size and reported it; here it only must not pile up.
    const kept =
      progress !== undefined && progress.length <= maxProgressBytes && isWellFormed(progress) ? progress : null
    sql.extendItem.run(until, Number(running), seq)
    if (kept !== null) sql.setProgress.run(kept, seq)
    return cancelled === null ? 'held' : 'cancelled'
  })
  sql.shortenLeases.run(until, listOf([...touched]), until)
  return statuses
}

/**
 * Converts the end of leases between the time of the lease clock, which the tables store, and wall time, which everything else
 * uses. The file stores in which run of the clock its leases were given; those of another run have ended.
 */
export class Leases {
  readonly #find: () => LeaseClock
  #found: LeaseClock | undefined

  /** The clock is chosen with the first lease, because that may take a call to the system. */
  constructor(find: () => LeaseClock) {
    this.#find = find
  }

  /** The time to write leases in, and to compare them with, inside a write transaction. */
  now(sql: Statements): Ms {
    const clock = this.#clock
    const now = clock.now()
    // Asked for every time: what this transaction says about the boot is only true if it commits.
    if (!isOfThisBoot(sql, clock)) {
      sql.endHeld.run(now)
      sql.endLeases.run(now)
      sql.endMessageLeases.run(now)
      sql.setBoot.run(clock.boot)
    }
    return now
  }

  /** Turns the stored end of a lease into wall time, for people and waiters who read at `wallNow`. */
  reader(sql: Statements, wallNow: At): (until: Ms) => At {
    let ahead: Ms | undefined
    let isOver = false
    return (until) => {
      if (ahead === undefined) {
        const clock = this.#clock
        ahead = wallNow - clock.now()
        isOver = !isOfThisBoot(sql, clock)
      }
      return isOver ? wallNow : until + ahead
    }
  }

  get #clock(): LeaseClock {
    this.#found ??= this.#find()
    return this.#found
  }
}

function isOfThisBoot(sql: Statements, { boot }: LeaseClock): boolean {
  return sql.boot.get()?.[0] === boot
}
