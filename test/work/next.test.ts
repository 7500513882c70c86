import { describe, expect, it } from 'vitest'
import {
  DEPENDENCY_TYPE,
  defineWork,
  dependency,
  RetryAbort,
  type Work,
  type WorkContext,
  type WorkEvent,
  type WorkResult,
} from '../../src/index.js'
import { GROUNDS, gate, world } from './support.js'

/** A leaf that records its name, one that never succeeds, and one that does what the test says. */
function types() {
  const ran: string[] = []
  const seen = new Map<string, WorkContext>()
  const leaf = defineWork('leaf', (name: string, ctx) => {
    ran.push(name)
    seen.set(name, ctx)
    return ctx.result(name)
  })
  const bad = defineWork('bad', (name: string): never => {
    ran.push(name)
    throw new RetryAbort(new Error('never'))
  })
  const flow = (name: string, handler: (ctx: WorkContext) => WorkResult) =>
    defineWork(name, (_: null, ctx) => {
      ran.push(name)
      return handler(ctx)
    })
  return { ran, seen, leaf, bad, flow }
}

const gates = (events: readonly WorkEvent[], kind: WorkEvent['kind'] = 'queued') =>
  events.filter((event) => event.kind === kind && 'type' in event && event.type === DEPENDENCY_TYPE)

