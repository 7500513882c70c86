import { AsyncLocalStorage } from 'node:async_hooks'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ageDoer } from '../../../src/core/doer/age.js'
import { balancedDoer } from '../../../src/core/doer/balanced.js'
import type { BoundedDoerOptions } from '../../../src/core/doer/bounded.js'
import type { Doer, DoerTaskOptions } from '../../../src/core/doer/doer.js'
import { priorityDoer } from '../../../src/core/doer/priority.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { heldTasks, settled } from './held-tasks.js'

const doers = { priorityDoer, ageDoer, balancedDoer }

describe.each(Object.entries(doers))('%s', (name, make) => {
  it('runs at most max tasks and asks for max + buffer in all', async () => {
    const doer = make({ max: 2, buffer: 3 })
    const { task, started, end } = heldTasks()
    expect(doer.available()).toBe(5)
    for (const one of ['a', 'b', 'c', 'd', 'e', 'f']) doer.do(task(one))
    expect(doer.available()).toBe(0)
    expect(started).toEqual([])
    await settled()
    expect(started).toEqual(['a', 'b'])
    await end('a')
    expect([started.length, doer.available()]).toEqual([3, 0])
    await end('b')
    expect([started.length, doer.available()]).toEqual([4, 1])
    await end('c', 'd', 'e', 'f')
    expect([started.length, doer.available()]).toEqual([6, 5])
    await doer.done()
  })

  it('says how many run at the same time, which its buffer does not change', () => {
    expect(make({ max: 2, buffer: 3 }).concurrency).toBe(2)
  })

  it('buffers as many as may run by default', () => {
    expect(make({ max: 3 }).available()).toBe(6)
    expect(make({ max: 3, buffer: 0 }).available()).toBe(3)
  })

  it('takes tasks beyond available(), and done() waits for those that wait, too', async () => {
    const doer = make({ max: 1, buffer: 0 })
    await doer.done()
    const ran: number[] = []
    for (let n = 0; n < 10; n += 1) doer.do(async () => void ran.push(n))
    await doer.done()
    expect(ran).toHaveLength(10)
  })

  it('a task that fails, now or later, frees its place; thousands in a row are no recursion', async () => {
    const doer = make({ max: 1 })
    for (let n = 0; n < 5000; n += 1)
      doer.do(() => {
        if (n % 2 === 0) throw new Error('now')
        return Promise.reject(new Error('later'))
      })
    await doer.done()
    expect(doer.available()).toBe(2)
  })

  it('says when available() rises from 0, once each time', async () => {
    const doer = make({ max: 1, buffer: 1 })
    const { task, end } = heldTasks()
    const woken: number[] = []
    doer.onAvailable!(() => {
      throw new Error('a listener that throws')
    })
    const off = doer.onAvailable!(() => woken.push(doer.available()))
    for (const one of ['a', 'b', 'c']) doer.do(task(one))
    await settled()
    await end('a')
    expect(woken).toEqual([])
    await end('b')
    expect(woken).toEqual([1])
    await end('c')
    expect(woken).toEqual([1])
    doer.do(task('d'))
    doer.do(task('e'))
    await end('d', 'e')
    expect(woken).toEqual([1, 1])
    off()
    doer.do(task('f'))
    doer.do(task('g'))
    await end('f', 'g')
    expect(woken).toEqual([1, 1])
  })

  it('a task that waited runs in the context of its caller', async () => {
    const doer = make({ max: 1 })
    const request = new AsyncLocalStorage<string>()
    const seen: (string | undefined)[] = []
    for (const who of ['one', 'two', 'three'])
      request.run(who, () =>
        doer.do(async () => {
          await settled()
          seen.push(request.getStore())
        }),
      )
    await doer.done()
    expect(seen).toEqual(['one', 'two', 'three'])
  })

  it('refuses bad options by name', () => {
    const bad = (options: object) => () => make(options as BoundedDoerOptions)
    expect(bad({})).toThrow(`${name}.max is required`)
    expect(bad({ max: 0 })).toThrow(`${name}.max must be an integer >= 1, got 0`)
    expect(bad({ max: 1.5 })).toThrow(`${name}.max`)
    expect(bad({ max: 1, buffer: -1 })).toThrow(`${name}.buffer`)
    expect(bad({ max: 1, now: 5 })).toThrow(`${name}.now must be a function`)
    expect(bad({ max: 1, clock: {} })).toThrow(`${name}.clock must be a Clock`)
    expect(bad({ max: 1, maximum: 2 })).toThrow(`"maximum" is not an option of ${name}`)
  })
})

/** Fills the only place, lets the given tasks wait, and then sees in which order they start. */
async function orderOf(doer: Doer, tasks: readonly (readonly [name: string, options?: DoerTaskOptions])[]) {
  const { task, started, end } = heldTasks()
  doer.do(task('first'))
  for (const [name, options] of tasks) doer.do(task(name), options)
  await settled()
  for (let n = 0; n <= tasks.length; n += 1) await end(started[n]!)
  return started.slice(1)
}

