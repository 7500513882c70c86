import { describe, expect, it } from 'vitest'
import { overPlainPorts } from '../../../src/backends/plain/over-plain-ports.js'
import { memoryBackend } from '../../../src/index.js'
import { ChangedPages } from '../../../src/ops/actions/changed-pages.js'
import { openOpsContext } from '../../../src/ops/context.js'
import type { Store } from '../../../src/ports/ports.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'

const opened = () => {
  const clock = new FakeClock()
  const backend = memoryBackend({ clock })
  const gets: string[] = []
  const store: Store = {
    get: (key) => {
      gets.push(key)
      return backend.store.get(key)
    },
    set: (...given) => backend.store.set(...given),
    setIfNotExists: (...given) => backend.store.setIfNotExists(...given),
  }
  return {
    gets,
    pages: new ChangedPages({ ...openOpsContext(overPlainPorts, backend, { clock }), ports: { ...backend, store } }),
  }
}

describe('the pages of a bulk action', () => {
  it('tell when an item was changed, and only in that time', async () => {
    const { pages } = opened()
    for (let n = 0; n < 30; n += 1)
      expect(await pages.add({ id: 'a', pages: n }, { at: n * 10, ids: [`i-${n}`] })).toBe(n + 1)
    const of = { id: 'a', pages: 30 }
    for (const n of [0, 1, 13, 28, 29]) {
      expect(await pages.lastChange(of, `i-${n}`, 0, 1_000)).toBe(n * 10)
      expect(await pages.lastChange(of, `i-${n}`, n * 10, n * 10)).toBe(n * 10)
      expect(await pages.lastChange(of, `i-${n}`, n * 10 + 1, 1_000)).toBeUndefined()
      expect(await pages.lastChange(of, `i-${n}`, 0, n * 10 - 1)).toBeUndefined()
    }
    expect(await pages.lastChange({ ...of, endedAt: 290 }, 'i-29', 291, 1_000)).toBeUndefined()
    expect(await pages.lastChange({ id: 'b' }, 'i-1', 0, 1_000)).toBeUndefined()
  })

  it('are never overwritten: who died before noting the last one has left it there', async () => {
    const { pages } = opened()
    await pages.add({ id: 'a', pages: 4 }, { at: 40, ids: ['unnoted'] })
    expect(await pages.add({ id: 'a', pages: 4 }, { at: 50, ids: ['next'] })).toBe(6)
    expect(await pages.lastChange({ id: 'a', pages: 4 }, 'unnoted', 0, 100)).toBe(40)
    expect(await pages.lastChange({ id: 'a', pages: 4 }, 'next', 0, 100)).toBe(50)
  })

  it('lose those that had already moved on', async () => {
    const { pages } = opened()
    const slot = await pages.add({ id: 'a' }, { at: 1, ids: ['x', 'y'] })
    await pages.replace('a', slot, { at: 1, ids: ['y'] })
    expect(await pages.lastChange({ id: 'a', pages: 1 }, 'x', 0, 9)).toBeUndefined()
    expect(await pages.lastChange({ id: 'a', pages: 1 }, 'y', 0, 9)).toBe(1)
  })

  it('are found by time, and not one by one', async () => {
    const { pages, gets } = opened()
    for (let n = 0; n < 1_000; n += 1) await pages.add({ id: 'a', pages: n }, { at: n * 10, ids: [`i-${n}`] })
    gets.length = 0
    expect(await pages.lastChange({ id: 'a', pages: 1_000 }, 'i-3', 30, 35)).toBe(30)
    expect(gets.length).toBeLessThan(30)
  })
})
