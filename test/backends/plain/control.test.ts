import { describe, expect, it } from 'vitest'
import type { Effect, Settlement } from '../../../src/ports/settlement.js'
import { complete, DAY, deadLetter, enqueue, item } from './settlements.js'
import { world } from './world.js'

const cancelPending = (id: string): Settlement => ({
  guard: { by: 'status', id, in: ['pending'] },
  effects: [
    { do: 'deadLetter', id, ending: 'cancelled', class: 'unclassified', error: 'cancelled: no', keepMs: DAY },
    { do: 'leaveGroup', groupId: `g-${id}`, count: 1 },
  ],
})
const act = (
  id: string,
  statuses: readonly ('pending' | 'running' | 'completed' | 'dead')[],
  effect: Effect,
): Settlement => ({
  guard: { by: 'status', id, in: statuses },
  effects: [effect],
})

describe('a cancel of a pending item', () => {
  it('is completed by its repetition, whichever of its steps failed, and adds no dead letter', async () => {
    for (const powers of ['all', 'documented', 'minimal'] as const)
      for (const when of ['before', 'after'] as const)
        for (let at = 1; at < 40; at += 1) {
          const { ports, commit, ledger, claim, dead } = world(powers)
          await commit(enqueue(item('a')))
          let calls = 0
          ports.fault = () => {
            calls += 1
            return calls === at ? when : undefined
          }
          const first = await commit(cancelPending('a'))
          ports.fault = () => undefined
          const second = first.kind === 'failed' ? await commit(cancelPending('a')) : first
          const where = `${powers} ${when} ${at}`
          expect([second.kind, where]).toEqual(['applied', where])
          expect((await ledger.read(['a']))[0]).toMatchObject({ status: 'dead', ending: 'cancelled' })
          expect([(await ledger.groups(['g-a']))[0]?.open, where]).toEqual([0, where])
          expect(await claim()).toEqual([])
          expect(dead).toEqual([])
          if (calls < at) break
        }
  })

  it('is done once by two at the same time, also where the count is not exact', async () => {
    const erase: Settlement = {
      guard: { by: 'status', id: 'a', in: ['pending'] },
      effects: [
        { do: 'delete', id: 'a' },
        { do: 'leaveGroup', groupId: 'g-a', count: 1 },
      ],
    }
    for (const powers of ['all', 'documented', 'minimal'] as const)
      for (const twice of [cancelPending('a'), erase]) {
        const { ledger, commit } = world(powers)
        // Another one in the group, which stays open with it.
        await commit(enqueue(item('b', { groupId: 'g-a' })))
        await commit(enqueue(item('a')))
        const results = await ledger.commit([twice, twice])
        expect([powers, ...results.map(({ kind }) => kind)]).toEqual([powers, 'applied', 'stale'])
        expect((await ledger.groups(['g-a']))[0]?.open).toBe(1)
      }
  })

  it('that failed half-way is not forced upon an item that has ended by itself since', async () => {
    const { ports, commit, claim, ledger } = world()
    await commit(enqueue(item('a')))
    ports.fault = ({ name }) => (name === 'set' ? 'before' : undefined)
    expect(await commit(cancelPending('a'))).toMatchObject({ kind: 'failed' })
    ports.fault = () => undefined
    const [a] = await claim()
    await commit(complete(a!, '1'))
    expect(await commit(cancelPending('a'))).toEqual({ kind: 'stale' })
    expect((await ledger.read(['a']))[0]).toMatchObject({ status: 'completed', result: '1' })
  })
})

describe('what plain ports cannot do', () => {
  it('is answered with NOT_SUPPORTED and what to do instead', async () => {
    const { commit, claim } = world()
    await commit(enqueue(item('a')))
    await commit(deadLetter((await claim())[0]!))
    const reopened = await commit(act('a', ['dead'], { do: 'redrive', id: 'a', delayMs: 0 }))
    expect(reopened).toMatchObject({ kind: 'failed', error: { code: 'NOT_SUPPORTED' } })
    expect(reopened.kind === 'failed' && String(reopened.error)).toContain('dlq')
    await commit(enqueue(item('b')))
    const hurried = await commit(act('b', ['pending'], { do: 'release', id: 'b', delayMs: 0 }))
    expect(hurried).toMatchObject({ kind: 'failed', error: { code: 'NOT_SUPPORTED' } })
  })
})
