import fc from 'fast-check'
import { describe, expect, expectTypeOf, it } from 'vitest'
import {
  AttemptHeader,
  attempt,
  background,
  type Context,
  type ContextKey,
  contextKey,
  runContext,
  withAttempt,
} from '../../src/source/message/context.js'

describe('the attempt in a context', () => {
  // S8
  it('is 1 until it is set, and a child does not change its parent', () => {
    const ctx = background()
    expect(attempt(ctx)).toEqual([1, false])
    expect(attempt(withAttempt(ctx, 7))).toEqual([7, true])
    expect(attempt(ctx)).toEqual([1, false])
    expect(attempt(withAttempt(ctx, 1))).toEqual([1, true])
  })

  // S8
  it.each([0, 1.5, -1, Number.NaN, Infinity, '2'])('cannot be %s', (n) => {
    expect(() => withAttempt(background(), n as number)).toThrow(RangeError)
  })

  it('travels in the header that Crucible names', () => {
    expect(AttemptHeader).toBe('crucible-retry-attempt')
  })
})

describe('values in a context', () => {
  it('are found by the very key, never by its name', () => {
    const mine = contextKey<string>('tenant')
    const theirs = contextKey<string>('tenant')
    const ctx = background().with(mine, 'acme')
    expect(ctx.get(mine)).toBe('acme')
    expect(ctx.get(theirs)).toBeUndefined()
    expectTypeOf(ctx.get(mine)).toEqualTypeOf<string | undefined>()
  })

  it('keep the type of their key', () => {
    const key = contextKey<number>('n')
    // @ts-expect-error a string is no number
    background().with(key, 'x')
    // @ts-expect-error a key of numbers is no key of strings
    const other: ContextKey<string> = key
    expect(other).toBe(key)
  })

  it('may be undefined or shadowed by an inner one', () => {
    const key = contextKey<number | undefined>('n')
    const outer = background().with(key, 1)
    expect(outer.with(key, undefined).get(key)).toBeUndefined()
    expect(outer.with(key, 2).get(key)).toBe(2)
    expect(outer.get(key)).toBe(1)
  })

  it('read as a map that is copied on every change would', () => {
    const keys = Array.from({ length: 5 }, (_, i) => contextKey<number>(`k${i}`))
    const step = fc.record({ parent: fc.nat(), key: fc.nat({ max: 4 }), value: fc.integer() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const all: { ctx: Context; map: Map<unknown, number> }[] = [{ ctx: background(), map: new Map() }]
        for (const { parent, key, value } of steps) {
          const from = all[parent % all.length]!
          all.push({ ctx: from.ctx.with(keys[key]!, value), map: new Map(from.map).set(keys[key], value) })
        }
        const read = all.map(({ ctx }) => keys.map((key) => ctx.get(key)))
        expect(read).toStrictEqual(all.map(({ map }) => keys.map((key) => map.get(key))))
      }),
      { numRuns: 1_000 },
    )
  })

  it('go as deep as one likes', () => {
    const key = contextKey<number>('n')
    const first = contextKey<string>('first')
    let ctx = background().with(first, 'still here')
    for (let i = 0; i < 10_000; i += 1) ctx = ctx.with(key, i)
    expect(ctx.get(key)).toBe(9_999)
    expect(ctx.get(first)).toBe('still here')
  })
})

describe('the signal of a context', () => {
  it('is the one it was given, in every child', () => {
    const { signal } = new AbortController()
    const ctx = background(signal)
    expect(ctx.signal).toBe(signal)
    expect(withAttempt(ctx, 2).signal).toBe(signal)
  })

  it('never aborts without one, and is not shared with other contexts', () => {
    const ctx = background()
    expect(ctx.signal.aborted).toBe(false)
    expect(withAttempt(ctx, 2).signal).toBe(ctx.signal)
    expect(background().signal).not.toBe(ctx.signal)
  })

  it('is asked of a run only when it is read', () => {
    let asked = 0
    const { signal } = new AbortController()
    const run = {
      get signal() {
        asked += 1
        return signal
      },
    }
    const ctx = withAttempt(runContext(run), 3)
    expect(attempt(ctx)).toEqual([3, true])
    expect(asked).toBe(0)
    expect(ctx.signal).toBe(signal)
    expect(asked).toBe(1)
  })
})

describe('the lease of a run', () => {
  it('can be extended from every child where the run can, and is absent where it cannot', async () => {
    let extended = 0
    const extendLease = async () => {
      extended += 1
    }
    const ctx = withAttempt(runContext(new AbortController(), extendLease), 2)
    await ctx.extendLease?.()
    expect(extended).toBe(1)
    expect(withAttempt(background(), 2).extendLease).toBeUndefined()
  })
})
