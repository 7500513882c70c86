import { describe, expect, it } from 'vitest'
import { defineWork, PoisonError } from '../../src/index.js'
import { GROUNDS, world } from './support.js'

describe.each(GROUNDS)('the states of items on %s ports', (ground) => {
  it('come in the order of their ids, with the ending of the dead, and undefined for those that never existed', async () => {
    const fine = defineWork('fine', (_: null, ctx) => ctx.void())
    const bad = defineWork('bad', (_: null): never => {
      throw new PoisonError('not with me')
    })
    const { w, until } = world(ground, { work: [fine, bad] })
    const [done, dead, waits, gone] = [
      w.enqueue(fine(null)),
      w.enqueue(bad(null)),
      w.enqueue(fine(null), { delay: 60_000 }),
      w.enqueue(fine(null), { delay: 60_000 }),
    ]
    await until(done.result())
    await until(dead.result().catch(() => undefined))
    await until(waits.accepted())
    await until(gone.cancel('not needed'))

    const states = await until(w.states([gone.id, 'never', waits.id, dead.id, done.id]))

    expect(states.map((state) => state && [state.id, state.status, state.ending])).toEqual([
      [gone.id, 'dead', 'cancelled'],
      undefined,
      [waits.id, 'pending', undefined],
      [dead.id, 'dead', 'aborted'],
      [done.id, 'success', undefined],
    ])
    expect(states[0]?.error).toBe('cancelled: not needed')
    // It works when taken out of the object, as every method does; an empty list gets an empty answer.
    const { states: ask } = w
    expect(await until(ask([]))).toEqual([])
  })

  it('are asked for by a list of ids, and nothing else', async () => {
    const { w } = world(ground, { work: [] })
    for (const ids of ['one', undefined, [7]])
      await expect(w.states(ids as never)).rejects.toMatchObject({ option: 'states(ids)' })
  })
})
