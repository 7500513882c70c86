import { describe, expect, it } from 'vitest'
import { chaos } from './chaos.js'
import { faultsOn } from './options.js'
import { SmallDisk } from './small-disk.js'
import { brokenIn, tableOf } from './table.js'

// The short form, with every kind of fault. It really takes its time: processes and servers die in the middle of what they do.
describe.each(['sqlite', 'postgres', 'redis'] as const)('a fleet on %s to which everything happens', (backend) => {
  it('loses nothing that was accepted, and does nothing twice', async () => {
    const seed = Date.now() % 1_000_000
    const faults = faultsOn(backend).filter((fault) => fault !== 'disk' || SmallDisk.isPossible())
    const report = await chaos({
      backend,
      seconds: 7,
      workers: 3,
      producers: 1,
      leaseMs: 2_000,
      everyMs: Object.fromEntries(faults.map((fault) => [fault, EVERY_MS[fault]])),
      perSecond: 60,
      seed,
    })
    console.log(`${backend}, seed ${seed}\n${tableOf(report)}`)

    expect(brokenIn(report)).toEqual([])
    expect(report.accepted).toBeGreaterThan(0)
    expect(faults.filter((fault) => report.faults[fault] === 0)).toEqual([])
  })
})

const EVERY_MS = {
  kills: 1_500,
  restarts: 4_000,
  crashers: 60_000,
  sigstop: 2_500,
  cuts: 1_200,
  replies: 1_200,
  locks: 1,
  clock: 2_500,
  disk: 3_000,
}
