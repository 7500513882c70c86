import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { memoryStore } from '../../../src/backends/memory/index.js'
import { Counters } from '../../../src/backends/plain/counters.js'
import { called, PlainStore, type RetryPort } from '../../../src/backends/plain/plain-ports.js'
import type { Store } from '../../../src/ports/ports.js'
import { later, storeWith } from './ports.js'

const once: RetryPort = (call) => call()
const thrice: RetryPort = async (call) => {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call()
    } catch (error) {
      if (tries === 3) throw error
    }
  }
}

function counters(port: Store, retry = once) {
  const uncertain: unknown[] = []
  const store = new PlainStore(port, retry)
  const made = new Counters(store, (error) => void uncertain.push(error))
  return { counters: made, store, uncertain }
}

const seed = () => storeWith(memoryStore(), 'documented')
const minimal = () => storeWith(memoryStore(), 'minimal')
const lost = () => new Error('the reply was lost')

describe('a store without increment', () => {
  it('counts right within one process, however many count at the same time', async () => {
    const { counters: slow } = counters(later(minimal()))
    await Promise.all(Array.from({ length: 50 }, (_, i) => slow.increment('k', i % 2 === 0 ? 2 : -1, 1000)))
    expect(await slow.read('k')).toBe(25)
  })

  it('moves a counter once per marker too', async () => {
    const { counters: slow } = counters(later(minimal()))
    const all = Array.from({ length: 30 }, (_, i) => slow.incrementOnce('k', `m${i % 10}`, 1, 1000, `t${i % 10}-${i}`))
    expect((await Promise.all(all)).filter(({ applied }) => applied)).toHaveLength(10)
    expect(await slow.read('k')).toBe(10)
  })
})

describe('a counter after a failed call', () => {
  // W18
  it('is never simply incremented again, not even by portRetry', async () => {
    const port = seed()
    let calls = 0
    const flaky = {
      ...port,
      increment: () => {
        calls += 1
        throw lost()
      },
    }
    const { counters: made } = counters(flaky, thrice)
    await expect(made.increment('k', 1, 1000)).rejects.toThrow('lost')
    expect(calls).toBe(1)
  })

  it('that did not move is moved by the repetition; one that moved is not', async () => {
    for (const happens of [false, true])
      for (const base of [seed, minimal]) {
        const port = base()
        await port.set('k', '5')
        let failures = 1
        const fail = <T>(act: () => T): T => {
          if (failures-- <= 0) return act()
          if (happens) act()
          throw lost()
        }
        const flaky: Store = {
          ...port,
          ...(port.increment === undefined
            ? {
                set: (key, value, ttl) =>
                  key === 'k' ? fail(() => port.set(key, value, ttl)) : port.set(key, value, ttl),
              }
            : { increment: (key, by, ttl) => fail(() => port.increment!(key, by, ttl)) }),
        }
        const { counters: made, uncertain } = counters(flaky)
        const count = () => made.incrementOnce('k', 'm', -1, 1000, 'mine')
        const first = await called(count).catch(() => undefined)
        // Reading the counter back shows immediately what a lost reply hid.
        expect(first).toEqual(happens ? { value: 4, applied: true } : undefined)
        if (!happens) expect(await count()).toEqual({ value: 4, applied: true })
        expect(await made.read('k')).toBe(4)
        expect(uncertain).toEqual([])
      }
  })

  it('that others moved at the same time is taken for done, and reported with what to do', async () => {
    const port = seed()
    await port.set('k', '5')
    let isDown = true
    const flaky: Store = {
      ...port,
      increment: (key, by, ttl) => {
        if (!isDown) return port.increment!(key, by, ttl)
        throw lost()
      },
      get: (key) => {
        if (isDown && key === 'k' && claimed) throw lost()
        return port.get(key)
      },
      setIfNotExists: (key, value, ttl) => {
        claimed = true
        return port.setIfNotExists(key, value, ttl)
      },
    }
    let claimed = false
    const { counters: made, uncertain } = counters(flaky)
    const count = () => made.incrementOnce('k', 'm', -1, 1000, 'mine')
    await expect(count()).rejects.toThrow('lost')
    isDown = false
    await port.increment!('k', 10, 1000)
    expect(await count()).toEqual({ value: 15, applied: true })
    expect(uncertain).toMatchObject([{ code: 'COUNT_UNCERTAIN', facts: { counter: 'k', before: 5, by: -1, now: 15 } }])
    expect((uncertain[0] as Error).message).toContain('incrementOnce()')
  })

  it('whose marker belongs to another is not moved', async () => {
    const port = seed()
    const { counters: made } = counters(port)
    expect(await made.incrementOnce('k', 'm', 1, 1000, 'first')).toEqual({ value: 1, applied: true })
    expect(await made.incrementOnce('k', 'm', 1, 1000, 'second')).toEqual({ value: 1, applied: false })
  })

  it('uses the power of the store where it has it, and repeats that freely', async () => {
    const port = memoryStore()
    let failures = 2
    const flaky: Store = {
      ...storeWith(port, 'documented'),
      incrementOnce: (...given) => {
        const done = port.incrementOnce!(...given)
        if (failures-- > 0) throw lost()
        return done
      },
    }
    const { counters: made } = counters(flaky, thrice)
    expect(made.areExact).toBe(true)
    expect(await made.incrementOnce('k', 'm', 3, 1000, 'mine')).toEqual({ value: 3, applied: false })
    expect(await made.read('k')).toBe(3)
  })
})

