import { describe, expect, it, vi } from 'vitest'
import { memoryStore } from '../../../src/backends/memory/store.js'
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
import { background, withAttempt } from '../../../src/source/message/context.js'
import { deadLetterToken } from '../../../src/source/middleware/dead-letter.js'
import type { Handler } from '../../../src/source/middleware/handler.js'
import {
  DuplicateInFlightError,
  fromSeenStore,
  type IdempotencyOptions,
  type IdempotencyStore,
  idempotency,
} from '../../../src/source/middleware/idempotency.js'
import { defaultKey } from '../../../src/source/middleware/idempotency-key.js'
import { idempotencyStore } from '../../../src/source/middleware/idempotency-store.js'
import { MemDeadLetter } from '../../../src/source/middleware/mem-dead-letter.js'
import { retry } from '../../../src/source/middleware/retry.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { bytes, type MessageSpec, messageOf } from '../message-of.js'

function setUp(options: Partial<IdempotencyOptions> = {}) {
  const clock = new FakeClock()
  const store = options.store ?? idempotencyStore(memoryStore({ clock }))
  const middleware = idempotency({ clock, ...options, store })
  let runs = 0
  const deliver = async (inner: Handler | Result, spec: MessageSpec = {}): Promise<Result> => {
    const handler: Handler = typeof inner === 'function' ? inner : () => inner
    const counted: Handler = (ctx, message) => {
      runs += 1
      return handler(ctx, message)
    }
    return middleware(counted)(background(), messageOf(spec))
  }
  return { clock, store, deliver, ran: () => runs }
}

/** A store that answers as scripted, and records its calls. */
function scripted(begun: Awaited<ReturnType<IdempotencyStore['begin']>>) {
  const calls: string[] = []
  const store: IdempotencyStore = {
    begin: async (key, leaseMs) => {
      calls.push(`begin ${key} ${leaseMs}`)
      return begun
    },
    commit: async (key, token, ttlMs) => void calls.push(`commit ${key} ${token} ${ttlMs}`),
    release: async (key, token) => void calls.push(`release ${key} ${token}`),
  }
  return { store, calls }
}

const byKey = { headers: { 'message-id': 'k1' } }
const acquired = { state: 'acquired', token: 't1' } as const

