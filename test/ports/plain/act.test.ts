import { describe, expect, it } from 'vitest'
import type { Effect, Settlement } from '../../../src/ports/settlement.js'
import { DAY, enqueue, finish, item, park } from './settlements.js'
import { world } from './world.js'

const cancelPending = (id: string): Settlement => ({
  guard: { by: 'status', id, in: ['pending'] },
  effects: [
    { do: 'park', id, ending: 'cancelled', class: 'unclassified', error: 'cancelled: no', keepMs: DAY },
    { do: 'closeGroup', groupId: `g-${id}`, by: 1 },
  ],
})
const act = (
  id: string,
  statuses: readonly ('pending' | 'running' | 'success' | 'dead')[],
  effect: Effect,
): Settlement => ({
  guard: { by: 'status', id, in: statuses },
  effects: [effect],
})

describe('a cancel of a pending item', () => {
  it('is completed by its repetition, whichever of its steps failed, and does not bury it', async () => {
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
        { do: 'erase', id: 'a' },
        { do: 'closeGroup', groupId: 'g-a', by: 1 },
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
    await commit(finish(a!, '1'))
    expect(await commit(cancelPending('a'))).toEqual({ kind: 'stale' })
    expect((await ledger.read(['a']))[0]).toMatchObject({ status: 'success', result: '1' })
  })
})

describe('what plain ports cannot do', () => {
  it('is answered with NOT_SUPPORTED and what to do instead', async () => {
    const { commit, claim } = world()
    await commit(enqueue(item('a')))
    await commit(park((await claim())[0]!))
    const reopened = await commit(act('a', ['dead'], { do: 'reopen', id: 'a', delayMs: 0 }))
    expect(reopened).toMatchObject({ kind: 'failed', error: { code: 'NOT_SUPPORTED' } })
    expect(reopened.kind === 'failed' && String(reopened.error)).toContain('dlq')
    await commit(enqueue(item('b')))
    const hurried = await commit(act('b', ['pending'], { do: 'release', id: 'b', delayMs: 0 }))
    expect(hurried).toMatchObject({ kind: 'failed', error: { code: 'NOT_SUPPORTED' } })
  })
})

describe('a schedule', () => {
  const fire = (at: number | undefined, nextAt: number, id: string): Settlement => ({
    guard: { by: 'fire', name: 'nightly', at },
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

describe('options of the adapter', () => {
  it('are checked, and a misspelt one is named', () => {
    expect(() => world('documented', { putBackMs: -1 })).toThrow(/putBackMs/)
    expect(() => world('documented', { retentionMs: Number.NaN })).toThrow(/retentionMs/)
    expect(() => world('documented', { onEror: () => undefined } as never)).toThrow(/onEror.*onError/s)
  })

  it('prefix stands before every key', async () => {
    const { ports, commit } = world('documented', { prefix: 'mine/' })
    await commit(enqueue(item('a')))
    const keys = ports.calls.filter(({ port }) => port === 'store').map(({ given }) => String(given[0]))
    expect(keys.every((key) => key.startsWith('mine/'))).toBe(true)
  })

  it('retryPort repeats what may be repeated, and never an increment', async () => {
    const retryPort = async <T>(call: () => Promise<T>): Promise<T> => call().catch(call)
    const { ports, commit, claim } = world('documented', { retryPort })
    const failed = new Set<string>()
    const first = (name: string) => {
      if (failed.has(name) || name === 'increment' || name === 'pop') return undefined
      failed.add(name)
      return 'before' as const
    }
    ports.fault = ({ name }) => first(name)
    expect(await commit(enqueue(item('a')))).toMatchObject({ kind: 'applied' })
    failed.delete('set')
    const [a] = await claim()
    expect(await commit(finish(a!, '1'))).toMatchObject({ kind: 'applied' })
    expect([...failed].toSorted()).toEqual(expect.arrayContaining(['ack', 'get', 'push', 'set', 'setIfNotExists']))
    const counts = ports.calls.filter(({ name, given }) => name === 'increment' && String(given[0]).endsWith(':open'))
    expect(counts.map(({ given }) => given[1])).toEqual([1, -1])
  })
})
