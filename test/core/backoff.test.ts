import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  type BackoffOption,
  backoff,
  backoffRange,
  doublingDelay,
  exponential,
  MAX_DELAY_MS,
  resolveBackoff,
} from '../../src/core/retry/backoff.js'
import { setDefaultRetryOptions } from '../../src/core/retry/retry-defaults.js'
import { thrown } from './hostile.js'

afterEach(() => setDefaultRetryOptions())

const always = (value: number) => () => value

describe('the backoff of work', () => {
  // S64
  it('is the capped power minus the share that chance takes', () => {
    expect(backoff(1, { base: 100, factor: 2, max: 10_000, jitter: 0.5 }, always(1))).toBe(50)
    expect(backoff(2, { base: 100, factor: 2, max: 10_000, jitter: 0 })).toBe(200)
    expect(backoff(1, undefined, always(0))).toBe(1000)
  })

  it('takes what is missing from the process-wide defaults', () => {
    expect(backoff(3, { jitter: 0 })).toBe(4000)
    expect(backoff(10, { jitter: 0 })).toBe(30_000)
    setDefaultRetryOptions({ base: 10, jitter: 0 })
    expect(backoff(1)).toBe(10)
  })

  it('reads nonsense off the wire as the default, field by field', () => {
    const nonsense = { base: Number.NaN, factor: null, max: 'x', jitter: 7 } as never
    expect(backoff(1, nonsense, always(0))).toBe(1000)
    expect(backoff(1, null as never, always(0))).toBe(1000)
    expect(backoff(2, { base: 100, factor: 0.5, jitter: 0 })).toBe(200)
  })

  it('knows its range', () => {
    expect(backoffRange(2, { base: 100, jitter: 0.5 })).toEqual({ minMs: 100, maxMs: 200 })
    expect(backoffRange(2, { base: 100, jitter: 'full' })).toEqual({ minMs: 0, maxMs: 200 })
    expect(backoffRange(2, { base: 100, jitter: 0 })).toEqual({ minMs: 200, maxMs: 200 })
  })

  it('max: 0 means no pause at all here, as its formula says', () => {
    expect(backoff(5, { max: 0 })).toBe(0)
  })

  it('is always a whole number from 0 to the longest delay, and inside its range', () => {
    const number = fc.oneof(
      fc.double(),
      fc.integer(),
      fc.constantFrom(0, 1, Infinity, Number.MAX_VALUE, Number.MIN_VALUE),
    )
    const jitter = fc.oneof(number, fc.constantFrom<'full' | boolean>('full', true, false))
    fc.assert(
      fc.property(number, number, number, number, jitter, number, (attempt, base, factor, max, share, drawn) => {
        const options = { base, factor, max, jitter: share }
        const delay = backoff(attempt, options, always(drawn))
        expect(Number.isInteger(delay)).toBe(true)
        expect(delay).toBeGreaterThanOrEqual(0)
        expect(delay).toBeLessThanOrEqual(MAX_DELAY_MS)
        const { minMs, maxMs } = backoffRange(attempt, options)
        expect(delay).toBeGreaterThanOrEqual(minMs)
        expect(delay).toBeLessThanOrEqual(maxMs)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('the schedule of streams', () => {
  const delays = (schedule: { delay(attempt: number): number }, ...attempts: number[]) =>
    attempts.map((a) => schedule.delay(a))

  it('is 100, 200, 400, 800 by default without jitter, and meets its cap at attempt 10', () => {
    const schedule = exponential({ jitter: false })
    expect(delays(schedule, 1, 2, 3, 4)).toEqual([100, 200, 400, 800])
    expect(delays(schedule, 9, 10, 11, 1000)).toEqual([25_600, 30_000, 30_000, 30_000])
  })

  // S9
  it('base 100, max 1000, factor 2, no jitter: 100, then 200', () => {
    expect(delays(exponential({ baseMs: 100, maxMs: 1000, factor: 2, jitter: false }), 1, 2)).toEqual([100, 200])
  })

  // S12
  it('the first delay is the base', () => {
    expect(exponential({ baseMs: 1000, maxMs: 60_000, jitter: false }).delay(1)).toBe(1000)
  })

  // S14
  it('the cap is applied before full jitter', () => {
    const schedule = exponential({ baseMs: 1000, maxMs: 4000, factor: 2, jitter: true }, always(0.5))
    expect(delays(schedule, 1, 2, 3, 5)).toEqual([500, 1000, 2000, 2000])
  })

  // S17
  it('growth beyond every number is clamped before jitter', () => {
    expect(exponential({ baseMs: 100, maxMs: 0, factor: 2, jitter: false }).delay(2000)).toBe(2_147_483_647)
    expect(exponential({ baseMs: 100, maxMs: 0, factor: 2, jitter: true }, always(0)).delay(2000)).toBe(0)
    const uncapped = exponential({ baseMs: 100, maxMs: 0, factor: 2, jitter: false })
    expect(uncapped.delay(25)).toBe(1_677_721_600)
    expect(uncapped.delay(26)).toBe(MAX_DELAY_MS)
  })

  // W17
  it('floors, clamps chance, and treats attempts below 1 as the first', () => {
    expect(exponential({ baseMs: 337.5, jitter: false }).delay(1)).toBe(337)
    expect(exponential({ baseMs: 100 }, always(-3)).delay(1)).toBe(0)
    expect(exponential({ baseMs: 100 }, always(7)).delay(1)).toBe(99)
    expect(exponential({ baseMs: 100 }, always(Number.NaN)).delay(1)).toBe(50)
    const throwing = () => {
      throw new Error('no entropy')
    }
    expect(exponential({ baseMs: 100 }, throwing).delay(1)).toBe(50)
    const schedule = exponential({ jitter: false })
    expect(delays(schedule, 0, -5, Number.NaN, 1.9, -Infinity)).toEqual([100, 100, 100, 100, 100])
    expect(exponential({ factor: 1, jitter: 0 }).delay(Infinity)).toBe(100)
  })

  it('a share of jitter takes off at most that share', () => {
    expect(exponential({ baseMs: 1000, jitter: 0.25 }, always(0.999999)).delay(1)).toBe(750)
    expect(exponential({ baseMs: 1000, jitter: 0.25 }).range(1)).toEqual({ minMs: 750, maxMs: 1000 })
    expect(exponential({ baseMs: 1000 }).range(2)).toEqual({ minMs: 0, maxMs: 2000 })
  })

  it.each<[BackoffOption | null, string]>([
    [{ baseMs: 0 }, 'retry.backoff.baseMs must be a finite number > 0, got 0'],
    [{ baseMs: -1 }, 'retry.backoff.baseMs'],
    [{ baseMs: Infinity }, 'retry.backoff.baseMs'],
    [{ baseMs: 100, factor: 0.5 }, 'retry.backoff.factor must be a finite number >= 1, got 0.5'],
    [{ baseMs: 100, factor: Number.NaN }, 'retry.backoff.factor must be a finite number >= 1, got NaN'],
    [{ maxMs: -1 }, 'retry.backoff.maxMs'],
    [{ maxMs: Infinity }, 'retry.backoff.maxMs'],
    [{ maxMs: null as never }, 'retry.backoff.maxMs'],
    [{ jitter: 2 }, 'retry.backoff.jitter'],
    [{ jitter: 'half' as never }, 'retry.backoff.jitter'],
    // S16
  ])('%o is a RangeError that names the option', (option, message) => {
    expect(() => resolveBackoff('retry.backoff', option as BackoffOption)).toThrow(RangeError)
    expect(() => resolveBackoff('retry.backoff', option as BackoffOption)).toThrow(message)
  })

  // S16
  it('what is no backoff at all is a TypeError', () => {
    for (const option of [null, 5, 'fast', true, { delay: 5 }]) {
      expect(() => resolveBackoff('retry.backoff', option as never)).toThrow(TypeError)
      expect(() => resolveBackoff('retry.backoff', option as never)).toThrow('retry.backoff')
    }
    expect(() => exponential({}, 5 as never)).toThrow('random must be a function, got 5')
    expect(() => resolveBackoff('retry.backoff', { base: 100 } as never)).toThrow('Did you mean "baseMs"?')
  })
})

describe('a doubling delay', () => {
  const delays = (...ns: number[]) => ns.map((n) => doublingDelay(n, { baseMs: 100, maxMs: 1_000 }))

  it('starts at its base, doubles, and stops at its cap', () => {
    expect(delays(0, 1, 2, 3, 4, 5)).toEqual([100, 200, 400, 800, 1_000, 1_000])
  })

  it('stays at its cap however large n is, and starts at its base for any n that is no count', () => {
    expect(delays(64, 1_100, 1e300, Infinity)).toEqual([1_000, 1_000, 1_000, 1_000])
    expect(delays(-1, -Infinity, Number.NaN)).toEqual([100, 100, 100])
    expect(doublingDelay(5_000, { baseMs: 1, maxMs: Infinity })).toBe(MAX_DELAY_MS)
  })

  it('has no jitter unless asked for', () => {
    const o = { baseMs: 100, maxMs: 1_000 }
    expect(doublingDelay(1, o, always(0.5))).toBe(200)
    expect(doublingDelay(1, { ...o, jitter: 'full' }, always(0.25))).toBe(50)
    expect(doublingDelay(9, { ...o, jitter: 0.5 }, always(0.5))).toBe(750)
  })
})

describe('a custom backoff', () => {
  // S15
  it('is a function of the attempt, or an object with delay', () => {
    expect(resolveBackoff('b', (a) => a * 1000).delay(3)).toBe(3000)
    class Steps {
      readonly #step = 7
      delay(attempt: number) {
        return this.#step * attempt
      }
    }
    expect(resolveBackoff('b', new Steps()).delay(3)).toBe(21)
  })

  it('undefined is the default schedule, and an object is completed from it', () => {
    expect(resolveBackoff('b', undefined, always(0.5)).delay(1)).toBe(50)
    expect(resolveBackoff('b', { baseMs: 10, jitter: false }).delay(3)).toBe(40)
  })

  it.each<[unknown, number, boolean]>([
    [-5, 0, false],
    [-Infinity, 0, false],
    [1.7, 1, false],
    [Infinity, MAX_DELAY_MS, false],
    [1e300, MAX_DELAY_MS, false],
    [Number.NaN, 30_000, true],
    ['100', 30_000, true],
    [undefined, 30_000, true],
    [null, 30_000, true],
    [5n, 30_000, true],
    // W17
  ])('that answers %o is read as %i ms (warning: %o)', (answer, delay, isWarned) => {
    const warn = vi.fn()
    expect(resolveBackoff('retry.backoff', () => answer as number, Math.random, warn).delay(2)).toBe(delay)
    expect(warn.mock.calls.length === 1).toBe(isWarned)
    if (isWarned) expect(warn.mock.calls[0]?.[0]).toContain('retry.backoff must answer a number of milliseconds')
  })

  it('that throws, even with a logger that throws, is read as 30 s', () => {
    const boom = () => {
      throw new Error('boom')
    }
    expect(resolveBackoff('b', boom, Math.random, boom).delay(1)).toBe(30_000)
  })
})

describe('any options of a schedule', () => {
  it('give an error that names one of them, or delays that can be used', () => {
    const value = fc.oneof(fc.double(), fc.integer(), fc.anything(), fc.constantFrom('full', true, false, undefined))
    const option = fc.oneof(
      fc.record({ baseMs: value, maxMs: value, factor: value, jitter: value }, { requiredKeys: [] }),
      fc.anything(),
    )
    fc.assert(
      fc.property(option, fc.double(), fc.double(), (given, attempt, drawn) => {
        let schedule: { delay(attempt: number): number }
        try {
          schedule = resolveBackoff('my.backoff', given as BackoffOption, always(drawn))
        } catch (error) {
          expect(error).toHaveProperty('code', 'BAD_OPTION')
          expect((error as Error).message).toContain('my.backoff')
          return
        }
        const delay = schedule.delay(attempt)
        expect(Number.isInteger(delay)).toBe(true)
        expect(delay).toBeGreaterThanOrEqual(0)
        expect(delay).toBeLessThanOrEqual(MAX_DELAY_MS)
      }),
      { numRuns: 1000 },
    )
  })

  it('and any answer of a custom one is a usable delay', () => {
    fc.assert(
      fc.property(thrown(), (answer) => {
        const delay = resolveBackoff('b', () => answer() as number).delay(1)
        expect(Number.isInteger(delay) && delay >= 0 && delay <= MAX_DELAY_MS).toBe(true)
      }),
      { numRuns: 1000 },
    )
  })
})
