import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { chaos } from './chaos.js'
import { faultsOf, tableOf } from './table.js'

// The short form. It really takes its time: processes and servers die in the middle of what they do.
describe.each(['sqlite', 'postgres', 'redis'] as const)('a fleet on %s whose processes are killed', (backend) => {
  it('loses nothing that was accepted, and does nothing twice', async () => {
    const seed = Date.now() % 1_000_000
    const report = await chaos({
      backend,
      seconds: 6,
      workers: 2,
      producers: 1,
      killEveryMs: 1_000,
      serverRestarts: 1,
      perSecond: 100,
      random: seededRandom(seed),
    })
    console.log(`${backend}, seed ${seed}\n${tableOf(report)}`)

    expect(faultsOf(report)).toEqual([])
    expect(report.accepted).toBeGreaterThan(0)
    expect(report.kills).toBeGreaterThanOrEqual(4)
  })
})
