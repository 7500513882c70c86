import { MillraceError } from '../core/error.js'
import type { Clock } from '../core/time/clock.js'
import type { MaybePromise, Ms } from '../core/time/time.js'
import type { CapabilityName } from '../source/inlets/subscription.js'
import { checkWaivers, registerClauses } from './conformance/clause.js'
import { runnerFrom, type TestRunner } from './conformance/runner.js'
import { type TestTime, type TimeOptions, testTime } from './conformance/time.js'
import { InletBench, type InletUnderTest } from './inlet/bench.js'
import type { InletNeed } from './inlet/clause.js'
import { type InletClauseName, inletClauses } from './inlet/clauses.js'

export type { InletUnderTest } from './inlet/bench.js'
export type { InletClauseName } from './inlet/clauses.js'

/** Options of {@link describeInlet}. */
export interface InletSuite extends TimeOptions {
  /** The name in titles and failures: `kafka`. */
  readonly name: string
  /** Called for every clause, and more than once by some: an empty stream that lives by this clock and leases for so long. */
  readonly open: (setup: { readonly clock: Clock; readonly leaseMs: Ms }) => MaybePromise<InletUnderTest>
  /**
   * What this inlet, as configured, does not have: capabilities of its subscriptions, `'delivery count'`, `'redelivery'`. The
   * clauses that need it are skipped, visibly, and the suite checks that it is true.
   */
  readonly without?: readonly InletNeed[]
  /** Clauses it cannot keep, each with the reason that users should read. */
  readonly waived?: Readonly<Partial<Record<InletClauseName, string>>>
  /** The functions of your test runner. Default: the globals `describe` and `it`. */
  readonly test?: TestRunner
}

/** How long messages are leased in the suite, in ticks. */
const LEASE_TICKS = 4

/**
 * Describes a suite that holds an inlet to its obligations: what each result does, redelivery and its count, leases, aborts,
 * draining, and every capability that it claims.
 *
 * @example
 * ```ts
 * describeInlet({
 *   name: 'memory',
 *   test: { describe, it },
 *   open: ({ clock, leaseMs }) => {
 *     const inlet = new MemInlet({ clock, leaseMs })
 *     return { inlet, publish: (...values) => void inlet.queue(...values.map((value) => ({ value }))) }
 *   },
 * })
 * ```
 */
export function describeInlet(options: InletSuite): void {
  const test = runnerFrom(options.test, 'describeInlet')
  const { waived = {} } = options
  checkWaivers('describeInlet', waived, Object.keys(inletClauses))
  const without = [...(options.without ?? []), ...(options.realTime === true ? (['exact time'] as const) : [])]
  test.describe(`${options.name}: inlet`, () => {
    registerClauses<InletBench>(test, options.name, inletClauses, { waived, without }, (use) => onBench(options, use))
    test.it('inlet: lacks the capabilities listed in without', () =>
      onBench(options, async (bench) => checkWithout(bench, without)),
    )
  })
}

/** A capability that is there after all must be tested: skipping it would hide what users rely on. */
async function checkWithout(bench: InletBench, without: readonly InletNeed[]): Promise<void> {
  for (const need of without) {
    if (need === 'delivery count' || need === 'redelivery' || need === 'exact time') continue
    if (bench.sub.capability(need satisfies CapabilityName) === undefined) continue
    throw new MillraceError('SUITE_INCOMPLETE', `without: the subscription does have ${need}. Remove it from the list.`)
  }
}

/** Opens what a clause needs, and closes it whatever happens. */
async function onBench(options: InletSuite, use: (bench: InletBench) => Promise<void>): Promise<void> {
  const opened: InletUnderTest[] = []
  const open = async (time: TestTime): Promise<InletBench> => {
    const leaseMs = time.ms(LEASE_TICKS)
    const subject = await options.open({ clock: time.clock, leaseMs })
    opened.push(subject)
    const sub = await subject.inlet.subscribe(subject.config ?? { topics: ['conformance'] })
    return new InletBench(subject, sub, time, leaseMs, () => open(time))
  }
  try {
    await use(await open(testTime(options)))
  } finally {
    for (const subject of opened) {
      await subject.inlet.close()
      await subject.close?.()
    }
  }
}
