import { describe, expect, it } from 'vitest'
import { defineBatchWork, defineWork } from '../../src/index.js'
import { GROUNDS, world } from './support.js'

describe.each(GROUNDS)('a handler that returns a plain value (%s)', (ground) => {
  it('gives its item that result, and its group that value', async () => {
    const add = defineWork('add', ({ a, b }: { readonly a: number; readonly b: number }) => a + b)
    const later = defineWork('later', async (text: string) => ({ text, at: new Date(0) }))
    const { w, until } = world(ground, { work: [add, later] })

    expect(await until(w.enqueue(add({ a: 1, b: 2 })).result())).toBe(3)
    expect(await until(w.enqueue(add({ a: 2, b: 2 })).group())).toBe(4)
    expect(await until(w.enqueue(later('x')).result())).toEqual({ text: 'x', at: new Date(0) })
  })

  it('may return nothing, null, or an instruction in another branch', async () => {
    const nothing = defineWork('nothing', () => undefined)
    const empty = defineWork('empty', () => null)
    const either = defineWork('either', (isPlain: boolean, ctx) => (isPlain ? 'plain' : ctx.result('made')))
    const { w, until } = world(ground, { work: [nothing, empty, either] })

    expect(await until(w.enqueue(nothing({})).result())).toBeUndefined()
    expect(await until(w.enqueue(empty({})).result())).toBeNull()
    expect(await until(w.enqueue(either(true)).result())).toBe('plain')
    expect(await until(w.enqueue(either(false)).result())).toBe('made')
  })

  it('awaits whatever can be awaited', async () => {
    const query = { then: (resolve: (rows: readonly number[]) => void) => resolve([1, 2]) }
    const select = defineWork('select', () => query as unknown as Promise<readonly number[]>)
    const { w, until } = world(ground, { work: [select] })

    expect(await until(w.enqueue(select({})).result())).toEqual([1, 2])
  })

  it('is dead as poison when the value was meant as work', async () => {
    const child = defineWork('child', (n: number) => n)
    const returns: readonly (() => unknown)[] = [
      () => child(1),
      () => [child(1), 2],
      () => w.enqueue(child(1)),
      () => child,
      () => Symbol('x'),
    ]
    const lost = defineWork('lost', (n: number) => returns[n]!())
    const both = defineBatchWork('both', {
      size: 2,
      maxWait: 0,
      run: (ns: readonly number[]) => ns.map((n) => child(n)),
    })
    const { w, until } = world(ground, { work: [lost, child, both] })

    for (const [n, words] of [
      'work that nothing queues. Return ctx.queue(…)',
      'a list of work, handles or instructions. Return ctx.queue(…)',
      'the handle of an item. Return ctx.queue(…)',
      'a function. Return a value that can be stored',
      'a symbol. Return a value that can be stored',
    ].entries()) {
      await expect(until(w.enqueue(lost(n)).result())).rejects.toThrow(words)
    }
    await expect(until(w.enqueue(both(1)).result())).rejects.toThrow('work that nothing queues')
  })

  it('may not leave an instruction behind', async () => {
    const part = defineWork('part', (_: null, ctx) => {
      ctx.queue([])
      return 5
    })
    const loose = defineWork(
      'loose',
      (_: null, ctx) => {
        ctx.void()
        return 5
      },
      { strictReturn: false },
    )
    const { w, until } = world(ground, { work: [part, loose] })

    await expect(until(w.enqueue(part(null)).result())).rejects.toThrow(
      '1 instruction that was not returned: write `return ctx.queue(…)`.',
    )
    expect(await until(w.enqueue(loose(null)).result())).toBe(5)
  })
})
