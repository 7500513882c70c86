import { describe, it } from 'vitest'
import type { MaybePromise } from '../../../../src/core/time/time.js'
import { registerClauses } from '../../../../src/testing/conformance/clause.js'
import { StacksBench, type StacksUnderTest } from './bench.js'
import { captureClauses } from './capture-clauses.js'
import { documentClauses } from './document-clauses.js'
import { durableClauses } from './durable-clauses.js'
import { queryClauses } from './query-clauses.js'
import { transactionClauses } from './transaction-clauses.js'

const stacksClauses = {
  ...documentClauses,
  ...queryClauses,
  ...transactionClauses,
  ...captureClauses,
  ...durableClauses,
}

interface StacksSuite {
  /** The name in titles and failures. */
  readonly name: string
  /** Called for every clause: an empty store. */
  readonly open: () => MaybePromise<StacksUnderTest>
}

/**
 * Holds a backend of Stacks to its obligations, through the API that plugins use: documents, queries, transactions, change
 * capture and durable watchers. It takes real time where processes wake each other.
 */
export function describeStacks({ name, open }: StacksSuite): void {
  describe(`${name}: stacks`, () => {
    registerClauses<StacksBench>({ describe, it }, name, stacksClauses, {}, async (use) => {
      const bench = new StacksBench(await open())
      try {
        await use(bench)
      } finally {
        await bench.close()
      }
    })
  })
}
