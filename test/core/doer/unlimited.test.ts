import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, it } from 'vitest'
import { doWith } from '../../../src/core/doer/do-with.js'
import { unlimitedDoer } from '../../../src/core/doer/unlimited.js'
import { heldTasks, settled } from './held-tasks.js'

describe('unlimitedDoer', () => {
  it('asks for 256 at a time, or as many as its option says, whatever it holds', async () => {
    const doer = unlimitedDoer()
    expect(unlimitedDoer({ available: 9 }).available()).toBe(9)
    const { task, end } = heldTasks()
    doer.do(task('a'))
    await settled()
    expect(doer.available()).toBe(256)
    await end('a')
  })

  it('starts a task after the call, and all of them', async () => {
    const doer = unlimitedDoer()
    const { task, started, end } = heldTasks()
    for (const name of ['a', 'b', 'c']) doer.do(task(name))
    expect(started).toEqual([])
    await settled()
    expect(started).toEqual(['a', 'b', 'c'])
    await end('a', 'b', 'c')
  })

  it('done() waits for what is running and not longer', async () => {
    const doer = unlimitedDoer()
    await doer.done()
    const { task, end } = heldTasks()
    doer.do(task('a'))
    doer.do(task('b'))
    let isDone = 0
    const waits = [doer.done(), doer.done()].map((wait) => wait.then(() => (isDone += 1)))
    await end('a')
    expect(isDone).toBe(0)
    await end('b')
    expect(isDone).toBe(2)
    await Promise.all(waits)
    doer.do(async () => {})
    await doer.done()
  })

  it('swallows what a task throws, now or later, or returns that is no promise', async () => {
    const doer = unlimitedDoer()
    const bad = [
      () => {
        throw new Error('now')
      },
      () => Promise.reject(new Error('later')),
      () => undefined,
      () => ({
        // A thenable that calls back more than once.
        then: (yes: () => void, no: () => void) => {
          yes()
          no()
          yes()
        },
      }),
    ]
    for (const task of bad) doer.do(task as unknown as () => Promise<void>)
    await doer.done()
    const { task, end } = heldTasks()
    doer.do(task('a'))
    let isDone = false
    const wait = doer.done().then(() => (isDone = true))
    await settled()
    expect(isDone).toBe(false)
    await end('a')
    await wait
  })

  it('a task runs in the context of its caller', async () => {
    const doer = unlimitedDoer()
    const request = new AsyncLocalStorage<string>()
    const seen: (string | undefined)[] = []
    for (const name of ['one', 'two']) request.run(name, () => doer.do(async () => void seen.push(request.getStore())))
    await doer.done()
    expect(seen).toEqual(['one', 'two'])
  })

  it('starts immediately whatever it is given', () => {
    expect(unlimitedDoer({ available: 1 }).concurrency).toBe(Infinity)
  })

  it('never calls onAvailable, since available() never rises', () => {
    const off = unlimitedDoer().onAvailable!(() => {
      throw new Error('woken')
    })
    off()
  })

  it('refuses bad options by name, and what is no task', () => {
    expect(() => unlimitedDoer({ available: -1 })).toThrow(/unlimitedDoer\.available must be an integer >= 0, got -1/)
    expect(() => unlimitedDoer({ max: 1 } as object)).toThrow(/"max" is not an option of unlimitedDoer/)
    expect(() => unlimitedDoer().do('x' as never)).toThrow(/task must be a function, got "x"/)
  })
})

describe('doWith', () => {
  it('settles as the function did', async () => {
    const doer = unlimitedDoer()
    await expect(doWith(doer, async () => 42)).resolves.toBe(42)
    await expect(doWith(doer, () => 'plain')).resolves.toBe('plain')
    await expect(doWith(doer, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    await expect(
      doWith(doer, () => {
        throw new Error('immediately')
      }),
    ).rejects.toThrow('immediately')
  })

  it('rejects where the doer does not take it, and passes the options on', async () => {
    const given: unknown[] = []
    const doer = {
      do: (_: () => Promise<void>, options?: object) => {
        given.push(options)
        throw new Error('full')
      },
    }
    await expect(doWith(doer, () => 1, { group: 'g', priority: 2 })).rejects.toThrow('full')
    expect(given).toEqual([{ group: 'g', priority: 2 }])
  })
})