describe('a message that is delivered again', () => {
  // S27
  it('runs once when it succeeded, and is dropped afterwards', async () => {
    const { deliver, ran } = setUp()
    expect(await deliver(ack(), byKey)).toEqual(ack())
    expect(await deliver(ack(), byKey)).toEqual(skip())
    expect(ran()).toBe(1)
  })

  // S27
  it('runs for each of two keys', async () => {
    const { deliver, ran } = setUp()
    await deliver(ack(), { headers: { 'message-id': 'a' } })
    await deliver(ack(), { headers: { 'message-id': 'b' } })
    expect(ran()).toBe(2)
  })

  // S29
  it('runs again when it failed, and is dropped only after it succeeded', async () => {
    const { deliver, ran } = setUp()
    expect((await deliver(nak(new Error('down')), byKey)).action).toBe('nak')
    expect(await deliver(ack(), byKey)).toEqual(ack())
    expect(ran()).toBe(2)
    expect(await deliver(ack(), byKey)).toEqual(skip())
    expect(ran()).toBe(2)
  })

  // S29
  it('runs again when it threw, and the throw is passed on', async () => {
    const { deliver, ran } = setUp()
    const failure = new Error('down')
    await expect(deliver(() => Promise.reject(failure), byKey)).rejects.toBe(failure)
    expect(await deliver(ack(), byKey)).toEqual(ack())
    expect(ran()).toBe(2)
  })

  // S31
  it('waits while the first delivery is running', async () => {
    const { deliver, ran } = setUp()
    let finish: (result: Result) => void = () => undefined
    const first = deliver(() => new Promise((resolve) => (finish = resolve)), byKey)
    const second = (await deliver(ack(), byKey)) as ResultOf<'nak'>
    expect(second).toMatchObject({ action: 'nak', class: 'retryable', requeueMs: 1_000, noEscalate: true })
    expect(second.error).toBeInstanceOf(DuplicateInFlightError)
    finish(ack())
    expect(await first).toEqual(ack())
    expect(ran()).toBe(1)
    expect(await deliver(ack(), byKey)).toEqual(skip())
  })

  // S31
  it('runs once when it is delivered a hundred times at the same time', async () => {
    const { deliver, ran } = setUp()
    const slow: Handler = async () => {
      await new Promise((resolve) => setImmediate(resolve))
      return ack()
    }
    const results = await Promise.all(Array.from({ length: 100 }, () => deliver(slow, byKey)))
    expect(ran()).toBe(1)
    expect(results.filter((r) => r.action === 'ack')).toHaveLength(1)
    expect(results.filter((r) => r.error instanceof DuplicateInFlightError)).toHaveLength(99)
  })

  it('is never exhausted by waiting: retry leaves a busy one alone', async () => {
    const { store } = scripted({ state: 'busy' })
    const handler = retry({ maxAttempts: 1 })(idempotency({ store })(() => ack()))
    expect(await handler(withAttempt(background(), 9), messageOf())).toMatchObject({ action: 'nak', requeueMs: 1_000 })
  })

  it('runs again once its memory has ended', async () => {
    const { deliver, ran, clock } = setUp({ ttlMs: 5_000 })
    await deliver(ack(), byKey)
    await clock.advance(4_999)
    expect(await deliver(ack(), byKey)).toEqual(skip())
    await clock.advance(1)
    expect(await deliver(ack(), byKey)).toEqual(ack())
    expect(ran()).toBe(2)
  })
})

describe('what becomes of a key', () => {
  const table: readonly [string, Result, Partial<IdempotencyOptions>, string][] = [
    ['ack', ack(), {}, 'commit k1 t1 86400000'],
    ['skip', skip(), {}, 'commit k1 t1 86400000'],
    ['manual', manual(), {}, 'commit k1 t1 86400000'],
    ['nak', nak(), {}, 'release k1 t1'],
    ['term', term(), {}, 'release k1 t1'],
    ['reject', reject(), {}, 'release k1 t1'],
    ['inProgress', inProgress(), {}, ''],
    ['term, onTerm commit', term(), { onTerm: 'commit' }, 'commit k1 t1 86400000'],
    ['nak, onTerm commit', nak(), { onTerm: 'commit' }, 'release k1 t1'],
    ['ack, ttlMs 5', ack(), { ttlMs: 5 }, 'commit k1 t1 5'],
  ]
  it.each(table)('acquired, then %s', async (_name, result, options, then) => {
    const { store, calls } = scripted(acquired)
    const { deliver } = setUp({ ...options, store })
    expect(await deliver(result, byKey)).toBe(result)
    expect(calls).toEqual(['begin k1 60000', then].filter((call) => call !== ''))
  })

  it('acquired, then a throw: released, whatever kind of error and whatever onTerm says', async () => {
    const { store, calls } = scripted(acquired)
    const { deliver } = setUp({ store, onTerm: 'commit' })
    const poison = new PoisonError('never')
    await expect(
      deliver(() => {
        throw poison
      }, byKey),
    ).rejects.toBe(poison)
    expect(calls).toEqual(['begin k1 60000', 'release k1 t1'])
  })

  it('done: the handler is not called, and nothing is written', async () => {
    const { store, calls } = scripted({ state: 'done' })
    const { deliver, ran } = setUp({ store })
    expect(await deliver(ack(), byKey)).toEqual(skip())
    expect([ran(), calls]).toEqual([0, ['begin k1 60000']])
  })

  it.each<[number | undefined, Partial<IdempotencyOptions>, number]>([
    [undefined, {}, 1_000],
    [undefined, { busyDelayMs: 250 }, 250],
    [7, { busyDelayMs: 250 }, 7],
    [0, {}, 0],
    [-1, {}, 1_000],
    [Number.NaN, {}, 1_000],
  ])('busy with retryAfterMs %s and %j: it comes again after %s', async (retryAfterMs, options, delayMs) => {
    const { store, calls } = scripted({ state: 'busy', ...(retryAfterMs === undefined ? {} : { retryAfterMs }) })
    const { deliver, ran } = setUp({ ...options, store })
    expect(await deliver(ack(), byKey)).toMatchObject({ action: 'nak', requeueMs: delayMs, noEscalate: true })
    expect([ran(), calls]).toEqual([0, ['begin k1 60000']])
  })

  it('is released at the end of an inProgress only by its lease', async () => {
    const { deliver, clock } = setUp({ leaseMs: 9_000 })
    expect(await deliver(inProgress(), byKey)).toBe(inProgress())
    expect(await deliver(ack(), byKey)).toMatchObject({ error: expect.any(DuplicateInFlightError) })
    await clock.advance(8_999)
    expect(await deliver(ack(), byKey)).toMatchObject({ action: 'nak' })
    await clock.advance(1)
    expect(await deliver(ack(), byKey)).toEqual(ack())
  })
})

