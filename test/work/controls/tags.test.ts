import { describe, expect, it } from 'vitest'
import { defineWork } from '../../../src/index.js'
import { GROUNDS, world } from '../support.js'

describe.each(GROUNDS)('tags on %s ports', (ground) => {
  it('come from the item, its input or its type, and items are listed by them', async () => {
    const typed = defineWork('typed', (_: null, ctx) => ctx.void(), { tags: ['nightly'] })
    const computed = defineWork('computed', (_: { tenant: string }, ctx) => ctx.void(), {
      options: (i) => ({ tags: [`tenant:${i.tenant}`, 'nightly'] }),
    })
    const { w, until } = world(ground, { work: [typed, computed], autoStart: false })
    const own = w.enqueue(typed(null), { tags: ['a', 'b', 'a'] })
    const byType = w.enqueue(typed(null))
    const byInput = w.enqueue(computed({ tenant: 'x' }))
    await until(Promise.all([own, byType, byInput].map((handle) => handle.accepted())))
    const tagged = async (tag: string) => (await until(w.list({ tag }))).map(({ id }) => id).toSorted()

    expect(await tagged('a')).toEqual([own.id])
    expect(await tagged('nightly')).toEqual([byType.id, byInput.id].toSorted())
    expect(await tagged('tenant:x')).toEqual([byInput.id])
    expect(await tagged('missing')).toEqual([])
    expect((await until(w.list({ tag: 'b', type: 'typed', status: 'pending' }))).map(({ tags }) => tags)).toEqual([
      ['a', 'b'],
    ])
    expect(await until(w.list({ tag: 'b', type: 'computed' }))).toEqual([])
  })

  it('that are not strings are refused, and so is an unknown filter', async () => {
    const typed = defineWork('typed', (_: null, ctx) => ctx.void())
    const { w } = world(ground, { work: [typed], autoStart: false })

    expect(() => w.enqueue(typed(null), { tags: ['a', ''] })).toThrow('enqueue.tags')
    expect(() => w.enqueue(typed(null), { tags: 'a' as never })).toThrow('enqueue.tags')
    await expect(w.list({ tags: 'a' } as never)).rejects.toThrow('"tags" is not an option of list')
    await expect(w.list({ tag: 1 } as never)).rejects.toThrow('list.tag')
  })
})
