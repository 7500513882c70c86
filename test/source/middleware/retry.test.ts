import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InvalidForStateError, PoisonError, RetryAfterError } from '../../../src/core/failure/failure-errors.js'
import {
  ack,
  inProgress,
  manual,
  nak,
  nakAfter,
  type Result,
  type ResultOf,
  reject,
  skip,
  term,
} from '../../../src/core/stream/result.js'
import { InvalidResultError } from '../../../src/core/stream/stream-errors.js'
import { background, withAttempt } from '../../../src/source/message/context.js'
import type { Handler } from '../../../src/source/middleware/handler.js'
import { type RetryMiddlewareOptions, retry } from '../../../src/source/middleware/retry.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { messageOf } from '../message-of.js'

/** Runs one delivery through retry; without an attempt, its number is unknown. */
async function through(options: RetryMiddlewareOptions | undefined, handler: Handler | Result, attempt?: number) {
  const inner: Handler = typeof handler === 'function' ? handler : () => handler
  const ctx = attempt === undefined ? background() : withAttempt(background(), attempt)
  return retry(options)(inner)(ctx, messageOf())
}

const NO_JITTER = { baseMs: 100, maxMs: 1_000, factor: 2, jitter: false } as const

describe('a retryable failure under retry', () => {
  // S9
  it('comes back after a growing delay until its attempts are used up', async () => {
    const failure = new Error('upstream timeout')
    const run = (n: number) => through({ maxAttempts: 3, backoff: NO_JITTER }, nak(failure), n)

    expect(await run(1)).toEqual({
      action: 'nak',
      class: 'retryable',
      requeueMs: 100,
      error: failure,
      nextAttempt: 2,
    })
    expect(await run(2)).toMatchObject({ action: 'nak', class: 'retryable', requeueMs: 200, nextAttempt: 3 })
    expect(await run(3)).toEqual({ action: 'term', class: 'retryable', requeueMs: 0, error: failure })
    expect(await run(4)).toMatchObject({ action: 'term', class: 'retryable' })
  })

  // S12
  it('counts as the first attempt when its number is unknown', async () => {
    const backoff = { baseMs: 1_000, maxMs: 60_000, jitter: false }
    expect(await through({ backoff }, nak())).toMatchObject({ requeueMs: 1_000, nextAttempt: 2 })
  })

  // S13
  it('ends immediately with maxAttempts 1, and keeps its error by identity', async () => {
    const failure = new Error('no')
    const result = await through({ maxAttempts: 1 }, nak(failure))
    expect(result).toMatchObject({ action: 'term', class: 'retryable', requeueMs: 0 })
    expect(result.error).toBe(failure)
  })

  // S14
  it('is spread by full jitter, after the cap', async () => {
    const options = { maxAttempts: 10, backoff: { baseMs: 1_000, maxMs: 4_000, factor: 2 }, random: () => 0.5 }
    const delays = await Promise.all([1, 2, 3, 5].map((n) => through(options, nak(), n)))
    expect(delays.map((r) => r.requeueMs)).toEqual([500, 1_000, 2_000, 2_000])
  })

  it('has the default schedule: from 100 ms doubling to 30 s, five attempts, full jitter', async () => {
    const almostOne = () => 1 - Number.EPSILON
    const delays = await Promise.all([1, 2, 3, 4].map((n) => through({ random: almostOne }, nak(), n)))
    expect(delays.map((r) => r.requeueMs)).toEqual([99, 199, 399, 799])
    expect(await through({ random: almostOne }, nak(), 5)).toMatchObject({ action: 'term' })
    expect(await through({ random: () => 0 }, nak(), 4)).toMatchObject({ action: 'nak', requeueMs: 0 })
    const tenth = await through({ maxAttempts: 11, backoff: { jitter: false } }, nak(), 10)
    expect(tenth.requeueMs).toBe(30_000)
  })

  // S15
  it('follows a schedule of the user’s, as a function or an object', async () => {
    expect(await through({ backoff: (a) => a * 1_000 }, nak(), 3)).toMatchObject({ requeueMs: 3_000 })
    expect(await through({ backoff: { delay: (a) => a * 10 } }, nak(), 4)).toMatchObject({ requeueMs: 40 })
  })

  // S17
  it('never waits longer than a timer can, and never "not a number"', async () => {
    const backoff = { baseMs: 100, maxMs: 0, factor: 2 }
    const late = (random: number, jitter: boolean) =>
      through({ maxAttempts: Infinity, backoff: { ...backoff, jitter }, random: () => random }, nak(), 2_000)
    expect((await late(0, false)).requeueMs).toBe(2_147_483_647)
    expect((await late(0, true)).requeueMs).toBe(0)
  })

  // S18
  it('does not come back before the handler asked for it', async () => {
    expect(await through({ random: () => 0.5 }, nakAfter(60_000, 'busy'), 1)).toMatchObject({
      action: 'nak',
      requeueMs: 60_000,
      nextAttempt: 2,
    })
    expect(await through({ random: () => 0.5 }, nakAfter(10), 4)).toMatchObject({ requeueMs: 400 })
  })

  it('follows only its schedule when the handler’s delay is not honoured', async () => {
    const options = { honourHandlerDelay: false, random: () => 0.5 }
    expect(await through(options, nakAfter(60_000), 1)).toMatchObject({ requeueMs: 50 })
  })

  // S19
  it('counts when it is unclassified too: it does not loop forever', async () => {
    const unclassified: Result = { action: 'nak', class: 'unclassified', requeueMs: 0 }
    expect(await through({}, unclassified, 5)).toMatchObject({ action: 'term', class: 'retryable' })
    expect(await through({ random: () => 0.5 }, unclassified, 1)).toMatchObject({
      action: 'nak',
      class: 'retryable',
      requeueMs: 50,
      nextAttempt: 2,
    })
  })

  it('has a delay from 0 to its ceiling, and one attempt more, whatever chance says', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 40 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.integer({ min: 0, max: 100_000 }),
        async (attempt, maxAttempts, drawn, asked) => {
          const result = await through({ maxAttempts, random: () => drawn }, nakAfter(asked), attempt)
          if (attempt >= maxAttempts) {
            expect(result.action).toBe('term')
            return
          }
          const ceiling = Math.min(30_000, 100 * 2 ** (attempt - 1))
          expect(result).toMatchObject({ action: 'nak', nextAttempt: attempt + 1 })
          expect(result.requeueMs).toBeGreaterThanOrEqual(asked)
          expect(result.requeueMs).toBeLessThanOrEqual(Math.max(asked, ceiling))
        },
      ),
      { numRuns: 1_000 },
    )
  })
})