describe('a store that fails', () => {
  const down = new Error('store down')
  const failing = (step: 'begin' | 'commit' | 'release', isSynchronous = false): IdempotencyStore => {
    const fail = () => {
      if (isSynchronous) throw down
      return Promise.reject(down)
    }
    return { ...scripted(acquired).store, [step]: fail }
  }

  // S28
  it('on begin: the message runs all the same', async () => {
    const onError = vi.fn()
    const { deliver, ran } = setUp({ store: failing('begin'), onError })
    expect(await deliver(ack(), byKey)).toEqual(ack())
    expect(ran()).toBe(1)
    expect(onError.mock.calls).toEqual([[down]])
  })

  it('on begin with onStoreError nak: it comes again later, and is never exhausted by that', async () => {
    const { deliver, ran } = setUp({ store: failing('begin'), onStoreError: 'nak', busyDelayMs: 50 })
    expect(await deliver(ack(), byKey)).toEqual({
      action: 'nak',
      class: 'retryable',
      requeueMs: 50,
      error: down,
      noEscalate: true,
    })
    expect(ran()).toBe(0)
  })

  it.each([true, false])('on commit: what was done is done (throws synchronously: %s)', async (isSynchronous) => {
    const onError = vi.fn()
    const { deliver } = setUp({ store: failing('commit', isSynchronous), onError })
    expect(await deliver(ack(), byKey)).toBe(ack())
    expect(onError).toHaveBeenCalledWith(down)
  })

  it('on release: the result counts, and the lease ends by itself', async () => {
    const onError = vi.fn()
    const { deliver } = setUp({ store: failing('release'), onError })
    const failed = nak(new Error('x'))
    expect(await deliver(failed, byKey)).toBe(failed)
    expect(onError).toHaveBeenCalledWith(down)
  })

  it('does no more harm when its error listener fails as well', async () => {
    const onError = () => {
      throw new Error('logger down')
    }
    const { deliver } = setUp({ store: failing('commit'), onError })
    expect(await deliver(ack(), byKey)).toBe(ack())
  })
})

