import { describe, expect, it } from 'vitest'
import { openActs } from '../../../src/ops/acts/index.js'
import type { Desk } from '../../../src/ops/desk.js'
import { BY, scene } from './scene.js'

/** The desk of somebody whose lists are answered only when they are let go on. */
function held(desk: Desk, from: number): { readonly desk: Desk; readonly letGo: () => void } {
  let letGo = (): void => undefined
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  let lists = 0
  const inspect: Desk['inspect'] = (call) => {
    const near = desk.inspect(call)
    const list: typeof near.list = async (query) => {
      lists += 1
      if (lists > from) await gate
      return near.list(query)
    }
    return { ...near, list }
  }
  return { desk: { ...desk, inspect }, letGo }
}

describe('a bulk action that two go on with at once', () => {
  it.each([0, 1, 2])('ends once, with the numbers of both (the slower stands still after %i pages)', async (pages) => {
    const { acts, desk, clock, charged, w } = scene()
    const ids = await charged(40)
    await w.stop()
    const stop = new AbortController()
    const options = { ...BY, pageSize: 10, signal: stop.signal, onProgress: () => stop.abort() }
    const begun = await acts.discard({ type: 'charge' }, options)
    expect(begun).toMatchObject({ total: 40, done: 10, state: 'stopped' })

    const slow = held(desk, pages)
    const one = openActs(slow.desk).proceed(begun.id)
    await clock.advance(1)
    const other = acts.proceed(begun.id, { who: 'bob' })
    await clock.advance(1)
    expect(await other).toMatchObject({ total: 40, done: 40, passed: 0, state: 'done' })
    slow.letGo()
    await clock.advance(1)
    expect(await one).toMatchObject({ total: 40, done: 40, passed: 0, state: 'done' })

    expect(await acts.actions()).toMatchObject([{ id: begun.id, done: 40, passed: 0, state: 'done' }])
    expect(await desk.ledger.read(ids)).toEqual(ids.map(() => undefined))
    const ends = (await acts.log()).filter(({ what }) => what.includes('done:'))
    expect(ends).toMatchObject([{ what: expect.stringContaining('done: 40 changed, 0 had moved on') }])
  })
})

describe('whoever watches a bulk action', () => {
  it('hears of their own fault at the page that met it, and another goes on from there', async () => {
    const { acts, charged, w } = scene()
    await charged(30)
    await w.stop()
    let heard = 0
    const failing = () => {
      heard += 1
      throw new Error('the pipe is closed')
    }
    await expect(acts.discard({ type: 'charge' }, { ...BY, pageSize: 10, onProgress: failing })).rejects.toThrow(
      'the pipe is closed',
    )
    expect(heard).toBe(1)
    const [action] = await acts.actions()
    expect(action).toMatchObject({
      done: 10,
      total: 30,
      state: 'stopped',
      because: expect.stringContaining('onProgress'),
    })
    expect(await acts.proceed(action!.id)).toMatchObject({ done: 30, state: 'done' })
  })
})
