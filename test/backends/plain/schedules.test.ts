import { describe, expect, it } from 'vitest'
import type { Settlement } from '../../../src/ports/settlement.js'
import { complete, enqueue, item } from './settlements.js'
import { world } from './world.js'

const fire = (at: number | undefined, nextAt: number, id?: string): Settlement => ({
  guard: { by: 'schedule', name: 's', at },
  effects: [
    { do: 'schedule', name: 's', spec: 'spec', nextAt },
    ...(id === undefined ? [] : enqueue(item(id)).effects),
  ],
})

describe.each(['all', 'documented', 'minimal'] as const)('an occurrence on %s ports', (powers) => {
  it.each(['push', 'pushMany', 'set', 'setMany', 'increment', 'incrementOnce'])(
    // W12
    'whose %s was done, and its answer lost, is there once: counted, run and known',
    async (name) => {
      const { ports, commit, claim, get, ledger } = world(powers)
      await commit(fire(undefined, 100))
      let failures = 1
      ports.fault = (call) => (call.name === name && failures-- > 0 ? 'after' : undefined)
      const first = await commit(fire(100, 200, 'a'))
      // It may run before the caller repeats what seems to have failed.
      const early = await claim()
      for (const one of early) await commit(complete(one, '1'))
      const second = first.kind === 'failed' ? await commit(fire(100, 200, 'a')) : first
      for (const one of await claim()) await commit(complete(one, '1'))

      expect(second.kind).toBe('applied')
      expect(await claim()).toEqual([])
      expect((await ledger.read(['a']))[0]).toMatchObject({ status: 'completed', result: '1' })
      expect(await get('group:g-a:open')).toBe('0')
      expect(await ledger.schedules!(['s'])).toMatchObject([{ nextAt: 200 }])
    },
  )

  // W12
  it('that could not be counted, written or pushed at all leaves nothing that stays when it is tried again', async () => {
    for (const name of ['push', 'pushMany', 'set', 'setMany', 'increment', 'incrementOnce']) {
      const { ports, commit, claim, get } = world(powers)
      await commit(fire(undefined, 100))
      let failures = 1
      ports.fault = (call) => (call.name === name && failures-- > 0 ? 'before' : undefined)
      const first = await commit(fire(100, 200, 'a'))
      if (first.kind === 'failed') await commit(fire(100, 200, 'a'))
      const claimed = await claim()
      expect([name, claimed.map(({ lease }) => lease.id)]).toEqual([name, ['a']])
      await commit(complete(claimed[0]!))
      expect([name, await get('group:g-a:open')]).toEqual([name, '0'])
    }
  })
})

describe('a schedule', () => {
  const fire = (at: number | undefined, nextAt: number, id: string): Settlement => ({
    guard: { by: 'schedule', name: 'nightly', at },
    effects: [{ do: 'schedule', name: 'nightly', spec: '0 3 * * *', nextAt }, ...enqueue(item(id)).effects],
  })

  it('fires once per fleet, and its claim is that of the seed: one key per second', async () => {
    for (const powers of ['all', 'documented', 'minimal'] as const) {
      const { commit, again, get, claim } = world(powers)
      expect(await commit(fire(undefined, 60_000, 'first'))).toMatchObject({ kind: 'applied' })
      const others = [again(), again(), again()]
      const results = await Promise.all(others.map((one) => one.commit([fire(60_000, 120_000, 'second')])))
      expect(
        results
          .flat()
          .map(({ kind }) => kind)
          .toSorted(),
      ).toEqual(['applied', 'stale', 'stale'])
      expect(await get('sched:nightly:60')).toBeDefined()
      expect(JSON.parse((await get('sched:nightly:next'))!)).toEqual({ spec: '0 3 * * *', nextAt: 120_000 })
      expect((await claim()).map(({ lease }) => lease.id)).toEqual(['first', 'second'])
    }
  })

  it('whose enqueue failed fires when it is repeated, and by another once the claim has run out', async () => {
    const { commit, again, ports, clock, claim } = world()
    await commit(fire(undefined, 60_000, 'first'))
    ports.fault = ({ name }) => (name === 'push' ? 'before' : undefined)
    expect(await commit(fire(60_000, 120_000, 'second'))).toMatchObject({ kind: 'failed' })
    const other = again()
    expect((await other.commit([fire(60_000, 120_000, 'second')]))[0]).toEqual({ kind: 'stale' })
    await clock.advance(90_000)
    ports.fault = () => undefined
    expect((await other.commit([fire(60_000, 120_000, 'second')]))[0]).toMatchObject({ kind: 'applied' })
    expect(await commit(fire(60_000, 120_000, 'second'))).toEqual({ kind: 'stale' })
    expect((await claim()).map(({ lease }) => lease.id)).toEqual(['first', 'second'])
  })
})
