import { executionAsyncResource } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { AsyncContext } from '../../src/core/async-context.js'

describe('a value that travels with calls', () => {
  it('is there after awaits and in timers, and in no other call', async () => {
    const context = new AsyncContext<string>()
    const seen = await Promise.all(
      ['a', 'b'].map((value) =>
        context.run(value, async () => {
          await sleep(1)
          return context.getStore()
        }),
      ),
    )
    expect(seen).toEqual(['a', 'b'])
    expect(context.getStore()).toBeUndefined()
  })

  it('is the innermost one, and the outer one again afterwards', () => {
    const context = new AsyncContext<number>()
    context.run(1, () => {
      expect(context.run(2, () => context.getStore())).toBe(2)
      expect(context.getStore()).toBe(1)
    })
  })

  it('does not hide those of other objects, in whatever order they are nested', () => {
    const [a, b, c] = [new AsyncContext<string>(), new AsyncContext<string>(), new AsyncContext<string>()]
    a.run('a', () => b.run('b', () => c.run('c', () => a.run('a again', () => b.run('b again', check)))))
    function check(): void {
      expect([a, b, c].map((context) => context.getStore())).toEqual(['a again', 'b again', 'c'])
    }
  })

  it('can be undefined', () => {
    const context = new AsyncContext<string | undefined>()
    expect(context.run('set', () => context.run(undefined, () => context.getStore()))).toBeUndefined()
  })

  it('leaves nothing behind that every promise of the process would pay for', () => {
    // Each AsyncLocalStorage that was used marks every asynchronous resource with a symbol of its own.
    const marks = () => Object.getOwnPropertySymbols(executionAsyncResource()).length
    new AsyncContext<number>().run(0, () => undefined)
    const before = marks()
    for (let i = 0; i < 10; i += 1) new AsyncContext<number>().run(i, () => undefined)
    expect(marks()).toBe(before)
  })
})
