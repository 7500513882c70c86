import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { memoryBackend } from '../../src/backends/memory/index.js'
import { ownedBy } from '../../src/ports/find-ledger.js'
import type { Ledger } from '../../src/ports/ledger.js'
import { describeLedger } from '../../src/testing/conformance/describe-ledger.js'
import { play } from '../backends/ledger-player.js'
import { step } from '../backends/ledger-steps.js'
import { collect, failedClauses } from './collect.js'
import { insightMutants, type LedgerMutant, ledgerMutants } from './ledger-mutants.js'

function memoryLedger(now: () => number): Ledger {
  const owned = ownedBy(memoryBackend({ now }), [])
  if (!('open' in owned)) throw new Error('the memory backend has a native ledger')
  return owned.open({ prefix: 'work:' })
}

function mutantOf({ of }: Pick<LedgerMutant, 'of'>, now: () => number): Ledger {
  const ledger = memoryLedger(now)
  return { ...ledger, ...of(ledger) }
}

describe('a ledger with a fault', () => {
  it.each([...ledgerMutants, ...insightMutants])('is caught by a clause when $fault', async (mutant) => {
    const report = await collect(
      (test) =>
        describeLedger({
          name: 'mutant',
          test,
          timeoutMs: 30,
          without: ['foreign bodies', 'crash points'],
          open: (clock) => ({ ledger: mutantOf(mutant, clock.now), queue: 'default', other: 'bulk' }),
        }),
      (clause) => clause === mutant.caughtBy,
    )
    expect(failedClauses(report)).toEqual([mutant.caughtBy])
  })

  it.each(ledgerMutants.filter(({ isPlayed }) => isPlayed))('is caught by a story when $fault', async (mutant) => {
    const stories = fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), (steps) =>
      play({ open: (now) => mutantOf(mutant, now) }, steps),
    )
    // Not shrunk: that it fails is all that is asked. The same stories each time: some faults show in one of a hundred.
    const { failed } = await fc.check(stories, { numRuns: 3000, endOnFailure: true, seed: 1 })
    expect(failed).toBe(true)
  })
})