describe.each(GROUNDS)('.next on %s ports', (ground) => {
  // S113
  it('queues what comes next after what came before, and gives it the ids', async () => {
    const { ran, seen, leaf, flow } = types()
    const a = leaf('a')
    const root = flow('root', (ctx) => ctx.queue([a]).next([leaf('b')]))
    const { w, until } = world(ground, { work: [leaf, root] })

    expect(await until(w.enqueue(root(null)))).toBe('b')
    expect(ran).toEqual(['root', 'a', 'b'])
    expect(seen.get('b')?.dependents).toEqual([a.id])
    expect(seen.get('b')?.groupId).toBe(seen.get('a')?.groupId)
  })

  // S114
  it('ends immediately, with its group, when what came before has failed', async () => {
    const { ran, leaf, bad, flow } = types()
    const root = flow('root', (ctx) => ctx.queue([bad('bad')]).next([leaf('fin')]))
    const { w, until, events, clock } = world(ground, { work: [leaf, bad, root] })
    const began = clock.now()

    await until(w.enqueue(root(null)))
    expect(clock.now() - began).toBeLessThan(1_000)
    expect(ran).toEqual(['root', 'bad'])
    expect(gates(events, 'failed')).toMatchObject([
      { error: expect.stringContaining('cannot be satisfied'), willRetry: false },
    ])
  })

  // S115
  it('is one item for as long as it waits', async () => {
    const { leaf, flow } = types()
    const release = gate()
    const slow = defineWork('slow', async (_: null, ctx) => {
      await release.promise
      return ctx.void()
    })
    const root = flow('root', (ctx) => ctx.queue([slow(null)]).next([leaf('after')]))
    const { w, until, events, clock } = world(ground, { work: [leaf, slow, root] })
    const flowing = w.enqueue(root(null))
    await clock.advance(5_000)
    release.open()

    expect(await until(flowing)).toBe('after')
    expect(gates(events)).toHaveLength(1)
  })

  // S116
  it('follows a result: it then waits for the item itself', async () => {
    const { ran, leaf } = types()
    const root = defineWork('root', (_: null, ctx) => ctx.result(42, { final: true }).next([leaf('ls')]))
    const empty = defineWork('empty', (_: null, ctx) => ctx.void().next(leaf('after nothing'), 'all-done'))
    const { w, until } = world(ground, { work: [leaf, root, empty] })
    const handle = w.enqueue(root(null))

    expect(await until(handle.result())).toBe(42)
    expect(await until(handle.group())).toBe(42)
    expect(await until(w.enqueue(empty(null)))).toBe('after nothing')
    expect(ran).toEqual(['ls', 'after nothing'])
  })

  // T4 T7
  it('runs a chain link by link, each with its own condition', async () => {
    const { ran, leaf, bad, flow } = types()
    const root = flow('root', (ctx) =>
      ctx
        .queue([leaf('1')])
        .next([bad('2'), leaf('3')])
        .next([leaf('4')], 'all-done')
        .next([leaf('5')]),
    )
    const { w, until } = world(ground, { work: [leaf, bad, root] })

    expect(await until(w.enqueue(root(null)))).toBe('5')
    expect(ran.slice(0, 2)).toEqual(['root', '1'])
    expect(ran.slice(2, 4).sort()).toEqual(['2', '3'])
    expect(ran.slice(4)).toEqual(['4', '5'])
  })

  // T8
  it('takes nested results, with their own options, and a count', async () => {
    const { ran, seen, leaf, bad, flow } = types()
    const root = flow('root', (ctx) =>
      ctx
        .queue([leaf('a'), bad('b')])
        .next(ctx.queue([leaf('c'), ctx.queue(leaf('d'))], { tags: ['nested'] }), { count: 1, of: 'success' }),
    )
    const { w, until } = world(ground, { work: [leaf, bad, root] })
    await until(w.enqueue(root(null)))

    expect(ran.sort()).toEqual(['a', 'b', 'c', 'd', 'root'])
    expect(seen.get('c')?.dependents).toHaveLength(2)
  })

  // T9
  it('follows two sub-flows, and collects their values', async () => {
    const { ran, leaf, flow } = types()
    const one = flow('one', (ctx) => ctx.queue([leaf('one a')]).next([leaf('one b')]))
    const two = flow('two', (ctx) => ctx.queue([leaf('two a')]))
    const root = flow('root', (ctx) => ctx.queue([one(null), two(null)]).next([leaf('last')], { of: 'tree' }))
    const { w, until } = world(ground, { work: [leaf, one, two, root] })

    expect(await until(w.enqueue(root(null)))).toBe('last')
    expect(ran.at(-1)).toBe('last')
    expect([...ran].sort()).toEqual(['last', 'one', 'one a', 'one b', 'root', 'two', 'two a'])
  })

  it('contributes results that come after .next when their turn has come, and no sooner', async () => {
    const { leaf, flow } = types()
    const root = flow('root', (ctx) => ctx.queue([leaf('early')]).next([ctx.result('late'), ctx.void()]))
    const locked = flow('locked', (ctx) =>
      ctx.queue([]).next([ctx.result('first', { final: true }), ctx.result('second'), leaf('third')]),
    )
    const { w, until } = world(ground, { work: [leaf, root, locked] })

    expect(await until(w.enqueue(root(null)))).toBe('late')
    expect(await until(w.enqueue(locked(null)))).toBe('first')
  })

  // W19
  it('gives options to the next works, and times count from when those are queued', async () => {
    const { seen, leaf, flow } = types()
    const root = flow('root', (ctx) =>
      ctx
        .queue([leaf('a')], { delay: 500 })
        .next([leaf('b')], 'all-success', { priority: 7, delay: 3_000, timeout: 2_000_000 }),
    )
    const { w, until, events, clock } = world(ground, { work: [leaf, root] })
    const flowing = w.enqueue(root(null))
    await clock.settle()
    const began = clock.now()
    await until(flowing)

    const states = await until(w.list())
    expect(states.find(({ id }) => id === seen.get('b')?.id)?.priority).toBe(7)
    expect(states.filter(({ type }) => type === DEPENDENCY_TYPE).map(({ priority }) => priority)).toEqual([0])
    expect(clock.now() - began).toBeGreaterThanOrEqual(3_000)
    expect(seen.get('b')?.deadline).toBeGreaterThan(began + 2_000_000)
    expect(gates(events)).toHaveLength(1)
  })

  // W19
  it('waits for the items themselves, and for everything below them only when asked', async () => {
    for (const [condition, order] of [
      ['all-success', ['after', 'sub-child']],
      [{ of: 'tree' }, ['sub-child', 'after']],
    ] as const) {
      const { ran, leaf, flow } = types()
      const hold = gate()
      const child = defineWork('sub-child', async (_: null, ctx) => {
        await hold.promise
        ran.push('sub-child')
        return ctx.void()
      })
      const sub = flow('sub', (ctx) => ctx.queue([child(null)]))
      const root = flow('root', (ctx) => ctx.queue([sub(null)]).next([leaf('after')], condition))
      const { w, until, clock } = world(ground, { work: [leaf, child, sub, root] })
      const flowing = w.enqueue(root(null))
      await clock.advance(100)
      hold.open()
      await until(flowing)

      expect(ran.slice(2), JSON.stringify(condition)).toEqual(order)
    }
  })

  it('waits for trees of trees, with chains in them', async () => {
    const { ran, leaf, flow } = types()
    const deep = flow('deep', (ctx) => ctx.queue([leaf('deep a')]).next([leaf('deep b')]))
    const middle = flow('middle', (ctx) => ctx.queue([deep(null), ctx.queue([leaf('m')]).next([deep(null)])]))
    const root = flow('root', (ctx) =>
      ctx
        .queue([middle(null), leaf('top')])
        .next([middle(null)], { of: 'tree' })
        .next([leaf('end')], { of: 'tree', when: 'all-done' }),
    )
    const { w, until, errors } = world(ground, { work: [leaf, deep, middle, root] })

    expect(await until(w.enqueue(root(null)))).toBe('end')
    expect(ran.at(-1)).toBe('end')
    expect(ran.filter((name) => name === 'deep b')).toHaveLength(4)
    expect(ran.lastIndexOf('middle')).toBeGreaterThan(ran.indexOf('m'))
    // Everything below the first middle is over before the second begins.
    expect(ran.slice(0, ran.lastIndexOf('middle')).filter((name) => name === 'deep b')).toHaveLength(2)
    expect(errors).toEqual([])
  })

  // W5
  it('ends immediately when something deep in a tree has failed, or goes on where that was asked', async () => {
    const { ran, leaf, bad, flow } = types()
    const deep = flow('deep', (ctx) => ctx.queue([bad('deep bad'), leaf('deep good')]))
    const middle = flow('middle', (ctx) => ctx.queue([deep(null)]))
    const strict = flow('strict', (ctx) => ctx.queue([middle(null)]).next([leaf('never')], { of: 'tree' }))
    const lax = flow('lax', (ctx) => ctx.queue([middle(null)]).next([leaf('anyway')], { of: 'tree', when: 'all-done' }))
    const { w, until } = world(ground, { work: [leaf, bad, deep, middle, strict, lax] })

    await until(w.enqueue(strict(null)))
    expect(ran).not.toContain('never')
    expect(await until(w.enqueue(lax(null)))).toBe('anyway')
    expect(ran.at(-1)).toBe('anyway')
  })

  it('counts a nested chain as one: over when its last link is', async () => {
    const { ran, leaf, bad, flow } = types()
    const root = flow('root', (ctx) =>
      ctx
        .queue([
          leaf('x'),
          ctx
            .queue([leaf('a')])
            .next([leaf('b')])
            .next([leaf('c')]),
        ])
        .next([leaf('end')]),
    )
    const broken = flow('broken', (ctx) => ctx.queue([ctx.queue([bad('d')]).next([leaf('e')])]).next([leaf('f')]))
    const { w, until } = world(ground, { work: [leaf, bad, root, broken] })

    expect(await until(w.enqueue(root(null)))).toBe('end')
    expect(ran.filter((name) => 'abc'.includes(name))).toEqual(['a', 'b', 'c'])
    expect(ran.at(-1)).toBe('end')
    await until(w.enqueue(broken(null)))
    expect(ran.slice(-2)).toEqual(['broken', 'd'])
  })

  it('counts a work that is listed twice as the one item that it is, below .next, beside it and in trees', async () => {
    const ways: Record<string, (ctx: WorkContext, a: Work, fin: Work, top: Work) => WorkResult> = {
      'listed twice': (ctx, a, fin) => ctx.queue([a, a]).next([fin]),
      'in a nested result': (ctx, a, fin) => ctx.queue([a, ctx.queue([a])]).next([fin]),
      'after .next': (ctx, a, fin) => ctx.result(0).next([a, a]).next([fin]),
      'as a tree': (ctx, a, fin) => ctx.queue([a, a]).next([fin], { of: 'tree' }),
      'within a tree': (ctx, _, fin, top) => ctx.queue([top]).next([fin], { of: 'tree' }),
    }
    for (const [way, handler] of Object.entries(ways)) {
      const { ran, leaf, flow } = types()
      const [a, fin] = [leaf('a'), leaf('fin')]
      const top = flow('top', (ctx) => ctx.queue([a, a]))
      const root = flow('root', (ctx) => handler(ctx, a, fin, top(null)))
      const { w, until, events } = world(ground, { work: [leaf, top, root] })

      expect(await until(w.enqueue(root(null))), way).toBe('fin')
      expect(
        ran.filter((name) => name !== 'top'),
        way,
      ).toEqual(['root', 'a', 'fin'])
      expect(gates(events, 'failed'), way).toEqual([])
    }
  })

  it('may queue a gate over work of other groups', async () => {
    const { ran, leaf, flow } = types()
    const outside = leaf('outside')
    const root = flow('root', (ctx) =>
      ctx
        .queue([leaf('a')])
        .next([dependency({ on: outside, queue: leaf('b') }), dependency({ on: 'x', queue: leaf('c'), timeout: 50 })]),
    )
    const { w, until, clock } = world(ground, { work: [leaf, root] })
    const flowing = w.enqueue(root(null))
    await clock.advance(2_000)
    expect(ran).toEqual(['root', 'a'])
    void w.enqueue(outside)

    expect(await until(flowing)).toBe('b')
    expect(ran).toEqual(['root', 'a', 'outside', 'b'])
  })

  it('asks for instructions in .next to be returned, like all others', async () => {
    const { leaf } = types()
    const good = defineWork('good', (_: null, ctx) => ctx.queue([leaf('a')]).next(ctx.queue([ctx.queue([leaf('b')])])))
    const lost = defineWork(
      'lost',
      (_: null, ctx) => {
        ctx.queue([leaf('c')]).next([leaf('d')])
        return ctx.void()
      },
      { retry: { attempts: 1 } },
    )
    const { w, until } = world(ground, { work: [leaf, good, lost] })

    expect(await until(w.enqueue(good(null)))).toBe('b')
    await expect(until(w.enqueue(lost(null)).result())).rejects.toThrow('not returned')
  })

  it('refuses what cannot wait: a function, a condition that makes no sense, what is no work', async () => {
    const { leaf } = types()
    const bad = (name: string, handler: (ctx: WorkContext) => WorkResult) =>
      defineWork(name, (_: null, ctx) => handler(ctx), { retry: { attempts: 1 } })
    const fold = bad('fold', (ctx) => ctx.queue([]).next(ctx.result(1, { append: (n) => (n ?? 0) + 1 })))
    const odd = bad('odd', (ctx) => ctx.queue([]).next(leaf('a'), { count: 1.5 }))
    const none = bad('none', (ctx) => ctx.queue([]).next([{} as never]))
    const { w, until } = world(ground, { work: [leaf, fold, odd, none] })

    await expect(until(w.enqueue(fold(null)).result())).rejects.toThrow('cannot come after .next()')
    await expect(until(w.enqueue(odd(null)).result())).rejects.toThrow('.next condition.count')
    await expect(until(w.enqueue(none(null)).result())).rejects.toThrow('.next(items)')
  })
})
