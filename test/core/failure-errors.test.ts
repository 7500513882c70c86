import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MillraceError } from '../../src/core/error.js'
import { abortReason, isRetryAbort, RetryAbort, WorkDelayError } from '../../src/core/failure/control-errors.js'
import {
  DecodeError,
  GuardRejection,
  InvalidForStateError,
  NonRetryableError,
  PoisonError,
  RetryAfterError,
  RetryableError,
  SchemaError,
} from '../../src/core/failure/failure-errors.js'
import { isInvalidForState, isPoison, isRetryable } from '../../src/core/failure/failure-predicates.js'
import {
  BatchResultCountError,
  DrainedError,
  InvalidResultError,
  NoCodecError,
} from '../../src/core/stream/stream-errors.js'
import { cyclic, endless, revoked, selfContaining, throwingGetters, thrown } from './hostile.js'

const boom = new Error('boom')

describe('a DecodeError', () => {
  // S5
  it('is poison, keeps its cause, and names subject and content type', () => {
    const error = new DecodeError('application/json', 'orders', boom)
    expect(isPoison(error)).toBe(true)
    expect(isInvalidForState(error)).toBe(false)
    expect(error.cause).toBe(boom)
    expect(error.message).toContain('application/json')
    expect(error.message).toContain('orders')
    expect(error).toMatchObject({ name: 'DecodeError', contentType: 'application/json', subject: 'orders' })
  })

  // S5
  it('does not mention a content type that is not there', () => {
    const error = new DecodeError('', 'orders', boom)
    expect(error.message).not.toContain('content-type')
    expect(error.message).toContain('orders')
  })

  it('quotes only a little of a huge cause', () => {
    expect(new DecodeError('', 's', new Error('z'.repeat(1e6))).message.length).toBeLessThan(700)
  })
})

describe('the explicit errors', () => {
  // S5
  it('a GuardRejection inside an AggregateError is invalid for its state', () => {
    const rejection = new GuardRejection('Cancel', 'delivered', boom)
    expect(rejection).toMatchObject({ event: 'Cancel', state: 'delivered', cause: boom, name: 'GuardRejection' })
    expect(isInvalidForState(new AggregateError([boom, rejection]))).toBe(true)
    expect(isInvalidForState(new AggregateError([boom]))).toBe(false)
  })

  it('are distinguished by disjoint predicates', () => {
    const table: readonly [unknown, boolean, boolean, boolean][] = [
      [new PoisonError(), true, false, false],
      [new NonRetryableError('no'), true, false, false],
      [new DecodeError('', 's'), true, false, false],
      [new SchemaError('s', boom), true, false, false],
      [new InvalidForStateError(), false, true, false],
      [new GuardRejection('e', 's'), false, true, false],
      [new RetryableError(), false, false, true],
      [new RetryAfterError(5), false, false, true],
      [new RetryAbort(), false, false, false],
      [new WorkDelayError({}), false, false, false],
      [new DrainedError(), false, false, false],
      [boom, false, false, false],
    ]
    for (const [error, poison, invalid, retryable] of table) {
      expect([error, isPoison(error), isInvalidForState(error), isRetryable(error)]).toEqual([
        error,
        poison,
        invalid,
        retryable,
      ])
    }
  })

  it('are found through causes and aggregates, at any depth', () => {
    const deep = new Error('a', { cause: new AggregateError([boom, new Error('b', { cause: new PoisonError('c') })]) })
    expect(isPoison(deep)).toBe(true)
    expect(isRetryable(deep)).toBe(false)
  })

  it('are known by code or name when they come from another copy of the package, and never by message', () => {
    expect(isPoison(Object.assign(new Error('x'), { code: 'POISON' }))).toBe(true)
    expect(isPoison({ name: 'NonRetryableError', message: 'x' })).toBe(true)
    expect(isPoison({ name: 'SchemaError' })).toBe(true)
    expect(isInvalidForState({ name: 'GuardRejection' })).toBe(true)
    expect(isRetryable({ code: 'RETRYABLE' })).toBe(true)
    expect(isPoison(new Error('PoisonError: POISON'))).toBe(false)
    expect(isPoison('PoisonError')).toBe(false)
  })

  it('are all MillraceErrors with a code, the name of their class, and a way to be extended', () => {
    class NoSuchOrder extends PoisonError {}
    const error = new NoSuchOrder('order 7 is gone', { cause: boom })
    expect(error).toBeInstanceOf(MillraceError)
    expect(error).toMatchObject({ name: 'NoSuchOrder', code: 'POISON', cause: boom, message: 'order 7 is gone' })
    expect(isPoison(error)).toBe(true)
    expect(new DrainedError().code).toBe('DRAINED')
    expect(new NoCodecError('text/csv')).toMatchObject({ code: 'NO_CODEC', contentType: 'text/csv' })
    expect(new NoCodecError().message).toContain('without a content type')
    expect(new BatchResultCountError(3, 1)).toMatchObject({ code: 'BATCH_RESULT_COUNT', expected: 3, got: 1 })
    expect(new InvalidResultError('undefined').message).toContain('undefined')
  })

  it('the predicates never throw', () => {
    for (const odd of [revoked(), throwingGetters(), cyclic(), endless(), selfContaining()])
      expect(isPoison(odd)).toBe(false)
    fc.assert(
      fc.property(thrown(), (make) => {
        const error = make()
        expect(typeof isPoison(error)).toBe('boolean')
        expect(typeof isInvalidForState(error)).toBe('boolean')
        expect(typeof isRetryable(error)).toBe('boolean')
      }),
      { numRuns: 1000 },
    )
  })
})

