import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { type ClassifyRule, classify } from '../../src/core/failure/classify.js'
import { RetryAbort, WorkDelayError } from '../../src/core/failure/control-errors.js'
import { FAILURE_CLASSES, type Verdict } from '../../src/core/failure/failure.js'
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
import { MAX_RETRY_AFTER_MS } from '../../src/core/failure/http-failure.js'
import { MAX_DELAY_MS } from '../../src/core/retry/backoff.js'
import {
  allThrowing,
  cyclic,
  endless,
  revoked,
  selfContaining,
  throwingGetters,
  thrown,
  unprintable,
} from './hostile.js'

const now = Date.UTC(2026, 0, 1)
const boom = new Error('boom')
const withCode = (code: string) => Object.assign(new Error('x'), { code })
const withStatus = (status: unknown, more: object = {}) => Object.assign(new Error('x'), { status, ...more })
const judged = (error: unknown) => classify(error, { now })

describe('an error that says what it is', () => {
  it.each<[string, unknown, Partial<Verdict>]>([
    ['PoisonError', new PoisonError(), { class: 'poison', rule: 'explicit' }],
    ['NonRetryableError', new NonRetryableError(), { class: 'poison', rule: 'explicit' }],
    ['InvalidForStateError', new InvalidForStateError(), { class: 'invalidForState', rule: 'explicit' }],
    ['GuardRejection', new GuardRejection('e', 's'), { class: 'invalidForState', rule: 'explicit' }],
    ['RetryableError', new RetryableError(), { class: 'retryable', rule: 'explicit' }],
    ['RetryAfterError', new RetryAfterError(7000), { class: 'retryable', rule: 'explicit', floorMs: 7000 }],
    [
      'RetryAfterError until',
      new RetryAfterError(new Date(now + 900)),
      { class: 'retryable', rule: 'explicit', floorMs: 900 },
    ],
    [
      'RetryAfterError past',
      new RetryAfterError(new Date(now - 900)),
      { class: 'retryable', rule: 'explicit', floorMs: 0 },
    ],
    [
      'RetryAfterError absurd',
      new RetryAfterError(1e300),
      { class: 'retryable', rule: 'explicit', floorMs: MAX_DELAY_MS },
    ],
    [
      'one from another queue',
      { name: 'RetryAfterError', retryAfter: '30' },
      { class: 'retryable', rule: 'explicit', floorMs: 30_000 },
    ],
    ['one from another queue', { name: 'UnrecoverableError' }, { class: 'poison', rule: 'explicit' }],
    ['DecodeError', new DecodeError('', 's', boom), { class: 'poison', rule: 'decode' }],
    ['SchemaError', new SchemaError('s', boom), { class: 'poison', rule: 'schema' }],
    ['RetryAbort', new RetryAbort(), { class: 'poison', rule: 'retry-abort' }],
    ['RetryAbort of a plain error', new RetryAbort(boom), { class: 'poison', rule: 'retry-abort' }],
    ['RetryAbort of a retryable', new RetryAbort(withStatus(503)), { class: 'poison', rule: 'retry-abort' }],
    [
      'RetryAbort of a rejection',
      new RetryAbort(new GuardRejection('e', 's')),
      { class: 'invalidForState', rule: 'retry-abort' },
    ],
    ['RetryAbort of a conflict', new RetryAbort(withStatus(409)), { class: 'invalidForState', rule: 'retry-abort' }],
    [
      'RetryAbort of itself',
      Object.assign(new RetryAbort(), { cause: undefined }),
      { class: 'poison', rule: 'retry-abort' },
    ],
    [
      'WorkDelayError',
      new WorkDelayError({ delay: 50 }),
      { class: 'unclassified', rule: 'deferred', deferTo: now + 50 },
    ],
    [
      'WorkDelayError at',
      new WorkDelayError({ runAt: now + 9, delay: 50 }),
      { class: 'unclassified', rule: 'deferred', deferTo: now + 9 },
    ],
    [
      'WorkDelayError past',
      new WorkDelayError({ runAt: 5 }),
      { class: 'unclassified', rule: 'deferred', deferTo: now },
    ],
    ['WorkDelayError bare', new WorkDelayError({}), { class: 'unclassified', rule: 'deferred', deferTo: now }],
    [
      'a foreign one',
      { name: 'WorkDelayError', when: { delay: 5 } },
      { class: 'unclassified', rule: 'deferred', deferTo: now + 5 },
    ],
  ])('%s', (_, error, verdict) => {
    expect(judged(error)).toEqual(verdict)
    expect(judged(new Error('wrapped', { cause: error }))).toEqual(verdict)
  })

  it('wins over what the rules would say of the errors around it', () => {
    expect(judged(withStatus(400, { cause: new RetryableError('they mean busy') })).class).toBe('retryable')
    expect(judged(new RetryableError('x', { cause: new PoisonError() })).class).toBe('retryable')
    expect(judged(withCode('ECONNRESET')).class).toBe('retryable')
    expect(judged(Object.assign(withCode('ECONNRESET'), { cause: new PoisonError() })).class).toBe('poison')
  })

  it('a deferral to no readable time costs an attempt, so that it cannot loop forever', () => {
    for (const when of [undefined, null, 'soon', { delay: Number.NaN }, { runAt: Infinity }, { delay: {} }]) {
      expect(judged({ name: 'WorkDelayError', when })).toEqual({ class: 'retryable', rule: 'explicit' })
    }
  })

  it('a schema registry that is down is not a bad payload', () => {
    expect(judged(new SchemaError('orders', withCode('ECONNREFUSED')))).toEqual({ class: 'retryable', rule: 'network' })
    expect(judged(new DecodeError('', 'orders', withStatus(503)))).toEqual({ class: 'retryable', rule: 'http-503' })
  })
})

