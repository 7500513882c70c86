import { describe, expect, it } from 'vitest'
import { complete, enqueue, item } from './settlements.js'
import { world } from './world.js'

describe('options of the adapter', () => {
  it('are checked, and a misspelt one is named', () => {
    expect(() => world('documented', { putBackMs: -1 })).toThrow(/putBackMs/)
    expect(() => world('documented', { retentionMs: Number.NaN })).toThrow(/retentionMs/)
    expect(() => world('documented', { onEror: () => undefined } as never)).toThrow(/onEror.*onError/s)
  })

  it('prefix begins every key', async () => {
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
    expect(await commit(complete(a!, '1'))).toMatchObject({ kind: 'applied' })
    expect([...failed].toSorted()).toEqual(expect.arrayContaining(['ack', 'get', 'push', 'set', 'setIfNotExists']))
    const counts = ports.calls.filter(({ name, given }) => name === 'increment' && String(given[0]).endsWith(':open'))
    expect(counts.map(({ given }) => given[1])).toEqual([1, -1])
  })
})