describe('which task is next', () => {
  it('priorityDoer: the highest priority, then the oldest, then the first', async () => {
    expect(
      await orderOf(priorityDoer({ max: 1 }), [
        ['new', { priority: 1, createdAt: 9 }],
        ['low', {}],
        ['same1', { priority: 5, createdAt: 7 }],
        ['same2', { priority: 5, createdAt: 7 }],
        ['old', { priority: 1, createdAt: 2 }],
        ['lowest', { priority: -1, createdAt: 0 }],
        ['odd', { priority: Number.NaN, createdAt: Number.NaN }],
      ]),
    ).toEqual(['same1', 'same2', 'old', 'new', 'low', 'odd', 'lowest'])
  })

  it('ageDoer: the oldest, then the first; priority does not matter', async () => {
    expect(
      await orderOf(ageDoer({ max: 1 }), [
        ['b', { createdAt: 3 }],
        ['c1', { createdAt: 2, priority: 1 }],
        ['c2', { createdAt: 2, priority: 9 }],
        ['d', { createdAt: 1 }],
      ]),
    ).toEqual(['d', 'c1', 'c2', 'b'])
  })

  it('balancedDoer: among groups that run as few, as priorityDoer', async () => {
    expect(
      await orderOf(balancedDoer({ max: 1 }), [
        ['newer', { group: 'a', priority: 1, createdAt: 2 }],
        ['older', { group: 'b', priority: 1, createdAt: 1 }],
        ['hi', { group: 'c', priority: 5, createdAt: 100 }],
        ['same1', { group: 'd', createdAt: 9 }],
        ['same2', { group: 'd', createdAt: 9 }],
      ]),
    ).toEqual(['hi', 'older', 'newer', 'same1', 'same2'])
  })

  // S125
  it('balancedDoer max 2: a1 and a2 run, a3 and b1 wait; when a1 ends b1 starts and a3 does not', async () => {
    const doer = balancedDoer({ max: 2 })
    const { task, started, end } = heldTasks()
    for (const name of ['a1', 'a2', 'a3']) doer.do(task(name), { group: 'A' })
    doer.do(task('b1'), { group: 'B' })
    await settled()
    expect(started).toEqual(['a1', 'a2'])
    await end('a1')
    expect(started).toEqual(['a1', 'a2', 'b1'])
    await end('a2', 'b1')
    expect(started).toEqual(['a1', 'a2', 'b1', 'a3'])
    await end('a3')
    await doer.done()
  })

  it('a task without a time is as old as the clock says when it comes', async () => {
    const clock = new FakeClock({ startAt: 1000 })
    for (const options of [{ clock }, { now: clock.now }]) {
      const order = orderOf(ageDoer({ max: 1, ...options }), [
        ['now'],
        ['before', { createdAt: clock.now() - 1 }],
        ['after', { createdAt: clock.now() + 1 }],
      ])
      expect(await order).toEqual(['before', 'now', 'after'])
    }
  })

  it('is what a search through all of them would choose, whatever comes and goes', async () => {
    const task = fc.record({
      group: fc.constantFrom('a', 'b', 'c'),
      priority: fc.integer({ min: 0, max: 2 }),
      createdAt: fc.integer({ min: 0, max: 3 }),
    })
    const step = fc.oneof({ arbitrary: task, weight: 2 }, { arbitrary: fc.nat(), weight: 1 })
    const kinds = fc.constantFrom(...(Object.keys(doers) as (keyof typeof doers)[]))
    await fc.assert(
      fc.asyncProperty(
        kinds,
        fc.integer({ min: 1, max: 3 }),
        fc.array(step, { maxLength: 25 }),
        async (kind, max, steps) => {
          const doer = doers[kind]({ max })
          const { task, started, end } = heldTasks()
          const model = { running: [] as Known[], waiting: [] as Known[], started: [] as string[] }
          let order = 0
          const startNext = () => {
            while (model.running.length < max && model.waiting.length > 0) {
              const next = model.waiting.toSorted((a, b) => compare(kind, model.running, a, b))[0]!
              model.waiting.splice(model.waiting.indexOf(next), 1)
              model.running.push(next)
              model.started.push(next.name)
            }
          }
          for (const one of steps) {
            if (typeof one === 'number') {
              const ended = model.running.splice(one % Math.max(1, model.running.length), 1)[0]
              if (ended !== undefined) await end(ended.name)
            } else {
              const known = { ...one, order, name: `t${order}` }
              order += 1
              model.waiting.push(known)
              doer.do(task(known.name), one)
            }
            startNext()
            await settled()
            expect(started).toEqual(model.started)
            expect(doer.available()).toBe(Math.max(0, 2 * max - model.running.length - model.waiting.length))
          }
          while (model.running.length > 0) {
            await end(model.running.shift()!.name)
            startNext()
          }
          await doer.done()
          expect(started).toEqual(model.started)
        },
      ),
      { numRuns: 1000 },
    )
  }, 60_000)

  it.each(Object.entries(doers))(
    '%s compares a few times the logarithm of what waits, not all of it',
    async (_, make) => {
      const count = 4096
      let comparisons = 0
      // A number that notices when it is compared.
      const noticed = (value: number) => {
        const read = () => {
          comparisons += 1
          return value
        }
        return { valueOf: read } as unknown as number
      }
      const doer = make({ max: 1 })
      for (let n = 0; n < count; n += 1)
        doer.do(async () => {}, {
          group: `g${n % 100}`,
          priority: noticed((n * 7919) % count),
          createdAt: noticed((n * 104_729) % count),
        })
      await doer.done()
      expect(comparisons).toBeGreaterThan(count)
      // Each comparison reads two numbers; a search through all would make eight million.
      expect(comparisons / 2 / count).toBeLessThan(8 * Math.log2(count))
    },
  )
})

interface Known extends Required<DoerTaskOptions> {
  readonly order: number
  readonly name: string
}

function compare(kind: keyof typeof doers, running: readonly Known[], a: Known, b: Known): number {
  const busy = (one: Known) => running.filter((other) => other.group === one.group).length
  const byGroup = kind === 'balancedDoer' ? busy(a) - busy(b) : 0
  const byPriority = kind === 'ageDoer' ? 0 : b.priority - a.priority
  return byGroup || byPriority || a.createdAt - b.createdAt || a.order - b.order
}