describe('an error of the network', () => {
  it.each([
    ['ECONNRESET', 'network'],
    ['ECONNREFUSED', 'network'],
    ['ETIMEDOUT', 'network'],
    ['EPIPE', 'network'],
    ['EHOSTUNREACH', 'network'],
    ['ENETUNREACH', 'network'],
    ['UND_ERR_SOCKET', 'network'],
    ['UND_ERR_CONNECT_TIMEOUT', 'network'],
    ['ENOTFOUND', 'dns'],
    ['EAI_AGAIN', 'dns'],
    ['ABORT_ERR', 'abort'],
    ['ERR_CANCELED', 'abort'],
  ])('%s is retryable by the rule %s', (code, rule) => {
    expect(judged(withCode(code))).toEqual({ class: 'retryable', rule })
    expect(judged(new TypeError('fetch failed', { cause: withCode(code) }))).toEqual({ class: 'retryable', rule })
  })

  it('timeouts and aborts are known by their names', () => {
    expect(judged(AbortSignal.abort().reason)).toEqual({ class: 'retryable', rule: 'abort' })
    expect(judged(new DOMException('x', 'TimeoutError'))).toEqual({ class: 'retryable', rule: 'timeout' })
    expect(judged({ name: 'HeadersTimeoutError' })).toEqual({ class: 'retryable', rule: 'timeout' })
  })

  it('other codes say nothing', () => {
    expect(judged(withCode('ENOENT'))).toEqual({ class: 'retryable', rule: 'default' })
    expect(judged({ code: 42 })).toEqual({ class: 'retryable', rule: 'default' })
  })
})