describe('everything else under retry', () => {
  // S10
  it('a term passes through as the same object, whatever its class', async () => {
    const gaveUp: Result = Object.freeze({ action: 'term', class: 'retryable', requeueMs: 0 })
    for (const result of [term(new Error('malformed')), reject(new Error('late')), gaveUp]) {
      expect(await through(undefined, result, 9)).toBe(result)
    }
  })

  // S11
  it('ack and skip pass through as the same object, and so do inProgress and manual', async () => {
    for (const result of [ack(), skip(), inProgress(), manual()])
      expect(await through(undefined, result, 9)).toBe(result)
  })

  it('a nak that must not be escalated passes through as the same object, at any attempt', async () => {
    const busy = nakAfter(1_000, new Error('busy'), { noEscalate: true })
    expect(await through({ maxAttempts: 1 }, busy, 7)).toBe(busy)
  })
})

describe('a handler that throws under retry, without an engine', () => {
  const throwing = (error: unknown) => (): Result => {
    throw error
  }

  it('is classified first: poison is terminated, what is invalid for its state is rejected', async () => {
    const poison = new PoisonError('never')
    expect(await through({}, throwing(poison), 1)).toEqual(term(poison))
    const late = new InvalidForStateError('late')
    expect(await through({}, throwing(late), 1)).toEqual(reject(late))
  })

  it('is retried otherwise, not before it asked, and gives up like any other', async () => {
    const failure = new Error('reset')
    expect(await through({ backoff: NO_JITTER }, throwing(failure), 2)).toMatchObject({
      action: 'nak',
      requeueMs: 200,
      error: failure,
    })
    expect(await through({ backoff: NO_JITTER }, throwing(failure), 5)).toMatchObject({
      action: 'term',
      error: failure,
    })
    const closed = new RetryAfterError(30_000)
    expect(await through({ backoff: NO_JITTER }, throwing(closed), 1)).toMatchObject({ requeueMs: 30_000 })
  })

  it('also when it rejects, or returns something that is no result', async () => {
    const failure = new Error('reset')
    expect(await through({}, () => Promise.reject(failure), 5)).toMatchObject({ action: 'term', error: failure })
    const nothing = await through({}, (() => undefined) as unknown as Handler, 5)
    expect(nothing).toMatchObject({ action: 'term', error: expect.any(InvalidResultError) })
  })
})

