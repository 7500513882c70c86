import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Ground, type LoadRun } from './run-load.js'
import { type Load, type LoadBackend, loadOf, type ScenarioName } from './scenarios.js'
import { HEADER, rowOf } from './table.js'

const CHILDREN_AND_PARENT = 4

/** The scenarios of `npm run load`, small enough for every run of the tests, with the same limits. */
export function describeLoad(backend: LoadBackend): void {
  describe(`a worker on ${backend} that has more work than it can run concurrently`, () => {
    let ground: Ground
    beforeAll(async () => {
      ground = await Ground.open(backend)
      console.log(HEADER)
    })
    afterAll(() => ground?.close())

    const play = async (
      scenario: ScenarioName,
      own: Partial<Load>,
      far: Pick<LoadRun, 'proxyMs' | 'slowCommitsMs'> = {},
    ) => {
      const result = await ground.play({ scenario, load: loadOf(scenario, 1, own), ...far })
      console.log(rowOf(backend, scenario, result))
      expect(result.broken).toEqual([])
      return result.report!
    }

    it('drains a backlog of small items', async () => {
      expect(await play('drain', { items: 8_000 })).toMatchObject({ done: 8_000 })
    })

    it('drains a backlog whose results are large', async () => {
      expect(await play('results', { items: 1_200 })).toMatchObject({ done: 1_200 })
    })

    it('runs handlers that take as long as a lease', async () => {
      const own = { items: 200, handlerMs: 600, visibility: 600 }
      expect(await play('long-default', own)).toMatchObject({ done: 200 })
    })

    it('runs parents that await their children, more of them than it has places', async () => {
      expect(await play('parents', { items: 100 })).toMatchObject({ done: 100 * CHILDREN_AND_PARENT })
    })

    it('handles SIGTERM beside a chain that has no end', async () => {
      const { done, facts } = await play('chain', { seconds: 2 })
      expect(facts).toMatchObject({ pauses: 2 })
      expect(done).toBeGreaterThan(2)
    })

    it('accepts what users enqueue meanwhile', async () => {
      expect(await play('users', { items: 5_000 })).toMatchObject({ facts: { accepted: 1_500 } })
    })

    it('keeps its leases while each commit takes longer than one', async () => {
      const { done, ms } = await play('drain', { items: 250, visibility: 600 }, { slowCommitsMs: 1_000 })
      expect(done).toBe(250)
      expect(ms).toBeGreaterThanOrEqual(1_000)
    })

    // The others have no connection that could be slow.
    if (backend === 'postgres' || backend === 'redis')
      it('works on a server that is far away', async () => {
        const { done, ms } = await play('drain', { items: 2_000 }, { proxyMs: 100 })
        expect(done).toBe(2_000)
        // There and back, once for what was claimed and once for what was settled.
        expect(ms).toBeGreaterThanOrEqual(400)
      })
  })
}
