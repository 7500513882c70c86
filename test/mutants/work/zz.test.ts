import { it } from 'vitest'
import { simulate } from '../../../src/testing/simulation/simulate.js'
import { faultyBackend } from '../../simulation/faulty-backend.js'
import { randomWork } from '../../simulation/scenario.js'
import { ledgerMutants } from '../ledger-mutants.js'

for (const { fault, of } of ledgerMutants) {
  it(fault, async () => {
    const e = await simulate(randomWork({ seeds: 150, backend: faultyBackend(of) })).then(
      () => undefined,
      (error) => error,
    )
    console.log(e === undefined ? `NOT ${fault}` : `caught "${fault}" by ${e.message.split('\n')[0]}`)
  }, 120_000)
}