describe('a run that takes longer than the lease', () => {
  const held = () => {
    let finish: (result: Result) => void = () => undefined
    const handler: Handler = () => new Promise((resolve) => (finish = resolve))
    return { handler, finish: (result: Result) => finish(result) }
  }

  it('keeps its key, because the lease is renewed', async () => {
    const { deliver, clock, ran } = setUp({ leaseMs: 30_000 })
    const { handler, finish } = held()
    const first = deliver(handler, byKey)
    await clock.advance(100_000)
    expect(await deliver(ack(), byKey)).toMatchObject({ error: expect.any(DuplicateInFlightError) })
    finish(ack())
    expect(await first).toEqual(ack())
    expect(await deliver(ack(), byKey)).toEqual(skip())
    expect(ran()).toBe(1)
    await clock.advance(100_000)
    expect(clock.pending).toBe(0)
  })

  it('loses its key on a store that cannot renew, and then commits nothing', async () => {
    const clock = new FakeClock()
    const { renew: _, ...store } = idempotencyStore(memoryStore({ clock }))
    const { deliver } = setUp({ store, clock })
    const { handler, finish } = held()
    const first = deliver(handler, byKey)
    await clock.advance(60_000)
    const other = held()
    const second = deliver(other.handler, byKey) // The key is free, so a duplicate begins.
    await clock.settle()
    finish(ack())
    await first
    // The stale token did not commit what the second holds.
    expect(await deliver(ack(), byKey)).toMatchObject({ error: expect.any(DuplicateInFlightError) })
    other.finish(nak())
    await second
    expect(await deliver(ack(), byKey)).toEqual(ack())
  })

  it('is no longer renewed once it was asked to stop', async () => {
    const clock = new FakeClock()
    const renew = vi.fn(async () => true)
    const { store } = scripted(acquired)
    const stop = new AbortController()
    const { handler } = held()
    void idempotency({ store: { ...store, renew }, clock, leaseMs: 3_000 })(handler)(
      background(stop.signal),
      messageOf(byKey),
    )
    await clock.advance(2_500)
    expect(renew.mock.calls).toEqual([
      ['k1', 't1', 3_000],
      ['k1', 't1', 3_000],
    ])
    stop.abort()
    await clock.advance(10_000)
    expect(renew).toHaveBeenCalledTimes(2)
    expect(clock.pending).toBe(0)
  })

  it('reports a lease that was lost or could not be renewed, and goes on', async () => {
    const clock = new FakeClock()
    const answers = [() => Promise.reject(new Error('blip')), () => Promise.resolve(false)]
    const renew = vi.fn(() => answers.shift()!())
    const { store, calls } = scripted(acquired)
    const errors: unknown[] = []
    const { handler, finish } = held()
    const run = idempotency({
      store: { ...store, renew },
      clock,
      leaseMs: 3_000,
      onError: (error) => void errors.push(error),
    })(handler)(background(), messageOf(byKey))
    await clock.advance(10_000)
    expect(errors).toMatchObject([{ message: 'blip' }, { code: 'KEY_LEASE_LOST' }])
    expect(renew).toHaveBeenCalledTimes(2)
    finish(ack())
    expect(await run).toEqual(ack())
    expect(calls).toContain('commit k1 t1 86400000')
  })
})