describe('an HTTP status', () => {
  const table: Record<string, readonly number[]> = {
    poison: [400, 405, 406, 410, 411, 413, 414, 415, 422, 431],
    invalidForState: [409, 412],
    retryable: [
      401, 402, 403, 404, 407, 408, 416, 417, 418, 421, 423, 424, 425, 426, 428, 429, 451, 500, 501, 502, 503, 504, 599,
    ],
  }
  it.each(Object.entries(table).flatMap(([failureClass, all]) => all.map((status) => [status, failureClass] as const)))(
    '%i is %s',
    (status, failureClass) => {
      expect(judged(withStatus(status))).toEqual({ class: failureClass, rule: `http-${status}` })
    },
  )

  it('is found where clients put it, through the causes', () => {
    const verdict = { class: 'poison', rule: 'http-422' }
    expect(judged({ statusCode: 422 })).toEqual(verdict)
    expect(judged({ response: { status: 422 } })).toEqual(verdict)
    expect(judged({ $metadata: { httpStatusCode: 422 } })).toEqual(verdict)
    expect(judged({ status: '422' })).toEqual(verdict)
    expect(judged(new Error('a', { cause: new Error('b', { cause: { status: 422 } }) }))).toEqual(verdict)
  })

  it.each([200, 301, 0, -1, 422.5, 600, 'error', null, Number.NaN, {}])('%o is none', (status) => {
    expect(judged(withStatus(status))).toEqual({ class: 'retryable', rule: 'default' })
  })

  it('a 400 by which AWS means "throttled" or "expired" is retryable', () => {
    const aws = { $metadata: { httpStatusCode: 400 } }
    expect(judged({ ...aws, name: 'ThrottlingException' })).toEqual({ class: 'retryable', rule: 'aws-retryable' })
    expect(judged({ ...aws, name: 'ValidationException' })).toEqual({ class: 'poison', rule: 'http-400' })
    expect(judged({ ...aws, name: 'X', $retryable: { throttling: true } }).class).toBe('retryable')
    expect(judged({ status: 400, name: 'ThrottlingException' }).class).toBe('poison')
  })
})

describe('Retry-After', () => {
  const floorOf = (retryAfter: unknown) => judged(withStatus(429, { headers: { 'retry-after': retryAfter } })).floorMs

  it.each<[unknown, number | undefined]>([
    ['5', 5000],
    [' 5 ', 5000],
    [5, 5000],
    ['0', 0],
    ['1.5', 1500],
    ['-5', 0],
    ['99999999999999', MAX_RETRY_AFTER_MS],
    [Infinity, MAX_RETRY_AFTER_MS],
    ['Thu, 01 Jan 2026 00:00:10 GMT', 10_000],
    ['Thursday, 01-Jan-26 00:00:10 GMT', 10_000],
    ['Thu Jan  1 00:00:10 2026', 10_000],
    ['2026-01-01T00:00:10Z', 10_000],
    ['Wed, 31 Dec 2025 23:59:00 GMT', 0],
    ['Thu, 01 Jan 9999 00:00:00 GMT', MAX_RETRY_AFTER_MS],
    [['7', '8'], 7000],
    ['soon', undefined],
    ['foo 5', undefined],
    ['', undefined],
    ['Thu, 99 Foo', undefined],
    [Number.NaN, undefined],
    [null, undefined],
    [{}, undefined],
    ['9'.repeat(100_000), MAX_RETRY_AFTER_MS],
  ])('%o is a floor of %o ms', (value, floorMs) => {
    expect(floorOf(value)).toBe(floorMs)
  })

  it('is UTC also in its oldest form, which names no zone, whatever the time zone of the machine', () => {
    vi.stubEnv('TZ', 'America/New_York')
    try {
      expect(new Date(now).getTimezoneOffset()).toBe(300)
      expect(floorOf('Thu Jan  1 00:00:10 2026')).toBe(10_000)
    } finally {
      vi.unstubAllEnvs()
    }
  })

  it('is found in Headers, a Map, and plain objects in any letter case, on the error or its response', () => {
    for (const headers of [
      new Headers({ 'Retry-After': '3' }),
      new Map([['retry-after', '3']]),
      new Map([['Retry-After', '3']]),
      { 'retry-after': '3' },
      { 'Retry-After': '3' },
      { 'RETRY-AFTER': '3' },
    ]) {
      expect(judged(withStatus(503, { headers }))).toEqual({ class: 'retryable', rule: 'http-503', floorMs: 3000 })
      expect(judged({ response: { status: 503, headers } }).floorMs).toBe(3000)
    }
  })

  it('is nothing on a failure that is not retried, or in headers that cannot be read', () => {
    expect(judged(withStatus(400, { headers: { 'retry-after': '3' } }))).toEqual({ class: 'poison', rule: 'http-400' })
    for (const headers of [revoked(), allThrowing(), 'x', 5, { get: () => revoked() }, { get: 5 }]) {
      expect(judged(withStatus(429, { headers }))).toEqual({ class: 'retryable', rule: 'http-429' })
    }
  })
})

