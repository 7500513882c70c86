import fc from 'fast-check'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { classLabel } from '../../src/core/failure/failure.js'
import {
  type Action,
  ack,
  actionLabel,
  exhausted,
  inProgress,
  isFailed,
  isResult,
  manual,
  nak,
  nakAfter,
  type Result,
  reject,
  skip,
  term,
} from '../../src/core/stream/result.js'
import { thrown } from './hostile.js'

const x = new Error('x')

describe('the constructors of a Result', () => {
  it.each<[string, Result, Action, string, number, unknown, boolean]>([
    ['ack()', ack(), 'ack', 'unclassified', 0, undefined, false],
    ['nak(x)', nak(x), 'nak', 'retryable', 0, x, true],
    // S1
    ['nakAfter(2000, x)', nakAfter(2000, x), 'nak', 'retryable', 2000, x, true],
    ['term(x)', term(x), 'term', 'poison', 0, x, true],
    // S2
    ['reject(x)', reject(x), 'term', 'invalidForState', 0, x, true],
    // S2
    ['skip()', skip(), 'ack', 'drop', 0, undefined, false],
    ['inProgress()', inProgress(), 'inProgress', 'unclassified', 0, undefined, false],
    ['manual()', manual(), 'manual', 'unclassified', 0, undefined, false],
    ['exhausted(x)', exhausted(x), 'term', 'retryable', 0, x, true],
    ['term()', term(), 'term', 'poison', 0, undefined, true],
  ])('%s has the fields of the table', (_, result, action, failureClass, requeueMs, error, failed) => {
    expect(result.action).toBe(action)
    expect(result.class).toBe(failureClass)
    expect(result.requeueMs).toBe(requeueMs)
    expect(result.error).toBe(error)
    expect(isFailed(result)).toBe(failed)
    expect(Object.isFrozen(result)).toBe(true)
    expect(isResult(result)).toBe(true)
  })

  it('nakAfter carries what an adapter and the retry policy need', () => {
    expect(nakAfter(0, x, { nextAttempt: 4 })).toMatchObject({ nextAttempt: 4 })
    expect(nakAfter(0, x, { noEscalate: true })).toMatchObject({ noEscalate: true })
  })

  it.each([-1, Number.NaN, Infinity, -Infinity, '5', null, undefined])('nakAfter(%s) is a RangeError', (ms) => {
    expect(() => nakAfter(ms as number, x)).toThrow(RangeError)
    expect(() => nakAfter(ms as number, x)).toThrow(/nakAfter\(ms\)/)
  })

  it('the type has no poison that is redelivered and no ack with an error', () => {
    expectTypeOf<Extract<Result, { action: 'nak' }>['class']>().toEqualTypeOf<'retryable' | 'unclassified'>()
    // @ts-expect-error a nak is never poison
    const wrong: Result = { action: 'nak', class: 'poison', requeueMs: 0 }
    expect(isResult(wrong)).toBe(false)
  })
})

describe('labels', () => {
  // S4
  it('are snake case, and unknown words have one too', () => {
    expect(actionLabel('inProgress')).toBe('in_progress')
    expect(classLabel('invalidForState')).toBe('invalid_for_state')
    for (const action of ['ack', 'nak', 'term', 'manual'] as const) expect(actionLabel(action)).toBe(action)
    expect(actionLabel('toString' as Action)).toBe('unknown')
    expect(actionLabel(undefined as unknown as Action)).toBe('unknown')
    expect(classLabel('nonsense' as never)).toBe('unclassified')
  })
})

describe('distinguishing a Result from anything else', () => {
  it.each([
    undefined,
    null,
    true,
    'ack',
    {},
    { action: 'ack' },
    { action: 'ack', class: 'unclassified' },
    { action: 'ack', class: 'retryable', requeueMs: 0 },
    { action: 'ack', class: 'drop', requeueMs: 5 },
    { action: 'ack', class: 'drop', requeueMs: 0, error: 1 },
    { action: 'nak', class: 'poison', requeueMs: 0 },
    { action: 'nak', class: 'retryable', requeueMs: -1 },
    { action: 'nak', class: 'retryable', requeueMs: Number.NaN },
    { action: 'nak', class: 'retryable', requeueMs: 0, nextAttempt: 0 },
    { action: 'nak', class: 'retryable', requeueMs: 0, noEscalate: false },
    { action: 'term', class: 'drop', requeueMs: 0 },
    { action: 'term', class: 'poison', requeueMs: 0, deadLettered: 'yes' },
    { action: 'constructor', class: 'poison', requeueMs: 0 },
    [ack()],
    Promise.resolve(ack()),
  ])('%o is none', (value) => {
    expect(isResult(value)).toBe(false)
  })

  it('literals of the right shape count', () => {
    expect(isResult({ action: 'nak', class: 'unclassified', requeueMs: 0 })).toBe(true)
    expect(isResult({ action: 'term', class: 'retryable', requeueMs: 0, error: x, deadLettered: true })).toBe(true)
  })

  it('never throws', () => {
    fc.assert(
      fc.property(thrown(), (make) => {
        expect(isResult(make())).toBe(false)
      }),
      { numRuns: 1000 },
    )
  })
})
