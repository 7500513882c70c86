import { describe, expect, it } from 'vitest'
import { openActions } from '../../../src/ops/actions/open-actions.js'
import type { OpsContext } from '../../../src/ops/context.js'
import { BY, scene } from './scene.js'

/** A context whose list calls wait until the test releases them. */
function held(context: OpsContext, from: number): { readonly context: OpsContext; readonly letGo: () => void } {
  let letGo = (): void => undefined
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  let lists = 0
  const inspect: OpsContext['inspect'] = (call) => {
    const near = context.inspect(call)
    const list: typeof near.list = async (query) => {
      lists += 1
      if (lists > from) await gate
      return near.list(query)
    }
    return { ...near, list }
  }
  return { context: { ...context, inspect }, letGo }
}

describe('a bulk action that two processes continue together', () => {
  it.each([0, 1, 2])('ends once, with the numbers of both (the slower stands still after %i pages)', async (pages) => {
    const { actions, context, clock, charged, w } = scene()
    const ids = await charged(40)
    await w.stop()
    const stop = new AbortController()
    const options = { ...BY, pageSize: 10, signal: stop.signal, onProgress: () => stop.abort() }
    const begun = await actions.discard({ type: 'charge' }, options)
    expect(begun).toMatchObject({ total: 40, done: 10, state: 'stopped' })

    const slow = held(context, pages)
    const one = openActions(slow.context).continue(begun.id)
    await clock.advance(1)
    const other = actions.continue(begun.id, { who: 'bob' })
    await clock.advance(1)
    expect(await other).toMatchObject({ total: 40, done: 40, passed: 0, state: 'done' })
    slow.letGo()
    await clock.advance(1)
    expect(await one).toMatchObject({ total: 40, done: 40, passed: 0, state: 'done' })

    expect(await actions.actions()).toMatchObject([{ id: begun.id, done: 40, passed: 0, state: 'done' }])
    expect(await context.ledger.read(ids)).toEqual(ids.map(() => undefined))
    const ends = (await actions.log()).filter(({ what }) => what.includes('done:'))
    expect(ends).toMatchObject([{ what: expect.stringContaining('done: 40 changed, 0 had moved on') }])
  })
})

describe('a caller whose onProgress throws', () => {
  it('gets its own error at that page, and another process continues from there', async () => {
    const { actions, charged, w } = scene()
    await charged(30)
    await w.stop()
    let heard = 0
    const failing = () => {
      heard += 1
      throw new Error('the pipe is closed')
    }
    await expect(actions.discard({ type: 'charge' }, { ...BY, pageSize: 10, onProgress: failing })).rejects.toThrow(
      'the pipe is closed',
    )
    expect(heard).toBe(1)
    const [action] = await actions.actions()
    expect(action).toMatchObject({
      done: 10,
      total: 30,
      state: 'stopped',
      because: expect.stringContaining('onProgress'),
    })
    expect(await actions.continue(action!.id)).toMatchObject({ done: 30, state: 'done' })
  })
})