describe('an AggregateError', () => {
  const all = (...errors: unknown[]) => judged(new AggregateError(errors))

  it('is retryable if any member is', () => {
    expect(all(new PoisonError(), boom)).toEqual({ class: 'retryable', rule: 'aggregate:default' })
    expect(all(new PoisonError(), withCode('EPIPE'))).toEqual({ class: 'retryable', rule: 'aggregate:network' })
    expect(all(withStatus(429, { headers: { 'retry-after': '4' } }), new PoisonError()).floorMs).toBe(4000)
  })

  it('is the worst of its members if none is', () => {
    expect(all(new PoisonError(), new PoisonError())).toEqual({ class: 'poison', rule: 'aggregate:explicit' })
    expect(all(new GuardRejection('e', 's'), withStatus(400))).toEqual({ class: 'poison', rule: 'aggregate:http-400' })
    expect(all(new GuardRejection('e', 's'))).toEqual({ class: 'invalidForState', rule: 'aggregate:explicit' })
  })

  it('waits as long as the longest asks, and defers only if all do', () => {
    expect(all(new WorkDelayError({ delay: 5 }), new WorkDelayError({ delay: 9 }))).toEqual({
      class: 'unclassified',
      rule: 'aggregate:deferred',
      deferTo: now + 9,
    })
    expect(all(new WorkDelayError({ delay: 5 }), boom)).toEqual({
      class: 'retryable',
      rule: 'aggregate:default',
      floorMs: 5,
    })
    expect(all(new WorkDelayError({ delay: 5 }), new PoisonError()).class).toBe('poison')
  })

  it('its own code and its cause count where the members say nothing', () => {
    expect(judged(Object.assign(new AggregateError([boom]), { code: 'ECONNREFUSED' })).rule).toBe('network')
    expect(judged(new AggregateError([boom], 'x', { cause: withStatus(422) })).rule).toBe('http-422')
    expect(all()).toEqual({ class: 'retryable', rule: 'default' })
  })

  it('is retryable when it is too large to inspect all of it', () => {
    const poisons = Array.from({ length: 10_000 }, () => new PoisonError())
    expect(all(...poisons).class).toBe('retryable')
    const nested = new AggregateError(poisons.slice(0, 60).map(() => new AggregateError(poisons.slice(0, 60))))
    expect(judged(nested).class).toBe('retryable')
  })

  it('the errors array of a validation library does not make one', () => {
    expect(judged({ name: 'ValidationError', errors: [new PoisonError()] })).toEqual({
      class: 'retryable',
      rule: 'default',
    })
  })
})

describe("the user's rules", () => {
  const by = (error: unknown, ...rules: ClassifyRule[]) => classify(error, { rules, now })

  it('are asked first, in order, and the first answer counts', () => {
    const last = vi.fn(() => 'poison' as const)
    const verdict = by(
      new PoisonError(),
      () => undefined,
      function outages() {
        return 'retryable'
      },
      last,
    )
    expect(verdict).toEqual({ class: 'retryable', rule: 'user:outages' })
    expect(last).not.toHaveBeenCalled()
    expect(by(boom, () => 'invalidForState')).toEqual({ class: 'invalidForState', rule: 'user' })
  })

  it('may answer with a whole verdict', () => {
    expect(by(boom, () => ({ class: 'retryable', rule: 'mine', floorMs: 12.2 }))).toEqual({
      class: 'retryable',
      rule: 'mine',
      floorMs: 13,
    })
    expect(by(boom, () => ({ class: 'poison' }))).toEqual({ class: 'poison', rule: 'user' })
    expect(by(boom, () => ({ deferTo: now + 5, rule: 'later' }))).toEqual({
      class: 'unclassified',
      rule: 'later',
      deferTo: now + 5,
    })
  })

  it('that throw or answer nonsense are skipped', () => {
    const nonsense = [
      undefined,
      null,
      5,
      'drop',
      'unclassified',
      'nonsense',
      {},
      { class: 'drop' },
      revoked(),
      { deferTo: Number.NaN },
    ]
    const rules = nonsense.map(
      (answer): ClassifyRule =>
        () =>
          answer as never,
    )
    const throwing: ClassifyRule = () => {
      throw boom
    }
    expect(by(new PoisonError(), throwing, 'no rule' as never, ...rules)).toEqual({ class: 'poison', rule: 'explicit' })
  })

  it('that are async are skipped, and their rejection ends nothing', async () => {
    const rejecting = (async () => {
      throw boom
    }) as unknown as ClassifyRule
    expect(by(new PoisonError(), rejecting)).toEqual({ class: 'poison', rule: 'explicit' })
    await new Promise((resolve) => setImmediate(resolve)) // An unhandled rejection would fail the run here.
  })
})