describe('a RetryAbort', () => {
  it('has its cause, its name and its message', () => {
    const error = new RetryAbort(boom)
    expect(error).toMatchObject({ name: 'RetryAbort', message: 'retry aborted', cause: boom })
    expect(new RetryAbort(boom, 'enough').message).toBe('enough')
    expect(new RetryAbort().cause).toBeUndefined()
    expect('cause' in new RetryAbort()).toBe(false)
  })

  it('stands for its cause, or for itself', () => {
    const bare = new RetryAbort()
    expect(abortReason(new RetryAbort(boom))).toBe(boom)
    expect(abortReason(bare)).toBe(bare)
    expect(abortReason(boom)).toBe(boom)
    expect(abortReason(undefined)).toBeUndefined()
    expect(abortReason({ name: 'RetryAbort', cause: 'why' })).toBe('why')
    expect(isRetryAbort(revoked())).toBe(false)
  })
})

describe('a WorkDelayError', () => {
  it('has its when, its name and its message', () => {
    expect(new WorkDelayError({ delay: 15 })).toMatchObject({
      name: 'WorkDelayError',
      message: 'work deferred',
      when: { delay: 15 },
    })
    expect(new WorkDelayError({ runAt: 5 }, 'later').message).toBe('later')
    expect(new WorkDelayError({}).when).toEqual({})
  })

  it('refuses a time that would defer it forever', () => {
    expect(() => new WorkDelayError({ delay: Number.NaN })).toThrow(
      /WorkDelayError\.delay must be a finite number, got NaN/,
    )
    expect(() => new WorkDelayError({ runAt: Infinity })).toThrow(RangeError)
    expect(() => new WorkDelayError({ dely: 5 } as never)).toThrow(/Did you mean "delay"/)
    expect(() => new WorkDelayError(null as never)).toThrow(TypeError)
  })
})

describe('a RetryAfterError', () => {
  it('takes a duration or a Date', () => {
    expect(new RetryAfterError(5000)).toMatchObject({ afterMs: 5000, notBeforeAt: undefined })
    expect(new RetryAfterError(-5)).toMatchObject({ afterMs: 0 })
    expect(new RetryAfterError(new Date(9000), 'later', { cause: boom })).toMatchObject({
      afterMs: undefined,
      notBeforeAt: 9000,
      message: 'later',
      cause: boom,
    })
  })

  it.each([Number.NaN, Infinity, '5', undefined, new Date(Number.NaN)])('refuses %s', (after) => {
    expect(() => new RetryAfterError(after as number)).toThrow(RangeError)
  })
})
