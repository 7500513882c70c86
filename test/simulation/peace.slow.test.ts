import { describe, expect, it } from 'vitest'
import { defineWork, WorkDelayError } from '../../src/index.js'
import type { SimulationOptions } from '../../src/testing/simulation/options.js'
import { simulate } from '../../src/testing/simulation/simulate.js'
import type { World } from '../../src/testing/simulation/world.js'

/** Calls take up to 8 ms each way: so many of them one after the other, and a little. */
const PROMPTLY_MS = 100

interface Errand {
  readonly takesMs: number
  /** What it does at each of its leases: fails, or asks for later; then it succeeds. */
  readonly first: readonly ('fail' | 'defer')[]
}

/** A fleet in which nothing goes wrong but the work itself. */
function errands(check: (world: World) => void): SimulationOptions {
  return {
    seeds: 40,
    faults: 'none',
    troubleMs: 0,
    setup: (world) => ({
      work: (process) => [
        defineWork('errand', async ({ takesMs, first }: Errand, ctx) => {
          if (takesMs > 0) await process.clock.sleep(takesMs)
          const now = first[ctx.fence - 1]
          if (now === 'fail') throw new Error('not yet')
          if (now === 'defer') throw new WorkDelayError({ delay: 300 })
          return ctx.result(ctx.id, { append: (all: string | undefined) => `${all ?? ''}${ctx.id}` })
        }),
      ],
      system: { visibility: 3_000, pollInterval: 60_000, retry: { attempts: 4, base: 200 } },
      run: async () => {
        for (let n = 0; n < 12; n += 1) {
          const { system } = world.processes[n % world.processes.length]!
          const takesMs = [0, 5, 1_000, 8_000][Math.floor(world.random() * 4)]!
          const first = (['fail', 'defer', 'fail'] as const).filter(() => world.random() < 0.4)
          const handle = system.enqueue(world.work('errand', { takesMs, first } satisfies Errand))
          const wait = () => {
            handle.result().catch(() => undefined)
            if (n % 2 === 0) handle.group().catch(() => undefined)
          }
          // Before it is sent, while it is under way, or after it was accepted.
          const whenMs = [0, 1, 3, 20][n % 4]!
          if (whenMs === 0) wait()
          else world.clock.after(whenMs, wait)
          await world.clock.sleep(Math.floor(world.random() * 500))
        }
      },
      check: () => check(world as World),
    }),
  }
}

describe('a fleet in peace', () => {
  it('loses no lease: every run counts, however long it takes', async () => {
    const report = await simulate(
      errands((world) => {
        for (const { id, fence, settledNth } of world.runs()) {
          world.expect(settledNth !== undefined, `the outcome of ${id}#${fence} counts`)
        }
        for (const { id, ends } of world.history.items.values()) {
          world.expect(ends[0]?.ending === 'completed', `${id} is done in the end`)
        }
      }),
    )

    expect(report.runs).toBeGreaterThan(report.items * 1.5)
  })

  it('notifies waiting callers immediately', async () => {
    await simulate(
      errands((world) => {
        for (const { kind, id, sinceMs, settled } of world.history.waits) {
          const endedMs = world.history.items.get(id)?.ends[0]?.ms ?? Infinity
          const afterMs = (settled?.ms ?? Infinity) - Math.max(endedMs, sinceMs)
          world.expect(afterMs <= PROMPTLY_MS, `the ${kind} of ${id} is told promptly, not after ${afterMs} ms`)
        }
      }),
    )
  })

  it('starts work when it is due, long before its poll', async () => {
    await simulate(
      errands((world) => {
        for (const { id, offeredMs, runs } of world.history.items.values()) {
          const afterMs = runs[0]!.startedMs - offeredMs!
          world.expect(afterMs <= PROMPTLY_MS, `${id} starts promptly, not after ${afterMs} ms`)
        }
      }),
    )
  })
})
