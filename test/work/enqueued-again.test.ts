import { describe, expect, it } from 'vitest'
import { defineWork } from '../../src/index.js'
import { GROUNDS, world } from './support.js'

describe.each(GROUNDS)('work that is enqueued again, because the first enqueue was not answered (%s)', (ground) => {
  const add = defineWork('add', (n: number, ctx) => ctx.result(n + 1))

  it('opens a group of its own id, whichever process enqueues it', async () => {
    const where = defineWork('where', (_: null, ctx) => ctx.groupId)
    const { w, until } = world(ground, { work: [where] })
    const work = where(null)
    expect(await until(w.enqueue(work).result())).toBe(work.id)
  })

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
    expect(first.groupId).toBe(work.id)
    expect(second.groupId).toBe(first.groupId)
  })

  it('is there once also where it was built anew under a chosen id, and callers that await it get the first', async () => {
    const { w, another, until, clock } = world(ground, { work: [add] })
    const elsewhere = another({ work: [add], autoStart: false })
    const once = () => ({ ...add(1), id: 'add/o-3' })
    const first = w.enqueue(once(), { delay: 5_000 })
    await until(first.accepted())
    // One wait begins before it is sent, one after it was answered, one when everything is over.
    const early = elsewhere.enqueue(once())
    const group = early.group()
    const result = early.result()
    expect(await until(early.accepted())).toEqual({ kind: 'coalesced', id: 'add/o-3' })
    const late = early.group()
    await clock.advance(1_000)
    expect(await until(Promise.all([group, result, late]))).toEqual([2, 2, 2])
    expect(early.groupId).toBe(first.groupId)
    expect(await until(w.enqueue(once()).group())).toBe(2)
  })
})
