import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { CancelledError, defineBatchWork, defineContract, defineWork, PoisonError } from '../../src/index.js'
import { FakeClock, fakeContext, fakeOutcomes } from '../../src/testing/index.js'

interface Order {
  readonly id: string
}

const resize = defineWork('resize', (file: string) => `small-${file}`)
const glue = defineWork('glue', (files: readonly string[]) => files.join())

describe('the handler of a definition', () => {
  it('is the function that was given, for work and for work of a contract', () => {
    const run = (order: Order) => order.id
    const contract = defineContract('charge', z.object({ id: z.string() }))
    expect(defineWork('charge', run).handler).toBe(run)
    expect(defineWork(contract, run).handler).toBe(run)
    expect(resize.handler('a.png', fakeContext())).toBe('small-a.png')
  })

  it('of a batch takes all inputs, and says what became of each', async () => {
    const index = defineBatchWork('index', {
      size: 10,
      maxWait: 5,
      run: (docs: readonly Order[], { ok, fail }) =>
        docs.map(({ id }) => (id === 'bad' ? fail(new PoisonError('unreadable')) : ok(id))),
    })
    const outcomes = fakeOutcomes()
    expect(await outcomes.read(index.handler([{ id: 'a' }, { id: 'bad' }], outcomes))).toEqual([
      { ok: true, value: 'a' },
      { ok: false, error: new PoisonError('unreadable') },
    ])
  })

  it('of a batch is not let off with an outcome that it does not return', async () => {
    const outcomes = fakeOutcomes()
    outcomes.fail(new Error('forgotten'))
    await expect(outcomes.read(['a'])).rejects.toMatchObject({ code: 'NOT_RETURNED' })
  })
})

describe('a fake context', () => {
  it('is that of a first run, unless the test says otherwise', () => {
    const { id, groupId, attempt, deliveries, fence, parent, deadline, signal } = fakeContext()
    expect({ id, groupId, attempt, deliveries, fence, parent, deadline }).toEqual({
      id: 'fake-item',
      groupId: 'fake-group',
      attempt: 1,
      deliveries: 1,
      fence: 1,
      parent: undefined,
      deadline: undefined,
    })
    expect(signal.aborted).toBe(false)
    expect(fakeContext({ id: 'o-1', attempt: 3, deliveries: 2, deadline: 9, parent: 'p' })).toMatchObject({
      id: 'o-1',
      attempt: 3,
      fence: 2,
      deadline: 9,
      parent: 'p',
    })
  })

  it('reads what a handler returned as the engine does', async () => {
    const album = defineWork('album', async (files: readonly string[], ctx) => {
      ctx.progress({ files: files.length })
      return ctx
        .queue(
          files.map((file) => resize(file)),
          { priority: 5 },
        )
        .next((done) => glue(done), 'all-done')
    })
    const ctx = fakeContext()
    const { result, queued, options, next } = await ctx.outcomeOf(album.handler(['a.png', 'b.png'], ctx))

    expect(result).toBeUndefined()
    expect(queued).toMatchObject([
      { type: 'resize', input: 'a.png' },
      { type: 'resize', input: 'b.png' },
    ])
    expect(options).toEqual({ priority: 5 })
    expect(next).toMatchObject([{ condition: 'all-done', queued: [{ type: 'glue' }] }])
    expect(ctx.calls.progress).toEqual([{ files: 2 }])
  })

  it('gives a result as callers get it: awaited, encoded and decoded', async () => {
    class Receipt {
      readonly at = new Date(0)
      total(): number {
        return 1
      }
    }
    const ctx = fakeContext()
    const { result, final } = await ctx.outcomeOf(ctx.result(Promise.resolve(new Receipt()), { final: true }))
    expect(result).toStrictEqual({ at: new Date(0) })
    expect(final).toBe(true)
    const plain = fakeContext()
    expect((await plain.outcomeOf(7)).result).toBe(7)
  })

  it('keeps what is queued among what is queued', async () => {
    const ctx = fakeContext()
    const { queued } = await ctx.outcomeOf(ctx.queue([resize('a'), ctx.queue(resize('b'))]))
    expect(queued).toMatchObject([{ input: 'a' }, { queued: [{ input: 'b' }] }])
  })

  it.each<[string, string, (ctx: ReturnType<typeof fakeContext>) => unknown]>([
    ['an instruction that was not returned', 'NOT_RETURNED', (ctx) => void ctx.queue(resize('a'))],
    ['work as a value', 'NOT_A_RESULT', () => resize('a')],
  ])('refuses %s', async (_, code, handler) => {
    const ctx = fakeContext()
    await expect(ctx.outcomeOf(handler(ctx))).rejects.toMatchObject({ code })
  })

  it('rejects with what the handler threw', async () => {
    const ctx = fakeContext()
    await expect(ctx.outcomeOf(Promise.reject(new PoisonError('no such account')))).rejects.toThrow('no such account')
  })

  it('knows what came before', async () => {
    const before = [resize('a'), resize('b')] as const
    const ctx = fakeContext({
      dependents: [
        { work: before[0], result: 'small-a' },
        { work: before[1], error: new Error('too large') },
      ],
    })
    expect(ctx.dependents).toEqual(before.map(({ id }) => id))
    expect(await ctx.results([before[0]])).toEqual(['small-a'])
    await expect(ctx.results([resize, resize])).rejects.toMatchObject({ code: 'NO_RESULT' })
    await expect(ctx.results([glue, resize])).rejects.toMatchObject({ code: 'NOT_DEPENDENTS' })
    expect(await ctx.states([before[1].id, 'unknown'])).toMatchObject([
      { status: 'dead', ending: 'exhausted', error: 'Error: too large' },
      undefined,
    ])
    expect(ctx.calls).toMatchObject({ results: 3, states: [[before[1].id, 'unknown']] })
  })

  it('claims a key once a day', async () => {
    const clock = new FakeClock()
    const ctx = fakeContext({ clock, claimed: ['taken'] })
    expect([await ctx.claim('taken'), await ctx.claim('mine'), await ctx.claim('mine')]).toEqual([false, true, false])
    await clock.advance(86_400_001)
    expect(await ctx.claim('mine')).toBe(true)
    expect(ctx.calls.claim).toEqual(['taken', 'mine', 'mine', 'mine'])
  })

  it('aborts a handler that waits, on the clock of the test', async () => {
    const ctx = fakeContext()
    const nap = defineWork('nap', async (_: null, { signal }) => {
      await ctx.clock.sleep(60_000, signal)
    })
    const running = nap.handler(null, ctx)
    ctx.abort()
    await expect(running).rejects.toBeInstanceOf(CancelledError)

    const given = new AbortController()
    const other = fakeContext({ signal: given.signal })
    given.abort(new Error('enough'))
    expect(other.signal.reason).toEqual(new Error('enough'))
  })

  it('refuses a misspelt option', () => {
    expect(() => fakeContext({ atempt: 2 } as never)).toThrow(/"atempt" is not an option of fakeContext.*"attempt"/)
  })
})
