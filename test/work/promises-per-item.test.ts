import { describe, expect, it } from 'vitest'
import { createWork, defineWork } from '../../src/index.js'
import { FakeClock } from '../../src/testing/index.js'
import { promisesOf } from '../support/promises-of.js'

const ITEMS = 2_000

describe('work whose handler returns immediately', () => {
  it('costs hardly a promise per item, neither to enqueue many of them nor to run them', async () => {
    let ran = 0
    const noop = defineWork('noop', (_n: number) => {
      ran += 1
    })
    // Its event loop needs no turns, which cost a promise each, and more of them the busier the machine is.
    const clock = new FakeClock()
    const w = createWork({ work: [noop], autoStart: false, clock })
    const works = Array.from({ length: ITEMS }, (_, n) => noop(n))

    const toEnqueue = await promisesOf(() => w.enqueueMany(works))
    const toRun = await promisesOf(async () => {
      w.start()
      while (ran < ITEMS) await clock.settle()
    })
    await w.stop()

    expect(ran).toBe(ITEMS)
    expect(toEnqueue / ITEMS).toBeLessThan(0.5)
    // The doer awaits the end of each task.
    expect(toRun / ITEMS).toBeLessThan(3)
  })
})
