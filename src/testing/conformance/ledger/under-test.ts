import { MillraceError } from '../../../core/error.js'
import type { MaybePromise } from '../../../core/time/time.js'
import type { Ledger } from '../../../ports/ledger.js'
import type { Fate } from '../mortal.js'
import type { TestTime } from '../time.js'

/** A ledger in a process that dies, or fails, at a given call of its ports. */
export interface MortalLedger {
  readonly ledger: Ledger
  readonly hasMet: () => boolean
  readonly death: Promise<void>
}

/** A ledger as the suite needs it. List what you leave out in `without`. */
export interface LedgerUnderTest {
  readonly ledger: Ledger
  /** The name of one of its queues. */
  readonly queue: string
  /** The name of another one (`named queues`). */
  readonly other?: string
  /** The ledger of another process on the same data. Default: the same one. */
  again?(): MaybePromise<Ledger>
  /** Puts a body on `queue` past the ledger (`foreign bodies`). */
  pushRaw?(body: string): MaybePromise<void>
  /** The ledger of another process on the same data, one call of which goes wrong (`crash points`). */
  mortal?(fate: Fate): MaybePromise<MortalLedger>
  close?(): MaybePromise<void>
}

/** The same ledger, whose calls may wait on the clock while a clause waits for them. */
export function inTime(ledger: Ledger, time: TestTime): Ledger {
  const { atomic, limits, inspect } = ledger
  return {
    atomic,
    limits,
    ...(inspect === undefined ? {} : { inspect }),
    claim: (ask) => time.through(ledger.claim(ask)),
    extend: (held, leaseMs, me) => time.through(ledger.extend(held, leaseMs, me)),
    ...(ledger.removeWorker === undefined
      ? {}
      : { removeWorker: (id: string) => time.through(ledger.removeWorker!(id)) }),
    commit: (batch) => time.through(ledger.commit(batch)),
    read: (ids) => time.through(ledger.read(ids)),
    groups: (ids) => time.through(ledger.groups(ids)),
    watch: (inbox, what) => time.through(ledger.watch(inbox, what)),
    onReady: (wake) => ledger.onReady(wake),
    onInbox: (inbox, hear) => ledger.onInbox(inbox, hear),
    ...(ledger.paused === undefined ? {} : { paused: (among) => time.through(ledger.paused!(among)) }),
    ...(ledger.markStarted === undefined
      ? {}
      : { markStarted: (leases) => time.through(Promise.resolve(ledger.markStarted?.(leases))) }),
  }
}

export function missing(member: string, capability: string): never {
  throw new MillraceError(
    'SUITE_INCOMPLETE',
    `open() returned no \`${member}\`, which this clause needs. Provide it, or give the suite without: ['${capability}'].`,
  )
}
