import { describe, expect, it } from 'vitest'
import type { Settlement } from '../../../src/ports/settlement.js'
import { enqueue, finish, item } from './settlements.js'
import { world } from './world.js'

const fire = (at: number | undefined, nextAt: number, id?: string): Settlement => ({
  guard: { by: 'fire', name: 's', at },
  effects: [
    { do: 'schedule', name: 's', spec: 'spec', nextAt },
    ...(id === undefined ? [] : enqueue(item(id)).effects),
  ],
})

describe.each(['all', 'documented', 'minimal'] as const)('an occurrence on %s ports', (powers) => {
  it.each(['push', 'pushMany', 'set', 'setMany', 'increment', 'incrementOnce'])(
    'W12 whose %s was done, and its answer lost, is there once: counted, run and known',
    async (name) => {
      const { ports, commit, claim, get, ledger } = world(powers)
      await commit(fire(undefined, 100))
      let failures = 1
      ports.fault = (call) => (call.name === name && failures-- > 0 ? 'after' : undefined)
      const first = await commit(fire(100, 200, 'a'))
      // It may run before anybody repeats what seems to have failed.
      const early = await claim()
      for (const one of early) await commit(finish(one, '1'))
      const second = first.kind === 'failed' ? await commit(fire(100, 200, 'a')) : first
      for (const one of await claim()) await commit(finish(one, '1'))

      expect(second.kind).toBe('applied')
      expect(await claim()).toEqual([])
      expect((await ledger.read(['a']))[0]).toMatchObject({ status: 'success', result: '1' })
      expect(await get('group:g-a:open')).toBe('0')
      expect(await ledger.schedules!(['s'])).toMatchObject([{ nextAt: 200 }])
    },
  )

  it('W12 that could not be counted, written or pushed at all leaves nothing that stays when it is tried again', async () => {
    for (const name of ['push', 'pushMany', 'set', 'setMany', 'increment', 'incrementOnce']) {
      const { ports, commit, claim, get } = world(powers)
      await commit(fire(undefined, 100))
      let failures = 1
      ports.fault = (call) => (call.name === name && failures-- > 0 ? 'before' : undefined)
      const first = await commit(fire(100, 200, 'a'))
      if (first.kind === 'failed') await commit(fire(100, 200, 'a'))
      const claimed = await claim()
      expect([name, claimed.map(({ lease }) => lease.id)]).toEqual([name, ['a']])
      await commit(finish(claimed[0]!))
      expect([name, await get('group:g-a:open')]).toEqual([name, '0'])
    }
  })
})