describe('anything else', () => {
  it('a plain Error is retryable by default', () => {
    expect(classify(boom)).toEqual({ class: 'retryable', rule: 'default' })
  })

  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a string', 'x'],
    ['a symbol', Symbol('x')],
    ['a bigint', 5n],
    ['a function', () => 1],
    ['a revoked proxy', revoked()],
    ['a proxy whose traps throw', allThrowing()],
    ['an error whose getters throw', throwingGetters()],
    ['an object without text', unprintable()],
    ['a cyclic cause', cyclic()],
    ['an endless cause', endless()],
    ['an aggregate of itself', selfContaining()],
    ['an object without a prototype', Object.create(null)],
  ])('%s is too', (_, error) => {
    expect(classify(error)).toEqual({ class: 'retryable', rule: 'default' })
  })

  it('a deep chain of causes is followed only so far', () => {
    let deep: unknown = new PoisonError()
    for (let i = 0; i < 100_000; i += 1) deep = new Error('x', { cause: deep })
    expect(classify(deep)).toEqual({ class: 'retryable', rule: 'default' })
  })

  it('a chain of aborts comes to an end', () => {
    let deep: unknown = boom
    for (let i = 0; i < 10_000; i += 1) deep = new RetryAbort(deep)
    expect(classify(deep)).toEqual({ class: 'poison', rule: 'retry-abort' })
    const self = new RetryAbort()
    Object.assign(self, { cause: self })
    expect(classify(self)).toEqual({ class: 'poison', rule: 'retry-abort' })
  })

  it('a message of 50 MB is not searched', () => {
    let wasRead = false
    const error = Object.defineProperty(new Error(), 'message', {
      get() {
        wasRead = true
        return 'm'.repeat(50_000_000)
      },
    })
    expect(classify(error).rule).toBe('default')
    expect(wasRead).toBe(false)
  })

  it('the verdict is always whole, frozen, and never drop', () => {
    fc.assert(
      fc.property(thrown(), fc.integer({ min: 0, max: 4e12 }), (make, at) => {
        const verdict = classify(make(), { now: at })
        expect(FAILURE_CLASSES).toContain(verdict.class)
        expect(verdict.class).not.toBe('drop')
        expect(verdict.class === 'unclassified').toBe(verdict.deferTo !== undefined)
        expect(verdict.rule.length).toBeGreaterThan(0)
        expect(Object.isFrozen(verdict)).toBe(true)
        if (verdict.floorMs !== undefined) {
          expect(verdict.floorMs).toBeGreaterThanOrEqual(0)
          expect(verdict.floorMs).toBeLessThanOrEqual(MAX_DELAY_MS)
        }
        if (verdict.deferTo !== undefined) expect(verdict.deferTo).toBeGreaterThanOrEqual(at)
      }),
      { numRuns: 1000 },
    )
  })

  it('survives anything as the status, the headers and the answer of a rule', () => {
    fc.assert(
      fc.property(thrown(), thrown(), thrown(), (status, headers, answer) => {
        const error = Object.assign(new Error('x'), { status: status(), headers: headers(), response: headers() })
        const verdict = classify(error, { rules: [() => answer() as never], now })
        expect(['retryable', 'poison', 'invalidForState', 'unclassified']).toContain(verdict.class)
      }),
      { numRuns: 1000 },
    )
  })
})
