import { describe, expect, it } from 'vitest'
import { SimulationError } from '../../../src/testing/simulation/errors.js'
import { simulate } from '../../../src/testing/simulation/simulate.js'
import { faultyBackend } from '../../simulation/faulty-backend.js'
import { randomWork } from '../../simulation/scenario.js'
import { ledgerMutants } from '../ledger-mutants.js'

/** Faults of a ledger that show in what a fleet does with it, and the promise that breaks first. */
const SHOWN: readonly (readonly [fault: string, promise: RegExp])[] = [
  ['there is no fence: a stale lease settles all the same', /a stale lease settles nothing/],
  ['a repeated end takes one off the group, unconditionally', /counters are exact|closes once/],
  ['final locks nothing: the last contribution wins', /holds what was said to it/],
  ['the expected version is not compared', /holds what was said to it/],
  ['a delay is ignored', /starts after its delay/],
  ['a retry forgets its attempt', /only settled failures spend attempts/],
  ['a lapsed lease is never freed', /nothing is stuck/],
  ['the fence does not rise', /fences rise/],
]

describe('a fault in the ledger', () => {
  it.each(SHOWN)('"%s" is found by the simulation within 500 seeds', async (fault, promise) => {
    const mutant = ledgerMutants.find((one) => one.fault === fault)
    expect(mutant, 'the fault is among those of test/mutants/ledger-mutants.ts').toBeDefined()
    const backend = faultyBackend(mutant!.of)

    const found = await simulate(randomWork({ seeds: 500, backend })).then(
      () => undefined,
      (error: unknown) => error,
    )

    expect(found).toBeInstanceOf(SimulationError)
    expect((found as SimulationError).promise).toMatch(promise)
  })
})
