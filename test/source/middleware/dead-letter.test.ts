import { describe, expect, it } from 'vitest'
import { PoisonError } from '../../../src/core/failure/failure-errors.js'
import {
  ack,
  inProgress,
  manual,
  nak,
  type Result,
  type ResultOf,
  reject,
  skip,
  term,
} from '../../../src/core/stream/result.js'
import { AttemptHeader, background, type Context, withAttempt } from '../../../src/source/message/context.js'
import { chain, MiddlewareOrderError } from '../../../src/source/middleware/chain.js'
import {
  type DeadLetterRecord,
  type DeadLetterStore,
  type DlqOptions,
  deadLetteredMessageKey,
  dlq,
} from '../../../src/source/middleware/dead-letter.js'
import type { Handler } from '../../../src/source/middleware/handler.js'
import { retry } from '../../../src/source/middleware/retry.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { bytes, messageOf, text } from '../message-of.js'

class Letters implements DeadLetterStore {
  readonly records: DeadLetterRecord[] = []
  readonly contexts: Context[] = []
  async deadLetter(ctx: Context, record: DeadLetterRecord): Promise<void> {
    this.contexts.push(ctx)
    this.records.push(record)
  }
}

const refusing: DeadLetterStore = { deadLetter: () => Promise.reject(new Error('the store failed')) }

async function through(
  store: DeadLetterStore,
  inner: Handler | Result,
  given: {
    readonly options?: DlqOptions
    readonly attempt?: number
    readonly message?: ReturnType<typeof messageOf>
  } = {},
): Promise<Result> {
  const handler: Handler = typeof inner === 'function' ? inner : () => inner
  const ctx = given.attempt === undefined ? background() : withAttempt(background(), given.attempt)
  return dlq(store, given.options)(handler)(ctx, given.message ?? messageOf())
}

const gaveUp: Result = Object.freeze({ action: 'term', class: 'retryable', requeueMs: 0, error: new Error('tired') })

