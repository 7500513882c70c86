import type { Clock } from '../../core/time/clock.js'
import type { MaybePromise } from '../../core/time/time.js'
import { type LedgerClauseName, ledgerClauses } from './clauses.js'
import { LedgerBench } from './ledger/bench.js'
import type { LedgerUnderTest } from './ledger/under-test.js'
import { describeClauses, type SuiteOptions } from './suite.js'
import { type TestTime, testTime } from './time.js'

/** What the conformance suite of a ledger needs to know. */
export interface LedgerSuite extends SuiteOptions<LedgerClauseName> {
  /** Called for every clause, and more than once by some; must return an empty ledger that lives by this clock. */
  readonly open: (clock: Clock) => MaybePromise<LedgerUnderTest>
}

/**
 * Describes a suite that holds a ledger to its laws: guards and leases, groups and gates, holds, notifications, retention, limits,
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
      return new LedgerBench(subject, at, () => bench(testTime(options)))
    }
    try {
      await use(await bench(time))
    } finally {
      for (const subject of opened) await subject.close?.()
    }
  })
}
