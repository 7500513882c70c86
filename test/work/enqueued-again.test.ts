import { describe, expect, it } from 'vitest'
import { defineWork } from '../../src/index.js'
import { GROUNDS, world } from './support.js'

describe.each(GROUNDS)('work that is enqueued again, because nobody told whether it arrived (%s)', (ground) => {
  const add = defineWork('add', (n: number, ctx) => ctx.result(n + 1))

  it('is there once, and its second handle waits for the group of the first', async () => {
    const { w, another, until } = world(ground, { work: [add] })
    const elsewhere = another({ work: [add], autoStart: false })
    const work = add(1)
    const first = w.enqueue(work)
    await until(first.accepted())
    const second = elsewhere.enqueue(work)

    expect(await until(second.accepted())).toEqual({ kind: 'coalesced', id: work.id })
    expect(await until(second.group())).toBe(2)
    expect(await until(second.result())).toBe(2)
    expect(second.groupId).toBe(first.groupId)
  })
})
