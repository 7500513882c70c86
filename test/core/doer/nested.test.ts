import { describe, expect, it } from 'vitest'
import { nestedDoer } from '../../../src/core/doer/nested.js'
import { priorityDoer } from '../../../src/core/doer/priority.js'
import { heldTasks, settled } from './held-tasks.js'

describe('a doer within another', () => {
  it('runs what has a place in both, and frees both when that ends', async () => {
    const inner = priorityDoer({ max: 2 })
    const one = nestedDoer(priorityDoer({ max: 1 }), inner)
    const { task, started, end } = heldTasks()
    for (const name of ['a', 'b']) one.do(task(name))
    await settled()
    for (const name of ['x', 'y']) inner.do(task(name))
    await settled()
    expect(started.toSorted()).toEqual(['a', 'x'])
    await end('a')
    await settled()
    expect(started.toSorted()).toEqual(['a', 'x', 'y'])
    await end('x', 'y')
    await settled()
    expect(started.toSorted()).toEqual(['a', 'b', 'x', 'y'])
    await end('b')
    await one.done()
  })

  it('wants no more than either, and notifies when either has room', async () => {
    const outer = priorityDoer({ max: 1, buffer: 0 })
    const inner = priorityDoer({ max: 1, buffer: 1 })
    const both = nestedDoer(outer, inner)
    expect([both.available(), both.concurrency]).toEqual([1, 1])
    const { task, end } = heldTasks()
    let wakes = 0
    both.onAvailable?.(() => {
      wakes += 1
    })
    both.do(task('a'))
    await settled()
    expect(both.available()).toBe(0)
    await end('a')
    await settled()
    expect(both.available()).toBe(1)
    expect(wakes).toBeGreaterThan(0)
  })
})
