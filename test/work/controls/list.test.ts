import { describe, expect, it } from 'vitest'
import { defineWork, RetryAbort } from '../../../src/index.js'
import type { Inspect, ItemQuery } from '../../../src/ports/inspect.js'
import { maxQueries, readFilter } from '../../../src/work/wait/list-items.js'
import { GROUNDS, gate, world } from '../support.js'
import { isNativeGround, tapped } from './tapped.js'

const noop = defineWork('noop', (_: null, ctx) => ctx.void())

describe.each(GROUNDS)('list by status, on %s ports', (ground) => {
  it('finds every item with that status, whatever its state, and nothing else', async () => {
    const end = gate()
    const begun = gate()
    const bad = defineWork('bad', (_: null): never => {
      throw new RetryAbort(new Error('never'))
    })
    const long = defineWork('long', async (_: null, ctx) => {
      begun.open()
      await end.promise
      return ctx.void()
    })
    const { w, until } = world(ground, { work: [noop, bad, long] })
    await until(w.enqueue(noop(null)).result())
    await expect(until(w.enqueue(bad(null)).result())).rejects.toThrow('never')
    const later = w.enqueue(noop(null), { delay: 60_000 })
    const dropped = w.enqueue(noop(null), { delay: 60_000 })
    dropped.result().catch(() => undefined)
    await until(dropped.cancel('no'))
    await until(w.enqueue(long(null)).accepted())
    await until(begun.promise)
    const typesOf = async (status: 'pending' | 'running' | 'success' | 'dead' | 'failed') =>
      (await until(w.list({ status }))).map(({ type, status: is }) => `${type} ${is}`).toSorted()

    expect(await typesOf('pending')).toEqual(['noop pending'])
    expect((await until(w.list({ status: 'pending', type: 'noop' }))).map(({ id }) => id)).toEqual([later.id])
    expect(await typesOf('running')).toEqual(['long running'])
    expect(await typesOf('success')).toEqual(['noop success'])
    expect(await typesOf('dead')).toEqual(['bad dead', 'noop dead'])
    expect(await typesOf('failed')).toEqual([])
    end.open()
  })

  it.runIf(isNativeGround(ground))(
    'asks the backend for the states of that status, and gives up after so many pages',
    async () => {
      const asked: ItemQuery[] = []
      let isEndless = false
      const tap = tapped((ledger) => ({
        inspect: {
          ...ledger.inspect!,
          list: async (query: ItemQuery) => {
            asked.push(query)
            return isEndless ? { items: [], next: String(asked.length) } : ledger.inspect!.list(query)
          },
        } as Inspect,
      }))
      const { w, until } = world(ground, { work: [noop], maxStates: 20 }, tap)
      await until(w.enqueue(noop(null)).result())
      expect(await until(w.list({ status: 'running', type: 'noop' }))).toEqual([])
      expect(asked).toEqual([{ state: 'active', type: 'noop', limit: 1_000 }])
      asked.length = 0
      isEndless = true

      expect(await until(w.list({ status: 'success' }))).toEqual([])
      expect(asked).toHaveLength(100)
      expect(asked.every(({ state }) => state === 'completed')).toBe(true)
    },
  )
})

describe('a filter of list', () => {
  it('asks for one state after the other, in the order in which items pass through them', () => {
    expect(readFilter({ status: 'pending', tag: 't' }).queries.map(({ state }) => state)).toEqual([
      'blocked',
      'scheduled',
      'retrying',
      'waiting',
      'active',
    ])
    expect(readFilter({ tag: 't' }).queries).toEqual([{ tag: 't' }])
    expect([20, 10_000, 1_000_000].map(maxQueries)).toEqual([100, 100, 10_000])
  })
})