describe('a message that is terminated under dlq', () => {
  // S20
  it('is dead-lettered whole, with its class, its attempts and its error', async () => {
    const letters = new Letters()
    const clock = new FakeClock()
    const message = messageOf({
      key: 'k1',
      value: 'payload',
      headers: [
        ['h', 'v'],
        ['H', 'again'],
      ],
      subject: 'orders',
      partitionKey: 'orders/3',
      cursor: '17',
    })
    const failure = new TypeError('boom')

    const result = await through(letters, term(failure), { attempt: 4, message, options: { clock } })

    expect(result).toEqual({ action: 'term', class: 'poison', requeueMs: 0, error: failure, deadLettered: true })
    expect(result.error).toBe(failure)
    expect(letters.records).toEqual([
      {
        key: bytes('k1'),
        value: bytes('payload'),
        headers: [
          { key: 'h', value: 'v' },
          { key: 'H', value: 'again' },
        ],
        subject: 'orders',
        partitionKey: 'orders/3',
        class: 'poison',
        reason: 'poison',
        attempts: 4,
        lastError: 'boom',
        errorName: 'TypeError',
        cursor: '17',
        deadLetteredAtMs: clock.now(),
        source: '',
      },
    ])
  })

  // S20
  it('is dead-lettered as a copy: what the adapter does with its buffers later changes nothing', async () => {
    const letters = new Letters()
    const plain = bytes('k1')
    // A Buffer is what most clients deliver, and its slice() is a view.
    const pooled = Buffer.from('payload')
    await through(letters, term('x'), { message: messageOf({ key: plain, value: pooled }) })
    plain.fill(0)
    pooled.fill(0)
    expect(text(letters.records[0]!.key)).toBe('k1')
    expect(text(letters.records[0]!.value)).toBe('payload')
    expect(letters.records[0]!.value).not.toBeInstanceOf(Buffer)
  })

  it('has a null key, no headers and no error text where there are none', async () => {
    const letters = new Letters()
    await through(letters, term())
    expect(letters.records[0]).toMatchObject({ key: null, headers: [], lastError: '', errorName: '' })
  })

  it('keeps the text of whatever was thrown', async () => {
    const letters = new Letters()
    await through(letters, term('just words'))
    await through(letters, term(new AggregateError([new Error('a')], 'many')))
    expect(letters.records.map((r) => [r.lastError, r.errorName])).toEqual([
      ['just words', 'string'],
      ['many', 'AggregateError'],
    ])
  })

  // S21
  it('is dead-lettered under invalid_for_state when it was rejected', async () => {
    const letters = new Letters()
    await through(letters, reject(new Error('delivered already')))
    expect(letters.records).toMatchObject([{ class: 'invalidForState', reason: 'invalid_for_state' }])
  })

  // S22
  it('is dead-lettered when it merely ran out of attempts, unless that is turned off', async () => {
    const letters = new Letters()
    expect(await through(letters, gaveUp)).toMatchObject({ action: 'term', class: 'retryable', deadLettered: true })
    expect(letters.records).toMatchObject([{ class: 'retryable', reason: 'retryable', lastError: 'tired' }])

    expect(await through(letters, gaveUp, { options: { deadLetterRetryable: false } })).toBe(gaveUp)
    expect(letters.records).toHaveLength(1)
    await through(letters, term(), { options: { deadLetterRetryable: false } })
    await through(letters, reject(), { options: { deadLetterRetryable: false } })
    expect(letters.records.map((r) => r.reason)).toEqual(['retryable', 'poison', 'invalid_for_state'])
  })

  it('takes its attempts from the context, else from its header, else they are 1', async () => {
    const letters = new Letters()
    const stamped = messageOf({ headers: { [AttemptHeader]: '6' } })
    const nonsense = messageOf({ headers: { [AttemptHeader]: 'six' } })
    await through(letters, term(), { attempt: 2, message: stamped })
    await through(letters, term(), { message: stamped })
    await through(letters, term(), { message: nonsense })
    await through(letters, term())
    expect(letters.records.map((r) => r.attempts)).toEqual([2, 6, 1, 1])
  })

  it('is not dead-lettered twice when an inner middleware has done it', async () => {
    const letters = new Letters()
    const earlier: Result = Object.freeze({ action: 'term', class: 'poison', requeueMs: 0, deadLettered: true })
    expect(await through(letters, earlier)).toBe(earlier)
    expect(letters.records).toEqual([])
  })

  it('lets the store see the message that the record was made from', async () => {
    const letters = new Letters()
    const message = messageOf()
    await through(letters, term(), { message })
    expect(letters.contexts[0]!.get(deadLetteredMessageKey)).toBe(message)
  })
})

describe('everything else under dlq', () => {
  // S21
  it('is not dead-lettered, and passes through as the same object', async () => {
    const letters = new Letters()
    for (const result of [ack(), nak(new Error('later')), skip(), inProgress(), manual()]) {
      expect(await through(letters, result, { attempt: 99 })).toBe(result)
    }
    expect(letters.records).toEqual([])
  })
})

describe('a handler that throws under dlq, without an engine', () => {
  it('is dead-lettered when the error is poison, and comes again when it is not', async () => {
    const letters = new Letters()
    const throwing = (error: unknown) => (): Result => {
      throw error
    }
    const poison = new PoisonError('never')
    expect(await through(letters, throwing(poison))).toMatchObject({
      action: 'term',
      error: poison,
      deadLettered: true,
    })
    const failure = new Error('reset')
    expect(await through(letters, throwing(failure))).toMatchObject({ action: 'nak', error: failure })
    expect(letters.records).toHaveLength(1)
  })
})

