import { describe, expect, it } from 'vitest'
import { ageDoer } from '../../../src/core/doer/age.js'
import type { BacklogInfo } from '../../../src/core/doer/backlog-alarm.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { heldTasks } from './held-tasks.js'

function watched(options: { readonly backlogAfterMs?: number; readonly backlogEveryMs?: number }) {
  const clock = new FakeClock()
  const seen: BacklogInfo[] = []
  const doer = ageDoer({ max: 1, clock, onBacklog: (info) => seen.push(info), ...options })
  return { clock, seen, doer, ...heldTasks() }
}

describe('tasks that keep waiting in a bounded doer', () => {
  it('are reported once, after backlogAfterMs', async () => {
    const { clock, seen, doer, task, end } = watched({ backlogAfterMs: 20 })
    for (const name of ['a', 'b', 'c']) doer.do(task(name))
    await clock.advance(19)
    expect(seen).toEqual([])
    await clock.advance(1)
    expect(seen).toEqual([{ pending: 2, running: 1, nonEmptyForMs: 20 }])
    await clock.advance(1000)
    expect(seen).toHaveLength(1)
    await end('a', 'b', 'c')
    expect(clock.pending).toBe(0)
  })

  it('are reported again every backlogEveryMs', async () => {
    const { clock, seen, doer, task, end } = watched({ backlogAfterMs: 15, backlogEveryMs: 10 })
    doer.do(task('a'))
    doer.do(task('b'))
    await clock.advance(40)
    expect(seen.map((info) => info.nonEmptyForMs)).toEqual([15, 25, 35])
    await end('a', 'b')
    await doer.done()
    expect(clock.pending).toBe(0)
  })

  it('are not reported when they are gone before that, and the time begins anew', async () => {
    const { clock, seen, doer, task, end } = watched({ backlogAfterMs: 50 })
    doer.do(task('a'))
    doer.do(task('b'))
    await clock.advance(49)
    await end('a')
    expect(clock.pending).toBe(0)
    doer.do(task('c'))
    await clock.advance(49)
    expect(seen).toEqual([])
    await clock.advance(1)
    expect(seen).toEqual([{ pending: 1, running: 1, nonEmptyForMs: 50 }])
    await end('b', 'c')
    await doer.done()
    expect(clock.pending).toBe(0)
  })

  it('are not reported while they merely change: it is the list that is never empty', async () => {
    const { clock, seen, doer, task, end } = watched({ backlogAfterMs: 50 })
    for (const name of ['a', 'b', 'c']) doer.do(task(name))
    await clock.advance(30)
    await end('a')
    await clock.advance(20)
    expect(seen).toEqual([{ pending: 1, running: 1, nonEmptyForMs: 50 }])
    await end('b', 'c')
  })

  it('an observer that throws is ignored, and called again', async () => {
    const clock = new FakeClock()
    let calls = 0
    const doer = ageDoer({
      max: 1,
      clock,
      backlogAfterMs: 5,
      backlogEveryMs: 5,
      onBacklog: () => {
        calls += 1
        throw new Error('observer')
      },
    })
    const { task, end } = heldTasks()
    doer.do(task('a'))
    doer.do(task('b'))
    await clock.advance(10)
    expect(calls).toBe(2)
    await end('a', 'b')
    await doer.done()
  })

  it('the time that passes is not that of a clock which is set', async () => {
    const { clock, seen, doer, task, end } = watched({ backlogAfterMs: 50 })
    doer.do(task('a'))
    doer.do(task('b'))
    clock.jump(-3_600_000)
    await clock.advance(50)
    expect(seen[0]?.nonEmptyForMs).toBe(50)
    await end('a', 'b')
  })

  it('bad options are refused by name, and onBacklog without a time as well', () => {
    expect(() => watched({})).toThrow(/ageDoer\.backlogAfterMs is required: it must be given where onBacklog is/)
    expect(() => watched({ backlogAfterMs: -1 })).toThrow(/ageDoer\.backlogAfterMs must be a finite number >= 0/)
    expect(() => watched({ backlogAfterMs: 5, backlogEveryMs: 0 })).toThrow(/ageDoer\.backlogEveryMs/)
    expect(() => ageDoer({ max: 1, onBacklog: 5 as never, backlogAfterMs: 5 })).toThrow(/ageDoer\.onBacklog/)
    expect(() => ageDoer({ max: 1, backlogAfterMs: 5 })).not.toThrow()
  })
})
