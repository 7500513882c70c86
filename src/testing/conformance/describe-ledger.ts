import type { Clock } from '../../core/clock.js'
import { MillraceError } from '../../core/error.js'
import type { Maybe } from '../../core/time.js'
import type { Ledger } from '../../ports/ledger.js'
import { type LedgerClauseName, ledgerClauses } from './clauses.js'
import type { LedgerBench, MortalLedger } from './ledger/bench.js'
import type { Fate } from './mortal.js'
import { describeClauses, type SuiteOptions } from './suite.js'
import { type TestTime, testTime } from './time.js'

/** A ledger as the suite needs it. What is left out must stand in `without`. */
export interface LedgerUnderTest {
  readonly ledger: Ledger
  /** The name of a queue of it. */
  readonly queue: string
  /** The name of another one (`named queues`). */
  readonly other?: string
  /** The ledger of another process on the same data. Default: the same one. */
  again?(): Maybe<Ledger>
  /** Puts a body on `queue` past the ledger (`foreign bodies`). */
  pushRaw?(body: string): Maybe<void>
  /** The ledger of another process on the same data, one call of which goes wrong (`crash points`). */
  mortal?(fate: Fate): Maybe<MortalLedger>
  close?(): Maybe<void>
}

/** What the conformance suite of a ledger needs to know. */
export interface LedgerSuite extends SuiteOptions<LedgerClauseName> {
  /** Called for every clause, and more than once by some; must return an empty ledger that lives by this clock. */
  readonly open: (clock: Clock) => Maybe<LedgerUnderTest>
}

/**
 * Describes a suite that holds a ledger to its laws: guards and leases, groups and gates, holds, signals, retention, limits,
 * and what a crash may leave behind.
 *
 * @example
 * ```ts
 * describeLedger({ name: 'mine', open: (clock) => ({ ledger: openMyLedger({ clock }), queue: 'default' }) })
 * ```
 */
export function describeLedger(options: LedgerSuite): void {
  describeClauses('describeLedger', 'ledger', options, ledgerClauses, async (time, use) => {
    const opened: LedgerUnderTest[] = []
    const bench = async (at: TestTime): Promise<LedgerBench> => {
      const subject = await options.open(at.clock)
      opened.push(subject)
      return benchOn(subject, at, () => bench(testTime(options)))
    }
    try {
      await use(await bench(time))
    } finally {
      for (const subject of opened) await subject.close?.()
    }
  })
}

function benchOn(subject: LedgerUnderTest, time: TestTime, fresh: () => Promise<LedgerBench>): LedgerBench {
  const ledger = inTime(subject.ledger, time)
  return {
    ledger,
    queue: subject.queue,
    time,
    fresh,
    again: async () => (subject.again === undefined ? ledger : inTime(await subject.again(), time)),
    other: () => subject.other ?? missing('other', 'named queues'),
    pushRaw: async (body) => (subject.pushRaw ?? missing('pushRaw', 'foreign bodies'))(body),
    mortal: async (fate) => {
      const mortal = await (subject.mortal ?? missing('mortal', 'crash points'))(fate)
      return { ...mortal, ledger: inTime(mortal.ledger, time) }
    },
  }
}

/** The same ledger, whose calls may wait on the clock while a clause waits for them. */
function inTime(ledger: Ledger, time: TestTime): Ledger {
  const { atomic, limits, inspect } = ledger
  return {
    atomic,
    limits,
    ...(inspect === undefined ? {} : { inspect }),
    claim: (ask) => time.through(ledger.claim(ask)),
    extend: (held, leaseMs, me) => time.through(ledger.extend(held, leaseMs, me)),
    ...(ledger.leave === undefined ? {} : { leave: (id: string) => time.through(ledger.leave!(id)) }),
    commit: (batch) => time.through(ledger.commit(batch)),
    read: (ids) => time.through(ledger.read(ids)),
    groups: (ids) => time.through(ledger.groups(ids)),
    watch: (inbox, what) => time.through(ledger.watch(inbox, what)),
    onReady: (wake) => ledger.onReady(wake),
    onInbox: (inbox, hear) => ledger.onInbox(inbox, hear),
    ...(ledger.paused === undefined ? {} : { paused: (among) => time.through(ledger.paused!(among)) }),
    ...(ledger.begin === undefined ? {} : { begin: (leases) => time.through(Promise.resolve(ledger.begin?.(leases))) }),
  }
}

function missing(member: string, capability: string): never {
  throw new MillraceError(
    'SUITE_INCOMPLETE',
    `open() returned no \`${member}\`, which this clause needs. Provide it, or give the suite without: ['${capability}'].`,
  )
}