describe('the key of a message', () => {
  // S30
  it('is never its routing key: two messages of one customer both run', async () => {
    const { deliver, ran } = setUp()
    await deliver(ack(), { key: 'customer-7', cursor: '1' })
    await deliver(ack(), { key: 'customer-7', cursor: '2' })
    expect(ran()).toBe(2)
  })

  it.each<[string, MessageSpec, string]>([
    [
      'its own header',
      { headers: { 'idempotency-key': 'a', 'crucible-idempotency-key': 'z', 'message-id': 'b' } },
      'a',
    ],
    [
      'that of a producer of Crucible',
      { headers: { 'crucible-idempotency-key': 'a', 'message-id': 'b', 'ce-id': 'c', 'ce-source': 'd' } },
      'a',
    ],
    ['its message id', { headers: { 'Message-Id': 'b', 'ce-id': 'c', 'ce-source': 'd' } }, 'b'],
    ['an empty header counts as absent', { headers: { 'crucible-idempotency-key': '', 'message-id': 'b' } }, 'b'],
    ['the event id with its source', { headers: { 'message-id': '', 'ce-id': 'c', 'ce-source': '/shop' } }, '/shop|c'],
    ['an event id alone is not unique', { headers: { 'ce-id': 'c' }, cursor: '9' }, 'orders||9'],
    ['its position', { subject: 's', partitionKey: 'p', cursor: '9', key: 'k' }, 's|p|9'],
  ])('is %s', (_name, spec, key) => {
    expect(defaultKey(messageOf(spec))).toBe(key)
  })

  it('is that of the original for a replay, whose own cursor starts over with every store', async () => {
    const letters = new MemDeadLetter()
    await letters.deadLetter(background(), {
      key: null,
      value: bytes(''),
      headers: [],
      subject: 'orders',
      partitionKey: 'p',
      class: 'poison',
      reason: 'poison',
      attempts: 1,
      lastError: '',
      errorName: '',
      cursor: '17',
      deadLetteredAtMs: 0,
      source: '',
    })
    const message = await (await letters.subscribe()).next({ signal: new AbortController().signal })
    expect(message.as(deadLetterToken)?.cursor).toBe('17')
    expect(defaultKey(message)).toBe('orders|p|17')
  })

  // S28
  it.each([undefined, '', null])('is none when keyOf says %j: it runs, and the store is not asked', async (key) => {
    const { store, calls } = scripted({ state: 'done' })
    const { deliver, ran } = setUp({ store, keyOf: () => key as string | undefined })
    await deliver(ack())
    await deliver(ack())
    expect([ran(), calls]).toEqual([2, []])
  })

  it('must be text', async () => {
    const { deliver } = setUp({ keyOf: () => 7 as never })
    await expect(deliver(ack())).rejects.toThrow('idempotency.keyOf(message) must be a string')
  })
})

describe('a store that only tests and sets', () => {
  it('makes it at most once: a run that fails is not run again', async () => {
    const seen = new Set<string>()
    const store = fromSeenStore({
      seen: async (key) => {
        if (seen.has(key)) return true
        seen.add(key)
        return false
      },
    })
    const { deliver, ran } = setUp({ store })
    expect((await deliver(nak(), byKey)).action).toBe('nak')
    expect(await deliver(ack(), byKey)).toEqual(skip())
    expect(ran()).toBe(1)
    await Promise.all(Array.from({ length: 100 }, () => deliver(ack(), { headers: { 'message-id': 'k2' } })))
    expect(ran()).toBe(2)
  })

  it('must have seen(key)', () => {
    expect(() => fromSeenStore(null as never)).toThrow('fromSeenStore(store)')
    expect(() => fromSeenStore({} as never)).toThrow(TypeError)
  })
})

describe('an option of idempotency that makes no sense', () => {
  const { store } = scripted({ state: 'done' })
  it.each<[IdempotencyOptions, string]>([
    [undefined as never, 'idempotency.store'],
    [{ store: null as never }, 'idempotency.store'],
    [{ store: { begin: store.begin } as never }, 'idempotency.store'],
    [{ store, keyOf: 'id' as never }, 'idempotency.keyOf'],
    [{ store, leaseMs: 0 }, 'idempotency.leaseMs'],
    [{ store, ttlMs: -1 }, 'idempotency.ttlMs'],
    [{ store, busyDelayMs: -1 }, 'idempotency.busyDelayMs'],
    [{ store, onStoreError: 'skip' as never }, "idempotency.onStoreError must be 'run' or 'nak'"],
    [{ store, onTerm: 'keep' as never }, 'idempotency.onTerm'],
    [{ store, clock: 1 as never }, 'idempotency.clock'],
    [{ store, onError: 1 as never }, 'idempotency.onError'],
    [{ store, ttl: 5 } as never, '"ttl" is not an option of idempotency'],
  ])('%# is refused by name', (options, text) => {
    expect(() => idempotency(options)).toThrow(text)
  })
})
