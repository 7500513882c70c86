import { AggregationTemporality, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { memoryStore } from '../../../src/backends/memory/store.js'
import { DecodeError, PoisonError, SchemaError } from '../../../src/core/failure/failure-errors.js'
import { ack, nak, nakAfter, type Result, skip, term } from '../../../src/core/stream/result.js'
import { jsonCodec } from '../../../src/source/codecs/codec-registry.js'
import { DeliveryLimitError } from '../../../src/source/errors.js'
import { Hopper } from '../../../src/source/hopper/hopper.js'
import type { HopperOptions } from '../../../src/source/hopper/hopper-options.js'
import { MemInlet, type MemInletOptions } from '../../../src/source/inlets/memory/mem-inlet.js'
import type { MemMessageSpec } from '../../../src/source/inlets/memory/mem-message.js'
import { AttemptHeader, attempt } from '../../../src/source/message/context.js'
import { decoded } from '../../../src/source/message/decoded.js'
import { type DeadLetterStore, dlq } from '../../../src/source/middleware/dead-letter.js'
import type { Handler } from '../../../src/source/middleware/handler.js'
import {
  DuplicateInFlightError,
  type IdempotencyStore,
  idempotency,
} from '../../../src/source/middleware/idempotency.js'
import { idempotencyStore } from '../../../src/source/middleware/idempotency-store.js'
import { MemDeadLetter } from '../../../src/source/middleware/mem-dead-letter.js'
import { retry } from '../../../src/source/middleware/retry.js'
import { schema } from '../../../src/source/middleware/schema.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { Harness } from '../../../src/testing/harness.js'
import { text } from '../message-of.js'

/** A harness whose nak'd messages come back until they are done with. */
function harnessOf(hopper: HopperOptions, messages: readonly MemMessageSpec[], inlet: MemInletOptions = {}) {
  return new Harness({ hopper, messages, inlet: { drainRedeliveries: true, ...inlet } })
}

const NO_JITTER = { baseMs: 100, maxMs: 1_000, factor: 2, jitter: false } as const
const withId = (id: string, more: MemMessageSpec = {}): MemMessageSpec => ({ headers: { 'message-id': id }, ...more })

describe('retry and dlq in a hopper', () => {
  // S9 W1
  it('the attempts are counted from delivery to delivery, and the last one is dead-lettered', async () => {
    const letters = new MemDeadLetter()
    const failure = new Error('upstream timeout')
    const harness = harnessOf(
      { name: 'orders', middleware: [dlq(letters), retry({ maxAttempts: 3, backoff: NO_JITTER })] },
      [{ key: 'k', value: 'v' }],
    )
    const startedAt = harness.clock.now()
    const seen: unknown[] = []
    const summary = await harness.run((ctx) => {
      seen.push(attempt(ctx))
      return nak(failure)
    })

    expect(seen).toEqual([
      [1, true],
      [2, true],
      [3, true],
    ])
    expect(harness.ledger.entries().map(({ result, atMs, attempt }) => [result, atMs - startedAt, attempt])).toEqual([
      [nakAfter(100, failure, { nextAttempt: 2 }), 0, 1],
      [nakAfter(200, failure, { nextAttempt: 3 }), 100, 2],
      [{ action: 'term', class: 'retryable', requeueMs: 0, error: failure, deadLettered: true }, 300, 3],
    ])
    expect(summary).toMatchObject({ received: 3, nak: 2, term: 1 })
    expect(letters.records()).toMatchObject([
      { attempts: 3, reason: 'retryable', lastError: 'upstream timeout', source: 'orders', cursor: '1' },
    ])
    expect(letters.records()[0]!.deadLetteredAtMs).toBe(startedAt + 300)
  })

  // W2
  it('an attempt that a republishing backend stamped on the message counts', async () => {
    const letters = new MemDeadLetter()
    const harness = harnessOf({ middleware: [dlq(letters), retry({ maxAttempts: 3 })] }, [
      { headers: { [AttemptHeader]: '3' } },
    ])
    await harness.run(() => nak())
    harness.assertCounts({ term: 1 })
    expect(letters.records()).toMatchObject([{ attempts: 3 }])
  })

  it('a handler that throws is classified before retry sees it', async () => {
    const letters = new MemDeadLetter()
    const harness = harnessOf({ middleware: [dlq(letters), retry({ maxAttempts: 2, backoff: NO_JITTER })] }, [
      { value: 'poison' },
      { value: 'flaky' },
    ])
    await harness.run((ctx, message) => {
      if (text(message.value) === 'poison') throw new PoisonError('never')
      if (attempt(ctx)[0] === 1) throw new Error('once')
      return ack()
    })
    harness.assertCounts({ acked: 1, nak: 1, term: 1 })
    expect(letters.records()).toMatchObject([{ lastError: 'never', attempts: 1 }])
  })

  // W37
  it('what is delivered too often is dead-lettered as poison, without running again', async () => {
    const letters = new MemDeadLetter()
    const harness = harnessOf({ maxDeliveries: 4, middleware: [dlq(letters)] }, [{ value: 'x' }])
    let runs = 0
    await harness.run(() => {
      runs += 1
      return nak()
    })
    expect(runs).toBe(4)
    expect(letters.records()).toMatchObject([{ attempts: 5, reason: 'poison', errorName: 'DeliveryLimitError' }])
    expect(harness.ledger.entries().at(-1)!.result.error).toBeInstanceOf(DeliveryLimitError)
  })

  // S23 W14
  it('a store that is down for a while loses nothing: the message comes again until it is dead-lettered', async () => {
    const letters = new MemDeadLetter()
    let calls = 0
    const flaky: DeadLetterStore = {
      async deadLetter(ctx, record) {
        calls += 1
        if (calls < 4) throw new Error('store down')
        await letters.deadLetter(ctx, record)
      },
    }
    const logger = { warn: vi.fn(), error: vi.fn() }
    const harness = harnessOf(
      { name: 'orders', logger, middleware: [dlq(flaky, { random: () => 0.5 }), retry({ maxAttempts: 1 })] },
      [{ value: 'x' }],
    )
    let runs = 0
    await harness.run(() => {
      runs += 1
      return nak(new Error('boom'))
    })
    // It is given up after its first run: only its dead letter is tried again.
    expect(runs).toBe(1)
    harness.assertCounts({ nak: 3, term: 1 })
    expect(harness.ledger.entries().map(({ result }) => result.requeueMs)).toEqual([500, 1_000, 2_000, 0])
    expect(letters.records()).toMatchObject([{ attempts: 1, lastError: 'boom' }])
    expect(logger.error).toHaveBeenCalledTimes(3)
    expect(logger.error.mock.calls[0]).toEqual([
      'A dead letter could not be stored; its message is delivered again',
      expect.objectContaining({ name: 'orders', subject: 'memsource', cursor: '1', delayMs: 500 }),
    ])
  })

  it('a schedule that answers with nonsense is reported to the hopper’s logger', async () => {
    const logger = { warn: vi.fn(), error: vi.fn() }
    const harness = harnessOf({ logger, middleware: [retry({ maxAttempts: 2, backoff: () => Number.NaN })] }, [{}])
    await harness.run((ctx) => (attempt(ctx)[0] === 1 ? nak() : ack()))
    expect(harness.ledger.entries()[0]!.result.requeueMs).toBe(30_000)
    expect(logger.warn).toHaveBeenCalledWith(expect.stringContaining('retry.backoff must answer a number'), {
      name: 'hopper',
    })
  })

  // S26 W13
  it('an order that would lose messages is refused when the hopper is made', () => {
    const letters = new MemDeadLetter()
    expect(() => new Hopper({ middleware: [retry(), dlq(letters)] })).toThrow(/dlq before retry/)
    expect(() => new Hopper({ middleware: [retry(), dlq(letters)], allowAnyOrder: true })).not.toThrow()
    expect(() => new Hopper({ middleware: [dlq(letters), retry({ maxAttempts: 21 })] })).toThrow('retry.maxAttempts')
    expect(() => new Hopper({ middleware: [dlq(letters), retry({ maxAttempts: Infinity })] })).toThrow('maxDeliveries')
  })

  it('strict ordering retries in place, and dead-letters at the end', async () => {
    const letters = new MemDeadLetter()
    const harness = harnessOf(
      { ordering: 'strict', middleware: [dlq(letters), retry({ maxAttempts: 3, backoff: NO_JITTER })] },
      [
        { key: 'k', value: '1' },
        { key: 'k', value: '2' },
      ],
    )
    const seen: string[] = []
    await harness.run((ctx, message) => {
      seen.push(`${text(message.value)} ${attempt(ctx)[0]}`)
      return text(message.value) === '1' ? nak(new Error('down')) : ack()
    })
    expect(seen).toEqual(['1 1', '1 2', '1 3', '2 1'])
    harness.assertCounts({ acked: 1, term: 1 })
    expect(letters.records()).toMatchObject([{ attempts: 3, reason: 'retryable' }])
  })
})

describe('a payload that cannot be decoded', () => {
  // S35
  it('is terminated without running', async () => {
    const harness = harnessOf({ codec: jsonCodec() }, [{ value: '{bad json' }])
    const handler = vi.fn(() => ack())
    await harness.run(handler)
    expect(handler).not.toHaveBeenCalled()
    harness.assertCounts({ term: 1 })
    expect(harness.ledger.entries()[0]!.result.error).toBeInstanceOf(DecodeError)
  })

  // S35 W6
  it('goes through the middleware, so that it is dead-lettered', async () => {
    const letters = new MemDeadLetter()
    const store = idempotencyStore(memoryStore())
    const harness = harnessOf(
      {
        codec: jsonCodec(),
        middleware: [dlq(letters), retry(), idempotency({ store }), schema(z.object({ id: z.string() }))],
      },
      [{ value: '{bad json' }],
    )
    await harness.run(() => ack())
    harness.assertCounts({ term: 1 })
    expect(letters.records()).toMatchObject([
      { reason: 'poison', errorName: 'DecodeError', value: new TextEncoder().encode('{bad json') },
    ])
    expect(harness.ledger.entries()[0]!.result).toMatchObject({ deadLettered: true, error: expect.any(DecodeError) })
  })

  it('comes again when only its codec’s registry was down', async () => {
    let asked = 0
    const codec = {
      async decode(data: Uint8Array) {
        asked += 1
        if (asked === 1) throw Object.assign(new Error('registry'), { code: 'ECONNREFUSED' })
        return text(data)
      },
    }
    const harness = harnessOf({ codec, middleware: [retry()] }, [{ value: 'x' }])
    await harness.run((_ctx, message) => (decoded(message).ok ? ack() : term()))
    harness.assertCounts({ nak: 1, acked: 1 })
  })
})

describe('schema in a hopper', () => {
  const Order = z.object({ id: z.string(), qty: z.number().default(1) })

  // S32
  it('dead-letters what is invalid, and hands the rest to the handler as the schema made it', async () => {
    const letters = new MemDeadLetter()
    const harness = harnessOf({ codec: jsonCodec(), middleware: [dlq(letters), retry(), schema(Order)] }, [
      { value: '{"id":"A-1"}' },
      { value: '{"id":7}' },
    ])
    const seen: unknown[] = []
    await harness.run((_ctx, message) => {
      seen.push(decoded(message))
      return ack()
    })
    expect(seen).toEqual([{ ok: true, value: { id: 'A-1', qty: 1 } }])
    harness.assertCounts({ acked: 1, term: 1 })
    expect(letters.records()).toMatchObject([{ reason: 'poison', errorName: 'SchemaError' }])
    expect(harness.ledger.entries()[1]!.result.error).toBeInstanceOf(SchemaError)
  })

  it('needs a codec when it reads payloads: without one the hopper cannot be made', () => {
    expect(() => new Hopper({ middleware: [schema(Order)] })).toThrow(/hopper\.codec.*"schema" reads decoded/)
    expect(() => new Hopper({ middleware: [schema(Order)], codec: jsonCodec() })).not.toThrow()
    expect(() => new Hopper({ middleware: [schema(() => undefined)] })).not.toThrow()
  })
})

describe('idempotency in a hopper', () => {
  // S29 W3
  it('a failure is not remembered: the redelivery runs, and only then is a duplicate dropped', async () => {
    const clock = new FakeClock()
    const store = idempotencyStore(memoryStore({ clock }))
    const harness = new Harness({
      clock,
      hopper: { middleware: [retry({ backoff: NO_JITTER }), idempotency({ store })] },
      inlet: { drainRedeliveries: true },
      messages: [withId('m1')],
    })
    let runs = 0
    const handler: Handler = (ctx) => {
      runs += 1
      return attempt(ctx)[0] === 1 ? nak(new Error('down')) : ack()
    }
    await harness.run(handler)
    harness.inlet.queue(withId('m1'))
    await harness.run(handler)
    expect(runs).toBe(2)
    harness.assertCounts({ nak: 1, acked: 1, dropped: 1 })
  })

  // S31
  it('a hundred copies at the same time run once, and the other ninety-nine are dropped in the end', async () => {
    const clock = new FakeClock()
    const store = idempotencyStore(memoryStore({ clock }))
    const harness = new Harness({
      clock,
      hopper: { concurrency: 100, maxInFlight: 100, middleware: [retry({ maxAttempts: 1 }), idempotency({ store })] },
      inlet: { drainRedeliveries: true },
      messages: Array.from({ length: 100 }, (_, i) => withId('m1', { key: String(i) })),
    })
    let runs = 0
    await harness.run(async () => {
      runs += 1
      await clock.sleep(2_500)
      return ack()
    })
    expect(runs).toBe(1)
    // Three rounds of a second each, while the first was running: none of them counts as a failure.
    harness.assertCounts({ acked: 1, dropped: 99, nak: 3 * 99 })
    const naks = harness.ledger.entries().filter(({ result }) => result.action === 'nak')
    expect(naks.every(({ result }) => result.error instanceof DuplicateInFlightError)).toBe(true)
  })

  it('a message that was given up can be replayed, with the same store and the same key', async () => {
    const clock = new FakeClock()
    const letters = new MemDeadLetter()
    const store = idempotencyStore(memoryStore({ clock }))
    const middleware = [dlq(letters), retry({ maxAttempts: 1 }), idempotency({ store })]
    const harness = new Harness({ clock, hopper: { middleware }, messages: [{ value: 'x' }] })
    await harness.run(() => nak(new Error('down')))
    expect(letters.size).toBe(1)
    let runs = 0
    const handler: Handler = () => {
      runs += 1
      return ack()
    }
    await new Hopper({ clock, middleware }).receive(letters, { topics: [] }, handler)
    expect([runs, letters.size]).toEqual([1, 0])
  })

  it('is renewed on the hopper’s clock while a handler runs', async () => {
    const clock = new FakeClock()
    const renewedAt: number[] = []
    const startedAt = clock.now()
    const keys = idempotencyStore(memoryStore({ clock }))
    const store: IdempotencyStore = {
      ...keys,
      renew: async (...args) => {
        renewedAt.push(clock.now() - startedAt)
        return keys.renew!(...args)
      },
    }
    const harness = new Harness({
      clock,
      hopper: { middleware: [idempotency({ store, leaseMs: 30_000 })] },
      messages: [withId('m1')],
    })
    await harness.run(async () => {
      await clock.sleep(25_000)
      return ack()
    })
    expect(renewedAt).toEqual([10_000, 20_000])
    harness.assertCounts({ acked: 1 })
  })

  it('a store that fails is logged, and counted in source.idempotency_errors', async () => {
    const reader = new Collector()
    const meter = new MeterProvider({ readers: [reader] }).getMeter('test')
    const logger = { warn: vi.fn(), error: vi.fn() }
    const store: IdempotencyStore = {
      begin: async (key) => {
        if (key === 'no-begin') throw new Error('begin down')
        return { state: 'acquired', token: 't' }
      },
      commit: () => Promise.reject(new Error('commit down')),
      release: () => Promise.reject(new Error('release down')),
    }
    const harness = harnessOf(
      { name: 'orders', meter, logger, middleware: [idempotency({ store })] },
      ['no-begin', 'no-commit', 'no-release'].map((id) => withId(id)),
    )
    await harness.run((_ctx, message) => (message.headers.get('message-id') === 'no-release' ? term() : ack()))
    harness.assertCounts({ acked: 2, term: 1 })
    expect(await reader.sum('source.idempotency_errors')).toEqual([{ value: 3, name: 'orders' }])
    expect(logger.error.mock.calls.map(([message, facts]) => [message, facts.key, facts.error.message])).toEqual([
      [expect.stringContaining('failed to begin'), 'no-begin', 'begin down'],
      [expect.stringContaining('failed to commit'), 'no-commit', 'commit down'],
      [expect.stringContaining('failed to release'), 'no-release', 'release down'],
    ])
  })
})

describe('the middleware in batch mode', () => {
  // W7
  it('gives every member the result it would have had by itself', async () => {
    const letters = new MemDeadLetter()
    const clock = new FakeClock()
    const seen = idempotencyStore(memoryStore({ clock }))
    const doneBefore = await seen.begin('done', 1_000)
    if (doneBefore.state === 'acquired') await seen.commit('done', doneBefore.token, 60_000)
    const values: Record<string, string> = {
      good: '{"id":"good"}',
      undecodable: '{bad',
      invalid: '{"id":7}',
      done: '{"id":"done"}',
      flaky: '{"id":"flaky"}',
      hopeless: '{"id":"hopeless"}',
      dropped: '{"id":"dropped"}',
    }
    const harness = new Harness({
      clock,
      hopper: {
        name: 'batches',
        codec: jsonCodec(),
        batch: { size: 10, maxWaitMs: 50 },
        middleware: [
          dlq(letters),
          retry({ maxAttempts: 2, backoff: NO_JITTER }),
          idempotency({ store: seen }),
          schema(z.object({ id: z.string(), qty: z.number().default(1) })),
        ],
      },
      inlet: { drainRedeliveries: true },
      messages: Object.entries(values).map(([id, value]) => withId(id, { value, key: 'k' })),
    })
    const calls: unknown[][] = []
    const tries = new Map<string, number>()
    await harness.runBatch((_ctx, messages) => {
      calls.push(messages.map((m) => (decoded<{ id: string }>(m) as { value: { id: string } }).value))
      return messages.map((m): Result => {
        const id = m.headers.get('message-id')!
        tries.set(id, (tries.get(id) ?? 0) + 1)
        if (id === 'hopeless') return nak(new Error('always'))
        if (id === 'flaky' && tries.get(id) === 1) return nak(new Error('once'))
        return id === 'dropped' ? skip() : ack()
      })
    })

    expect(calls).toEqual([
      ['good', 'flaky', 'hopeless', 'dropped'].map((id) => ({ id, qty: 1 })),
      ['flaky', 'hopeless'].map((id) => ({ id, qty: 1 })),
    ])
    const idOf = Object.keys(values)
    const outcomes: Record<string, string[]> = {}
    for (const { id, result } of harness.ledger.entries()) {
      const name = idOf[Number(id) - 1]!
      outcomes[name] = [...(outcomes[name] ?? []), `${result.action} ${result.class} ${result.requeueMs}`]
    }
    expect(outcomes).toEqual({
      good: ['ack unclassified 0'],
      undecodable: ['term poison 0'],
      invalid: ['term poison 0'],
      done: ['ack drop 0'],
      flaky: ['nak retryable 100', 'ack unclassified 0'],
      hopeless: ['nak retryable 100', 'term retryable 0'],
      dropped: ['ack drop 0'],
    })
    expect(letters.records().map((r) => [r.reason, r.errorName, r.attempts, r.source])).toEqual([
      ['poison', 'DecodeError', 1, 'batches'],
      ['poison', 'SchemaError', 1, 'batches'],
      ['retryable', 'Error', 2, 'batches'],
    ])
    // What succeeded is remembered, what failed is not.
    expect((await seen.begin('good', 1)).state).toBe('done')
    expect((await seen.begin('flaky', 1)).state).toBe('done')
    expect((await seen.begin('hopeless', 1)).state).toBe('acquired')
  })

  // W7
  it('two copies of one message in a batch: one runs, the other waits', async () => {
    const clock = new FakeClock()
    const store = idempotencyStore(memoryStore({ clock }))
    const harness = new Harness({
      clock,
      hopper: { batch: { size: 2, maxWaitMs: 10 }, middleware: [idempotency({ store })] },
      inlet: { drainRedeliveries: true },
      messages: [withId('m1', { key: 'k' }), withId('m1', { key: 'k' })],
    })
    const sizes: number[] = []
    await harness.runBatch((_ctx, messages) => {
      sizes.push(messages.length)
      return messages.map(() => ack())
    })
    expect(sizes).toEqual([1])
    harness.assertCounts({ acked: 1, nak: 1, dropped: 1 })
  })

  // W7
  it('a handler that throws fails every member, and each is retried or dead-lettered by its own attempt', async () => {
    const letters = new MemDeadLetter()
    const clock = new FakeClock()
    const store = idempotencyStore(memoryStore({ clock }))
    const harness = new Harness({
      clock,
      hopper: {
        batch: { size: 2, maxWaitMs: 10 },
        middleware: [dlq(letters), retry({ maxAttempts: 2, backoff: NO_JITTER }), idempotency({ store })],
      },
      inlet: { drainRedeliveries: true },
      messages: [withId('old', { key: 'k', headers: { [AttemptHeader]: '2' } }), withId('new', { key: 'k' })],
    })
    let calls = 0
    await harness.runBatch((_ctx, messages) => {
      calls += 1
      if (calls === 1) throw new Error('all of it')
      return messages.map(() => ack())
    })
    harness.assertCounts({ term: 1, nak: 1, acked: 1 })
    expect(letters.records()).toMatchObject([{ attempts: 2, lastError: 'all of it' }])
  })

  // W7
  it('a middleware that knows no batches is refused when the hopper is made, not skipped', async () => {
    const plain = (next: Handler): Handler => next
    const make = () => new Hopper({ batch: { size: 2, maxWaitMs: 10 }, middleware: [plain] })
    expect(make).toThrow(/hopper\.middleware.*mapBatch/)
    const sub = await new MemInlet().subscribe()
    const run = async () =>
      new Hopper({ middleware: [plain] }).runBatch(sub, (_ctx, messages) => messages.map(() => ack()))
    await expect(run()).rejects.toMatchObject({ code: 'BAD_OPTION', option: 'hopper.middleware' })
  })
})

describe('whatever a handler does', () => {
  const outcome = fc.constantFrom('ack', 'skip', 'nak', 'term', 'throw', 'poison')
  const script = fc.array(outcome, { minLength: 1, maxLength: 4 })

  it('every message ends acknowledged or dead-lettered, exactly one of the two, and succeeds at most once', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(script, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 3 }),
        fc.boolean(),
        async (scripts, concurrency, isStrict) => {
          const clock = new FakeClock({ quietTurns: 2 })
          const letters = new MemDeadLetter()
          const store = idempotencyStore(memoryStore({ clock }))
          const harness = new Harness({
            clock,
            hopper: {
              concurrency,
              ordering: isStrict ? 'strict' : 'relaxed',
              middleware: [dlq(letters), retry({ maxAttempts: 3 }), idempotency({ store })],
            },
            inlet: { drainRedeliveries: true },
            // Every message comes twice.
            messages: [...scripts, ...scripts].map((_, i) =>
              withId(String(i % scripts.length), { key: String(i % 3), value: String(i % scripts.length) }),
            ),
          })
          const tries = scripts.map(() => 0)
          const successes = scripts.map(() => 0)
          await harness.run((_ctx, message) => {
            const i = Number(text(message.value))
            const steps = scripts[i]!
            const step = steps[Math.min(tries[i]!, steps.length - 1)]!
            tries[i]! += 1
            if (step === 'throw') throw new Error('thrown')
            if (step === 'poison') throw new PoisonError('never')
            if (step === 'nak') return nak()
            if (step === 'term') return term()
            successes[i]! += 1
            return step === 'ack' ? ack() : skip()
          })
          const counts = harness.ledger.counts()
          expect(counts.acked + counts.dropped + counts.term).toBe(2 * scripts.length)
          expect(letters.size).toBe(counts.term)
          expect(successes.every((n) => n <= 1)).toBe(true)
          expect(
            harness.ledger.entries().every(({ result: r }) => r.action !== 'term' || r.deadLettered === true),
          ).toBe(true)
        },
      ),
      { numRuns: 1_000 },
    )
  })
})

/** Collects what a meter counted, when asked. */
class Collector extends MetricReader {
  constructor() {
    super({ aggregationTemporalitySelector: () => AggregationTemporality.CUMULATIVE })
  }
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}

  async sum(name: string): Promise<unknown[]> {
    const { resourceMetrics } = await this.collect()
    return resourceMetrics.scopeMetrics
      .flatMap(({ metrics }) => metrics)
      .filter(({ descriptor }) => descriptor.name === name)
      .flatMap(({ dataPoints }) => dataPoints.map((p) => ({ value: p.value, name: p.attributes['source.name'] })))
  }
}