describe('a dead letter that cannot be written', () => {
  const at = (attempt: number, random: number, options: DlqOptions = {}) =>
    through(refusing, term(new Error('boom')), { attempt, options: { ...options, random: () => random } })

  // S23
  it('makes the message come again, with both errors', async () => {
    const boom = new Error('boom')
    const result = (await through(refusing, term(boom), { attempt: 1 })) as ResultOf<'nak'>
    expect(result).toMatchObject({ action: 'nak', class: 'retryable', noEscalate: true, nextAttempt: 2 })
    const { errors, message } = result.error as AggregateError
    expect(errors[0]).toBe(boom)
    expect(errors[1]).toEqual(new Error('the store failed'))
    expect(errors).toHaveLength(2)
    expect(message).toContain('the store failed')
    expect(result.requeueMs).toBeGreaterThanOrEqual(0)
    expect(result.requeueMs).toBeLessThan(1_000)
  })

  // S23
  it('waits longer each time, up to a minute, with full jitter', async () => {
    const almost = 1 - Number.EPSILON
    expect((await at(1, almost)).requeueMs).toBe(999)
    expect((await at(1, 0)).requeueMs).toBe(0)
    expect((await at(3, 0.5)).requeueMs).toBe(2_000)
    expect((await at(7, 0.5)).requeueMs).toBe(30_000)
    expect((await at(5_000, 0.5)).requeueMs).toBe(30_000)
    expect((await at(5_000, 0.5, { retryDelayMs: 0 })).requeueMs).toBe(0)
    expect((await at(4, 0.5, { retryDelayMs: 100, retryMaxMs: 500 })).requeueMs).toBe(250)
  })

  // S23
  it('is never escalated, not even by a retry that was put outside by hand', async () => {
    const handler = retry({ maxAttempts: 1 })(dlq(refusing)(() => term(new Error('boom'))))
    expect(await handler(withAttempt(background(), 9), messageOf())).toMatchObject({ action: 'nak', noEscalate: true })
  })

  it('counts as one when the store throws synchronously, and has only that error when there was none before', async () => {
    const throwing: DeadLetterStore = {
      deadLetter() {
        throw new Error('closed')
      },
    }
    const result = await through(throwing, term())
    expect(result.action).toBe('nak')
    expect((result.error as AggregateError).errors).toEqual([new Error('closed')])
  })
})

describe('dlq in a chain', () => {
  // S26
  it('must be outside retry', () => {
    const h: Handler = () => ack()
    expect(() => chain(h, retry(), dlq(new Letters()))).toThrow(MiddlewareOrderError)
    expect(() => chain(h, dlq(new Letters()), retry())).not.toThrow()
  })

  it('dead-letters what retry gives up', async () => {
    const letters = new Letters()
    const handler = chain(() => nak(new Error('down')), dlq(letters), retry({ maxAttempts: 2 }))
    expect(await handler(withAttempt(background(), 1), messageOf())).toMatchObject({ action: 'nak', nextAttempt: 2 })
    expect(await handler(withAttempt(background(), 2), messageOf())).toMatchObject({
      action: 'term',
      deadLettered: true,
    })
    expect(letters.records).toMatchObject([{ reason: 'retryable', attempts: 2, lastError: 'down' }])
  })
})

describe('an option of dlq that makes no sense', () => {
  it.each([[undefined], [null], [{}], ['letters']])('a store that is %j is a TypeError', (store) => {
    expect(() => dlq(store as never)).toThrow(TypeError)
    expect(() => dlq(store as never)).toThrow('dlq(store)')
  })

  it.each<[DlqOptions, string]>([
    [{ deadLetterRetryable: 1 as never }, 'dlq.deadLetterRetryable'],
    [{ clock: {} as never }, 'dlq.clock'],
    [{ random: 0.5 as never }, 'dlq.random'],
    [{ retryDelayMs: -1 }, 'dlq.retryDelayMs'],
    [{ retryMaxMs: Infinity }, 'dlq.retryMaxMs'],
    [{ retryForever: true } as never, '"retryForever" is not an option of dlq'],
  ])('%j is refused by name', (options, text) => {
    expect(() => dlq(new Letters(), options)).toThrow(text)
  })
})