describe('retry itself', () => {
  it('holds no state: a thousand deliveries at the same time do not disturb each other', async () => {
    const middleware = retry({ maxAttempts: 3, backoff: NO_JITTER })
    const handler = middleware(async (_ctx, message) => {
      await Promise.resolve()
      return nak(message.cursor.toString())
    })
    const results = await Promise.all(
      Array.from({ length: 1_000 }, (_, i) =>
        handler(withAttempt(background(), (i % 3) + 1), messageOf({ cursor: String(i) })),
      ),
    )
    results.forEach((result, i) => {
      expect(result.error).toBe(String(i))
      expect(result.action).toBe(i % 3 === 2 ? 'term' : 'nak')
      expect(result.requeueMs).toBe([100, 200, 0][i % 3])
    })
  })

  it('never sleeps', async () => {
    const clock = new FakeClock()
    await through({ clock, backoff: NO_JITTER }, nak(), 1)
    expect(clock.pending).toBe(0)
  })

  it('says that it is retry, and how often it tries', () => {
    const { kind, maxAttempts } = retry()
    expect({ kind, maxAttempts }).toEqual({ kind: 'retry', maxAttempts: 5 })
    expect(retry({ maxAttempts: Infinity }).maxAttempts).toBe(Infinity)
  })

  it('reports a schedule that answers with nonsense, and waits 30 s', async () => {
    const warnings: string[] = []
    const options = { backoff: () => Number.NaN, warn: (message: string) => void warnings.push(message) }
    expect(await through(options, nak(), 1)).toMatchObject({ requeueMs: 30_000 })
    expect(warnings).toEqual([expect.stringContaining('retry.backoff must answer a number')])
    expect(await through({ backoff: () => -5 }, nak(), 1)).toMatchObject({ requeueMs: 0 })
    expect(await through({ backoff: () => 337.5 }, nak(), 1)).toMatchObject({ requeueMs: 337 })
    expect(await through({ backoff: (() => 'soon') as never }, nak(), 1)).toMatchObject({ requeueMs: 30_000 })
  })
})

describe('an option of retry that makes no sense', () => {
  it.each<[RetryMiddlewareOptions, string]>([
    [{ maxAttempts: 0 }, 'retry.maxAttempts must be an integer >= 1, got 0'],
    [{ maxAttempts: 1.5 }, 'retry.maxAttempts'],
    [{ maxAttempts: Number.NaN }, 'retry.maxAttempts'],
    [{ maxAttempts: null as never }, 'retry.maxAttempts'],
    [{ backoff: { baseMs: 0 } }, 'retry.backoff.baseMs'],
    [{ backoff: { baseMs: -1 } }, 'retry.backoff.baseMs'],
    [{ backoff: { baseMs: 100, factor: 0.5 } }, 'retry.backoff.factor'],
    [{ backoff: { baseMs: 100, factor: Number.NaN } }, 'retry.backoff.factor'],
    [{ backoff: { maxMs: -1 } }, 'retry.backoff.maxMs'],
    [{ backoff: { maxMs: Infinity } }, 'retry.backoff.maxMs'],
    // S16
  ])('%j is a RangeError that names it', (options, text) => {
    expect(() => retry(options)).toThrow(RangeError)
    expect(() => retry(options)).toThrow(text)
  })

  it.each<[RetryMiddlewareOptions, string]>([
    [{ random: 5 as never }, 'retry.random'],
    [{ clock: {} as never }, 'retry.clock'],
    [{ clock: null as never }, 'retry.clock'],
    [{ backoff: null as never }, 'retry.backoff'],
    [{ backoff: 100 as never }, 'retry.backoff'],
    [{ backoff: { delay: 100 as never } }, 'retry.backoff.delay'],
    [{ honourHandlerDelay: 'yes' as never }, 'retry.honourHandlerDelay'],
    [{ warn: 'loud' as never }, 'retry.warn'],
    [null as never, 'retry'],
  ])('%j is a TypeError that names it', (options, text) => {
    expect(() => retry(options)).toThrow(TypeError)
    expect(() => retry(options)).toThrow(text)
  })

  it('is refused when it is misspelt, with the closest name', () => {
    expect(() => retry({ maxAttempt: 3 } as never)).toThrow(/"maxAttempt" is not an option of retry.*"maxAttempts"/)
  })

  it('leaves the rest of a partial backoff at its defaults', async () => {
    const result = await through({ backoff: { jitter: false } }, nak(), 3)
    expect((result as ResultOf<'nak'>).requeueMs).toBe(400)
  })
})
