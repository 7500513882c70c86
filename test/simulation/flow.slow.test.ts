import { describe, expect, it } from 'vitest'
import { defineWork, unlimitedDoer, type WorkSystemOptions } from '../../src/index.js'
import type { Faults } from '../../src/testing/simulation/faults.js'
import { simulate } from '../../src/testing/simulation/simulate.js'

const BACKLOG = 400
const LEASE_MS = 3_000

/** The backend is slow, stalls for longer than a lease, or is away; no process dies or stands still. */
const SLOW_BACKEND: Partial<Faults> = {
  lostRequests: 0.05,
  lostReplies: 0.05,
  repeatedCommits: 0.02,
  slowCalls: 0.3,
  slowestMs: 4 * LEASE_MS,
  crashesPerMinute: 0,
  restartsPerMinute: 0,
  pausesPerMinute: 0,
  outagesPerMinute: 2,
  longestOutageMs: 4 * LEASE_MS,
  clockSkewMs: 0,
}

interface Flow {
  readonly faults: Partial<Faults> | 'none'
  /** How long a handler takes. */
  readonly takesMs: number
  readonly options?: () => WorkSystemOptions
}

/** Two processes and a backlog that neither could hold. Yields the most that one of them held. */
async function flow({ faults, takesMs, options = () => ({ concurrency: 4 }) }: Flow): Promise<number> {
  let mostHeld = 0
  await simulate({
    seeds: 12,
    processes: 2,
    faults,
    troubleMs: faults === 'none' ? 0 : 60_000,
    setup: (world) => ({
      work: (process) => [
        defineWork('quick', async (_: null, ctx) => {
          for (const { system } of world.processes) mostHeld = Math.max(mostHeld, system.active().length)
          if (takesMs > 0) await process.clock.sleep(takesMs)
          return ctx.void()
        }),
      ],
      system: () => ({ visibility: LEASE_MS, pollInterval: 1_000, ...options() }),
      run: async () => {
        const { system } = world.processes[0]!
        for (let n = 0; n < BACKLOG; n += 1)
          system
            .enqueue(world.work('quick', null))
            .accepted()
            .catch(() => undefined)
      },
      check: () => {
        if (faults !== 'none') return
        for (const { id, fence, settledNth } of world.runs()) {
          world.expect(settledNth !== undefined, `the outcome of ${id}#${fence} counts`)
          world.expect(fence === 1, `${id} keeps its first lease, and had ${fence}`)
        }
      },
    }),
  })
  return mostHeld
}

describe('a large backlog', () => {
  it('in peace: no lease is lost, nothing runs twice, and no process holds more than its window', async () => {
    expect(await flow({ faults: 'none', takesMs: 50 })).toBeLessThanOrEqual(100)
  })

  it('with a backend that is slow, stalls and loses replies: nothing is lost, and the window holds', async () => {
    expect(await flow({ faults: SLOW_BACKEND, takesMs: 50 })).toBeLessThanOrEqual(130)
  })

  it('with handlers that take no time, and places without number', async () => {
    const options = () => ({ doer: unlimitedDoer({ available: 32 }) })
    expect(await flow({ faults: SLOW_BACKEND, takesMs: 0, options })).toBeLessThanOrEqual(200)
  })
})
