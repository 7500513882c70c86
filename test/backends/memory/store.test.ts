import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KeySpace } from '../../../src/backends/memory/key-space.js'
import { memoryStore, storePort } from '../../../src/backends/memory/store.js'
import { timeOf } from '../../../src/backends/memory/time.js'

function storeAt(start: number) {
  const clock = { now: start }
  return { clock, store: memoryStore({ now: () => clock.now }) }
}

describe('a key', () => {
  // S06
  it('is set by exactly one setIfNotExists, and is free again once it has expired', () => {
    const { clock, store } = storeAt(1000)

    expect(store.setIfNotExists('k', '1')).toBe(true)
    expect(store.setIfNotExists('k', '2')).toBe(false)
    expect(store.get('k')).toBe('1')

    expect(store.setIfNotExists('t', '1', 100)).toBe(true)
    clock.now = 1100
    expect(store.get('t')).toBeUndefined()
    clock.now = 1101
    expect(store.setIfNotExists('t', '1', 100)).toBe(true)
  })

  it('lives forever with a ttl of 0, and gets a new expiry with every set', () => {
    const { clock, store } = storeAt(0)
    store.set('forever', 'x', 0)
    store.set('k', 'a', 10)
    clock.now = 5
    store.set('k', 'b')
    clock.now = 1e12

    expect(store.get('forever')).toBe('x')
    expect(store.get('k')).toBe('b')
  })

  // S07
  it('counts up and down, and is gone after delete', () => {
    const { store } = storeAt(0)

    expect([store.increment('n', 1), store.increment('n', 1), store.increment('n', -1)]).toEqual([1, 2, 1])
    expect(store.get('n')).toBe('1')
    expect(store.increment('below', -3)).toBe(-3)
    store.delete('n')
    expect(store.get('n')).toBeUndefined()
  })

  it('keeps its expiry when it is incremented without a ttl, and gets a new one with', () => {
    const { clock, store } = storeAt(0)
    store.set('n', '1', 100)
    clock.now = 50
    store.increment('n', 1)
    clock.now = 99
    expect(store.get('n')).toBe('2')
    store.increment('n', 1, 100)
    clock.now = 198
    expect(store.get('n')).toBe('3')
    clock.now = 199
    expect(store.increment('n', 1)).toBe(1)
  })

  it('that is not a number refuses to be counted, by name', () => {
    const { store } = storeAt(0)
    store.set('k', 'many')

    expect(() => store.increment('k', 1)).toThrow(/increment\("k"\): "many" is not a number/)
    expect(() => store.increment('k', Number.NaN)).toThrow(/not a number/)
  })

  it('refuses a value that is not text', () => {
    expect(() => storeAt(0).store.set('k', 5 as never)).toThrow(/value must be a string, got 5/)
  })

  it.each([-5, Number.NaN, '5', null])('refuses a ttl of %j, and changes nothing', (ttl) => {
    const { store } = storeAt(0)
    const bad = ttl as never
    const refused = (option: string) => expect.objectContaining({ code: 'BAD_OPTION', option })
    expect(() => store.set('k', 'v', bad)).toThrow(refused('set.ttl'))
    expect(() => store.setIfNotExists('k', 'v', bad)).toThrow(refused('set.ttl'))
    expect(() => store.increment('k', 1, bad)).toThrow(refused('increment.ttl'))
    expect(() => store.incrementOnce('k', 'm', 1, bad)).toThrow(refused('increment.ttl'))
    expect(() => store.compareAndSet('k', undefined, 'v', bad)).toThrow(refused('set.ttl'))
    expect(store.getMany(['k', 'm'])).toEqual([undefined, undefined])
  })
})

describe('the atoms', () => {
  it('incrementOnce counts once per marker', () => {
    const { clock, store } = storeAt(0)

    expect(store.incrementOnce('n', 'm1', 1, 100)).toEqual({ value: 1, applied: true })
    expect(store.incrementOnce('n', 'm1', 1, 100)).toEqual({ value: 1, applied: false })
    expect(store.incrementOnce('n', 'm2', -1, 100)).toEqual({ value: 0, applied: true })
    clock.now = 100
    expect(store.incrementOnce('n', 'm1', 1, 100)).toEqual({ value: 1, applied: true })
  })

  it('incrementOnce leaves no marker when the counter is no number', () => {
    const { store } = storeAt(0)
    store.set('n', 'x')

    expect(() => store.incrementOnce('n', 'm', 1)).toThrow(/not a number/)
    expect(store.get('m')).toBeUndefined()
  })

  it('compareAndSet takes undefined for absent', () => {
    const { store } = storeAt(0)

    expect(store.compareAndSet('k', 'x', 'a')).toBe(false)
    expect(store.compareAndSet('k', undefined, 'a')).toBe(true)
    expect(store.compareAndSet('k', 'b', 'c')).toBe(false)
    expect(store.compareAndSet('k', 'a', 'c')).toBe(true)
    expect(store.getMany(['k', 'none'])).toEqual(['c', undefined])
  })

  it('setMany sets all of them', () => {
    const { clock, store } = storeAt(0)
    store.setMany([
      { key: 'a', value: '1' },
      { key: 'b', value: '2', ttl: 5 },
    ])
    clock.now = 5
    expect(store.getMany(['a', 'b'])).toEqual(['1', undefined])
  })

  it('setMany sets none of them when one of them is bad', () => {
    const { store } = storeAt(0)
    const good = { key: 'a', value: '1' }
    expect(() => store.setMany([good, { key: 'b', value: 5 as never }])).toThrow(/value must be a string, got 5/)
    expect(() => store.setMany([good, { key: 'b', value: '2', ttl: -1 }])).toThrow(/set.ttl must be a number >= 0/)
    expect(store.getMany(['a', 'b'])).toEqual([undefined, undefined])
  })
})

