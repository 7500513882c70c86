import type { At, Ms } from '../../core/time.js'
import type { LeaseClock } from './lease-clock.js'
import type { Statements } from './sql.js'

/**
 * When leases end, as the tables have it: in the time of the lease clock. Everything outside speaks wall time; this is the border.
 * The file knows in which run of the clock its leases were given, and those of another run are over.
 */
export class Leases {
  readonly #find: () => LeaseClock
  #found: LeaseClock | undefined

  /** The clock is looked for with the first lease, because that may take a call to the system. */
  constructor(find: () => LeaseClock) {
    this.#find = find
  }

  /** The time to write leases in, and to compare them with, inside a write transaction. */
  now(sql: Statements): Ms {
    const clock = this.#clock
    const now = clock.now()
    // Asked for every time: what this transaction says about the boot is only true if it commits.
    if (!isOfThisBoot(sql, clock)) {
      sql.endItemLeases.run(now)
      sql.endMessageLeases.run(now)
      sql.sayBoot.run(clock.boot)
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
