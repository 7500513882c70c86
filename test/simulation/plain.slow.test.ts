import { describe, expect, it } from 'vitest'
import { simulate } from '../../src/testing/simulation/simulate.js'
import { randomWork } from './scenario.js'

/**
 * What is weaker than on a native ledger, and is not asked for here:
 * - every process goes by its own clock, so that clocks are off by less than half a second only;
 * - work that skips the queue lives in its process until it has failed once, so that none does;
 * - an enqueue that failed may have been done by half, so that a producer which tries again enqueues new work;
 * - a handler may be started under a lease that has just been lost, and of two runs of one item the one that lost its
 *   lease may write last, so that runs which succeed all do the same, and what is told of an item that ran twice may differ;
 * - an item that folded into its group and then died stays in the group's value.
 */
describe('a fleet on plain ports, under every kind of trouble', () => {
  it('keeps its promises', async () => {
    const report = await simulate(randomWork({ ground: 'plain', seeds: 80 }))

    expect(report.seeds).toBe(80)
  })
})

/**
 * Besides: without `incrementOnce`, a crash between a marker and its count leaves a group open, or closes it early; without
 * `compareAndSet`, a fold that takes longer than its lock holds may be lost.
 */
describe('a fleet on ports that can do no more than they must', () => {
  it('keeps its promises, but for counts and values of groups', async () => {
    const report = await simulate(randomWork({ ground: 'minimal', seeds: 40 }))

    expect(report.seeds).toBe(40)
  })
})