describe('a store that is spread', () => {
  it('is a plain port: its documented members work without this, the rest is lost', () => {
    const { get, set, increment, setIfNotExists, delete: remove, ...rest } = { ...memoryStore() }

    set('k', '1')
    expect(increment('k', 1)).toBe(2)
    expect(setIfNotExists('k', 'x')).toBe(false)
    remove('k')
    expect(get('k')).toBeUndefined()
    expect(Object.keys(rest)).toEqual([])
  })
})

describe('keys that are never read again', () => {
  // W14
  it('are removed by later writes, without a timer', () => {
    let now = 0
    const keys = new KeySpace(timeOf({ now: () => now }, 'test'))
    const store = storePort(keys)
    for (let n = 0; n < 10_000; n += 1) store.set(`old:${n}`, 'x', 100)
    now = 1_000
    for (let n = 0; n < 1_000; n += 1) store.set(`new:${n}`, 'x', 100)

    expect(keys.size).toBe(1_000)
  })
})

describe('the machine clock being set back', () => {
  it('does not bring an expired key back', () => {
    const { clock, store } = storeAt(1000)
    store.set('k', 'v', 100)
    clock.now = 1100
    expect(store.get('k')).toBeUndefined()
    clock.now = 500
    expect(store.get('k')).toBeUndefined()
  })
})

describe('any sequence of operations', () => {
  const key = fc.constantFrom('a', 'b', 'c')
  const ttl = fc.option(fc.integer({ min: 0, max: 20 }), { nil: undefined })
  const step = fc.oneof(
    fc.record({ do: fc.constant('set' as const), key, ttl }),
    fc.record({ do: fc.constant('nx' as const), key, ttl }),
    fc.record({ do: fc.constant('add' as const), key, by: fc.integer({ min: -3, max: 3 }), ttl }),
    fc.record({ do: fc.constant('delete' as const), key }),
    fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 15 }) }),
  )

  it('answers as a map of values with an end would', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let now = 0
        const store = memoryStore({ now: () => now })
        const model = new Map<string, { value: string; end: number }>()
        const read = (k: string) => {
          const found = model.get(k)
          return found === undefined || found.end <= now ? undefined : found
        }
        const end = (t: number | undefined) => (t === undefined || t === 0 ? Infinity : now + t)
        for (const [index, one] of steps.entries()) {
          switch (one.do) {
            case 'set':
              store.set(one.key, String(index), one.ttl)
              model.set(one.key, { value: String(index), end: end(one.ttl) })
              break
            case 'nx': {
              const expected = read(one.key) === undefined
              expect(store.setIfNotExists(one.key, String(index), one.ttl)).toBe(expected)
              if (expected) model.set(one.key, { value: String(index), end: end(one.ttl) })
              break
            }
            case 'add': {
              const was = read(one.key)
              const value = Number(was?.value ?? 0) + one.by
              expect(store.increment(one.key, one.by, one.ttl)).toBe(value)
              const kept = was?.end ?? Infinity
              model.set(one.key, { value: String(value), end: one.ttl ? end(one.ttl) : kept })
              break
            }
            case 'delete':
              store.delete(one.key)
              model.delete(one.key)
              break
            case 'wait':
              now += one.ms
              break
          }
          for (const k of ['a', 'b', 'c']) expect(store.get(k)).toBe(read(k)?.value)
        }
      }),
      { numRuns: 1000 },
    )
  })
})

describe('options', () => {
  it('that do not exist are named, with the closest one', () => {
    expect(() => memoryStore({ nwo: Date.now } as never)).toThrow(
      /"nwo" is not an option of memoryStore. Did you mean "now"/,
    )
  })

  it('refuse two clocks together', () => {
    const clock = { now: Date.now, monotonic: Date.now } as never
    expect(() => memoryStore({ now: Date.now, clock })).toThrow(
      /memoryStore.now must be left out when `clock` is given/,
    )
  })
})