describe('a claim', () => {
  // W18
  it('whose reply was lost is found to be ours, by its text', async () => {
    const port = seed()
    let failures = 1
    const flaky: Store = {
      ...port,
      setIfNotExists: (...given) => {
        const won = port.setIfNotExists(...given)
        if (failures-- > 0) throw lost()
        return won
      },
    }
    expect(await counters(flaky, thrice).store.claim('k', 'mine')).toBe('mine')
    expect(await counters(flaky).store.claim('k', 'theirs')).toBe('mine')
  })
})

describe('any mix of stores, failures and repetitions', () => {
  it('moves a counter once per marker as long as only one process counts', async () => {
    const step = fc.record({
      marker: fc.integer({ min: 0, max: 4 }),
      by: fc.constantFrom(-3, -1, 1, 2),
      fault: fc.constantFrom(undefined, undefined, 'before' as const, 'after' as const),
      at: fc.integer({ min: 1, max: 4 }),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 12 }),
        fc.constantFrom('all', 'documented', 'minimal'),
        async (steps, powers) => {
          const port = storeWith(memoryStore(), powers as 'all')
          let countdown = 0
          let fault: 'before' | 'after' | undefined
          const names = Object.getOwnPropertyNames(port) as (keyof Store)[]
          const flaky = Object.fromEntries(
            names.map((name) => {
              const method = port[name] as unknown
              if (typeof method !== 'function') return [name, method]
              return [
                name,
                (...given: unknown[]) => {
                  countdown -= 1
                  const isHit = fault !== undefined && countdown === 0
                  if (isHit && fault === 'before') throw lost()
                  const answer: unknown = method(...given)
                  if (isHit) throw lost()
                  return answer
                },
              ]
            }),
          ) as unknown as Store
          const { counters: made, uncertain } = counters(flaky)
          const moved = new Map<number, number>()
          for (const { marker, by, fault: kind, at } of steps) {
            fault = kind
            countdown = at
            const count = () => made.incrementOnce('k', `m${marker}`, by, 60_000, `t${marker}`)
            const wanted = moved.get(marker) ?? by
            const isDone = await called(count).then(
              () => true,
              () => false,
            )
            fault = undefined
            if (!isDone) await count()
            moved.set(marker, wanted)
          }
          const expected = [...moved.values()].reduce((sum, by) => sum + by, 0)
          expect((await made.read('k')) ?? 0).toBe(expected)
          expect(uncertain).toEqual([])
        },
      ),
      { numRuns: 1000 },
    )
  })
})
