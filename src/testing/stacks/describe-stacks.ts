import type { MaybePromise } from '../../core/time/time.js'
import { checkStanding, registerClauses } from '../conformance/clause.js'
import { runnerFrom, type TestRunner } from '../conformance/runner.js'
import { StacksBench, type StacksUnderTest } from './bench.js'
import { captureClauses } from './capture-clauses.js'
import { documentClauses } from './document-clauses.js'
import { durableClauses } from './durable-clauses.js'
import { queryClauses } from './query-clauses.js'
import { transactionClauses } from './transaction-clauses.js'

const stacksClauses = Object.freeze({
  ...documentClauses,
  ...queryClauses,
  ...transactionClauses,
  ...captureClauses,
  ...durableClauses,
})

/** The name of an obligation of a Stacks backend. */
export type StacksClauseName = keyof typeof stacksClauses

/** Options of {@link describeStacks}. */
export interface StacksSuite {
  /** The name in titles and failures: `mongo`. */
  readonly name: string
  /** Called for every clause: an empty store. */
  readonly open: () => MaybePromise<StacksUnderTest>
  /** Clauses it cannot keep, each with the reason that users should read. */
  readonly waived?: Readonly<Partial<Record<StacksClauseName, string>>>
  /** The functions of your test runner. Default: the globals `describe` and `it`. */
  readonly test?: TestRunner
}

/**
 * Describes a suite that holds a backend of Stacks to its obligations, through the API that plugins use: documents, queries,
 * transactions, change capture and durable watchers. It takes real time where processes wake each other.
 *
 * @example
 * ```ts
 * describeStacks({
 *   name: 'memory',
 *   test: { describe, it },
 *   open: () => {
 *     const space = new MemorySpace()
 *     return { backend: () => memoryStacks({ space }) }
 *   },
 * })
 * ```
 */
export function describeStacks(options: StacksSuite): void {
  const test = runnerFrom(options.test, 'describeStacks')
  const waived = options.waived ?? {}
  checkStanding('describeStacks', { waived }, Object.keys(stacksClauses))
  test.describe(`${options.name}: stacks`, () => {
    registerClauses<StacksBench>(test, options.name, stacksClauses, { waived }, async (use) => {
      const bench = new StacksBench(await options.open())
      try {
        await use(bench)
      } finally {
        await bench.close()
      }
    })
  })
}
