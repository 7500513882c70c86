import { describe, expect, it } from 'vitest'
import { memoryStore } from '../../../src/backends/memory/store.js'
import type { Store } from '../../../src/ports/ports.js'
import { idempotencyStore } from '../../../src/source/middleware/idempotency-store.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'

function setUp(change: (store: Store) => Partial<Store> = () => ({})) {
  const clock = new FakeClock()
  const memory = memoryStore({ clock })
  const store: Store = { ...memory, compareAndSet: memory.compareAndSet, ...change(memory) }
  return { clock, memory, keys: idempotencyStore(store) }
}

async function token(begun: Promise<{ readonly state: string; readonly token?: string }>): Promise<string> {
  const { state, token } = await begun
  expect(state).toBe('acquired')
  return token!
}

describe('a key in an idempotency store over a Store port', () => {
  it('is acquired by one, busy for the others, and done after the commit', async () => {
    const { keys } = setUp()
    const mine = await token(keys.begin('k', 1_000))
    expect(await keys.begin('k', 1_000)).toEqual({ state: 'busy' })
    await keys.commit('k', mine, 5_000)
    expect(await keys.begin('k', 1_000)).toEqual({ state: 'done' })
  })

  it('is free again immediately after a release', async () => {
    const { keys } = setUp()
    for (let i = 0; i < 3; i += 1) await keys.release('k', await token(keys.begin('k', 1_000)))
    expect(await token(keys.begin('k', 1_000))).not.toBe('')
  })

  it('is free again when its lease has lapsed, and remembered only as long as asked', async () => {
    const { keys, clock } = setUp()
    await token(keys.begin('k', 1_000))
    await clock.advance(999)
    expect(await keys.begin('k', 1_000)).toEqual({ state: 'busy' })
    await clock.advance(1)
    await keys.commit('k', await token(keys.begin('k', 1_000)), 5_000)
    await clock.advance(4_999)
    expect(await keys.begin('k', 1_000)).toEqual({ state: 'done' })
    await clock.advance(1)
    await token(keys.begin('k', 1_000))
  })

  it('goes to exactly one of a hundred callers that ask at the same time, also right after a release', async () => {
    const { keys } = setUp()
    await keys.release('k', await token(keys.begin('k', 1_000)))
    const answers = await Promise.all(Array.from({ length: 100 }, () => keys.begin('k', 1_000)))
    expect(answers.filter((a) => a.state === 'acquired')).toHaveLength(1)
    expect(answers.filter((a) => a.state === 'busy')).toHaveLength(99)
  })

  it('is not committed, released or renewed by a token that is stale', async () => {
    const { keys, clock } = setUp()
    const stale = await token(keys.begin('k', 1_000))
    await clock.advance(1_000)
    const fresh = await token(keys.begin('k', 1_000))
    await keys.commit('k', stale, 5_000)
    expect(await keys.begin('k', 1_000)).toEqual({ state: 'busy' })
    await keys.release('k', stale)
    expect(await keys.begin('k', 1_000)).toEqual({ state: 'busy' })
    expect(await keys.renew!('k', stale, 1_000)).toBe(false)
    expect(await keys.renew!('k', fresh, 9_000)).toBe(true)
    await clock.advance(8_999)
    expect(await keys.begin('k', 1_000)).toEqual({ state: 'busy' })
    await keys.commit('k', fresh, 5_000)
    await keys.release('k', fresh) // What is done stays done.
    expect(await keys.begin('k', 1_000)).toEqual({ state: 'done' })
  })

  it('is done when its holder comes back late and no other has taken it meanwhile', async () => {
    const { keys, clock } = setUp()
    const late = await token(keys.begin('k', 1_000))
    await clock.advance(2_000)
    await keys.commit('k', late, 5_000)
    expect(await keys.begin('k', 1_000)).toEqual({ state: 'done' })
  })

  it('has a prefix, so that two consumers do not make each other skip', async () => {
    const memory = memoryStore()
    const [billing, mail] = ['billing:', 'mail:'].map((prefix) => idempotencyStore(memory, { prefix }))
    await billing!.commit('k', await token(billing!.begin('k', 1_000)), 5_000)
    await token(mail!.begin('k', 1_000))
    expect(memory.get('billing:k')).toBe('done')
  })
})

describe('the reply to a begin that gets lost', () => {
  it('is asked for again: the key is ours, not another holder’s', async () => {
    const { keys } = setUp((memory) => ({
      setIfNotExists: async (...args) => {
        await memory.setIfNotExists(...args)
        throw new Error('connection reset')
      },
    }))
    const mine = await token(keys.begin('k', 1_000))
    await keys.commit('k', mine, 5_000)
    expect((await keys.begin('k', 1_000)).state).toBe('done')
  })

  it('is understood when the client repeats the request by itself', async () => {
    const { keys } = setUp((memory) => ({
      setIfNotExists: async (...args) => {
        await memory.setIfNotExists(...args)
        return memory.setIfNotExists(...args)
      },
    }))
    await token(keys.begin('k', 1_000))
  })

  it('is understood for a key that was released before', async () => {
    let isLossy = false
    const { keys } = setUp((memory) => ({
      compareAndSet: async (...args) => {
        const answer = await memory.compareAndSet!(...args)
        if (isLossy) throw new Error('connection reset')
        return answer
      },
    }))
    await keys.release('k', await token(keys.begin('k', 1_000)))
    isLossy = true
    await token(keys.begin('k', 1_000))
  })

  it('is an error when the request never arrived', async () => {
    const { keys } = setUp(() => ({ setIfNotExists: () => Promise.reject(new Error('refused')) }))
    await expect(keys.begin('k', 1_000)).rejects.toThrow('refused')
  })
})

describe('a key that others keep taking and freeing', () => {
  it('is tried again, and counts as busy in the end', async () => {
    let asked = 0
    const { keys } = setUp(() => ({
      setIfNotExists: () => {
        asked += 1
        return false
      },
      get: () => undefined,
    }))
    expect(await keys.begin('k', 1_000)).toEqual({ state: 'busy' })
    expect(asked).toBeGreaterThan(1)
  })
})

describe('a store that cannot carry an idempotency store', () => {
  it('is refused when it has no compareAndSet, as after a spread', () => {
    expect(() => idempotencyStore({ ...memoryStore() })).toThrow(/needs a store with compareAndSet/)
    try {
      idempotencyStore({ ...memoryStore() })
    } catch (error) {
      expect(error).toMatchObject({ code: 'NOT_SUPPORTED' })
    }
  })

  it('is refused when it is none', () => {
    expect(() => idempotencyStore(undefined as never)).toThrow('idempotencyStore(store)')
    expect(() => idempotencyStore(memoryStore(), { prefix: 5 as never })).toThrow('idempotencyStore.prefix')
    expect(() => idempotencyStore(memoryStore(), { prefx: 'a' } as never)).toThrow('"prefix"')
  })
})
