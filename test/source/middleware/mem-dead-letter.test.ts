import { describe, expect, it } from 'vitest'
import { ack, inProgress, manual, nak, type Result, reject, skip, term } from '../../../src/core/stream/result.js'
import { DrainedError } from '../../../src/core/stream/stream-errors.js'
import { Hopper } from '../../../src/source/hopper/hopper.js'
import type { Subscription } from '../../../src/source/inlets/subscription.js'
import { AttemptHeader, attempt, background } from '../../../src/source/message/context.js'
import { PreparedMessage } from '../../../src/source/message/decoded.js'
import { vendorToken } from '../../../src/source/message/message.js'
import { type DeadLetterRecord, deadLetterToken, dlq } from '../../../src/source/middleware/dead-letter.js'
import { MemDeadLetter } from '../../../src/source/middleware/mem-dead-letter.js'
import { retry } from '../../../src/source/middleware/retry.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { bytes, messageOf, text } from '../message-of.js'

const record = (value: string, more: Partial<DeadLetterRecord> = {}): DeadLetterRecord => ({
  key: null,
  value: bytes(value),
  headers: [],
  subject: 'orders',
  partitionKey: '',
  class: 'poison',
  reason: 'poison',
  attempts: 1,
  lastError: 'boom',
  errorName: 'Error',
  cursor: `at-${value}`,
  deadLetteredAtMs: 0,
  source: 'test',
  ...more,
})

async function holding(...values: readonly string[]): Promise<MemDeadLetter> {
  const letters = new MemDeadLetter()
  for (const value of values) await letters.deadLetter(background(), record(value))
  return letters
}

const signal = new AbortController().signal
const next = (sub: Subscription) => sub.next({ signal })
const settle = (sub: Subscription, message: Awaited<ReturnType<typeof next>>, result: Result) =>
  sub.settle(message, result, { signal })
const values = (letters: MemDeadLetter) => letters.records().map((r) => text(r.value))
const everything = { topics: [] }

describe('subscribing to dead letters', () => {
  it('yields them once, in the order in which they came, and then drains', async () => {
    const letters = await holding('1', '2')
    const sub = await letters.subscribe()
    const first = await next(sub)
    const second = await next(sub)
    expect([first, second].map((m) => [text(m.value), m.cursor.toString()])).toEqual([
      ['1', 'dlq-replay-1'],
      ['2', 'dlq-replay-2'],
    ])
    await expect(next(sub)).rejects.toThrow(DrainedError)
  })

  it('gives the message as it was, without its attempt header', async () => {
    const letters = new MemDeadLetter()
    const headers = [
      { key: 'h', value: 'v' },
      { key: AttemptHeader, value: '4' },
    ]
    const letter = record('x', { key: bytes('k1'), headers, partitionKey: 'orders/3', attempts: 4 })
    await letters.deadLetter(background(), letter)
    const message = await next(await letters.subscribe())
    expect(message).toMatchObject({ subject: 'orders', partitionKey: 'orders/3' })
    expect(text(message.key)).toBe('k1')
    expect(message.headers.entries()).toEqual([{ key: 'h', value: 'v' }])
    expect(message.deliveryCount).toBeUndefined()
    expect(message.as(deadLetterToken)).toBe(letter)
    expect(message.as(vendorToken('another'))).toBeUndefined()
    expect(letters.records()[0]).toBe(letter)
  })

  it('gives a copy of the payload: a replay that scribbles on it does not change what is dead-lettered', async () => {
    const letters = await holding('abc')
    const message = await next(await letters.subscribe())
    message.value.fill(0)
    expect(values(letters)).toEqual(['abc'])
  })

  it('does not yield what is dead-lettered later', async () => {
    const letters = await holding('1')
    const sub = await letters.subscribe()
    await letters.deadLetter(background(), record('2'))
    await next(sub)
    await expect(next(sub)).rejects.toThrow(DrainedError)
    expect(letters.size).toBe(2)
  })

  it('takes nothing after an abort', async () => {
    const letters = await holding('1')
    const sub = await letters.subscribe()
    await expect(sub.next({ signal: AbortSignal.abort(new Error('stop')) })).rejects.toThrow('stop')
    expect(text((await next(sub)).value)).toBe('1')
  })

  it('never hands one letter to two replays at the same time', async () => {
    const letters = await holding('1', '2')
    const [a, b] = [await letters.subscribe(), await letters.subscribe()]
    const first = await next(a)
    expect(text((await next(b)).value)).toBe('2')
    await expect(next(b)).rejects.toThrow(DrainedError)
    await settle(a, first, ack())
    await expect(next(a)).rejects.toThrow(DrainedError)
    expect(values(letters)).toEqual(['2'])
  })

  it('can do nothing beyond that, and says so', async () => {
    const letters = await holding()
    expect([...letters.capabilities]).toEqual(['identity'])
    expect((await letters.subscribe()).capability('leaseExtender')).toBeUndefined()
    await expect(letters.close()).resolves.toBeUndefined()
  })
})

describe('a letter that was replayed', () => {
  it.each<[string, Result, number]>([
    ['ack', ack(), 0],
    ['skip', skip(), 0],
    ['nak', nak(), 1],
    ['term', term(), 1],
    ['reject', reject(), 1],
    ['inProgress', inProgress(), 1],
    ['manual', manual(), 1],
  ])('leaves the store only when it is acknowledged: %s', async (_name, result, left) => {
    const letters = await holding('1')
    const sub = await letters.subscribe()
    const message = await next(sub)
    expect(letters.size).toBe(1)
    await settle(sub, message, result)
    expect(letters.size).toBe(left)
    const again = await letters.subscribe()
    if (left === 1) expect(text((await next(again)).value)).toBe('1')
    else await expect(next(again)).rejects.toThrow(DrainedError)
  })

  // S25
  it('the rest stays in the store when the replay is closed early', async () => {
    const letters = await holding('1', '2', '3')
    const sub = await letters.subscribe()
    await settle(sub, await next(sub), ack())
    await sub.close()
    expect(values(letters)).toEqual(['2', '3'])
  })

  // W19
  it('is returned by a close while it is out, and can be replayed again', async () => {
    const letters = await holding('1', '2')
    const sub = await letters.subscribe()
    const out = await next(sub)
    await sub.close()
    await sub.close()
    expect(values(letters)).toEqual(['1', '2'])
    await settle(sub, out, ack()) // Too late: it was given back.
    expect(letters.size).toBe(2)
    expect(text((await next(await letters.subscribe())).value)).toBe('1')
  })

  it('is not touched by a foreign message, nor by a second settlement', async () => {
    const letters = await holding('1')
    const sub = await letters.subscribe()
    await settle(sub, messageOf({ cursor: 'dlq-replay-1' }), ack())
    const message = await next(sub)
    await settle(sub, message, nak())
    await settle(sub, message, ack())
    expect(letters.size).toBe(1)
  })
})

describe('a letter that is dead-lettered again by the replay’s own dlq', () => {
  const replay = async (letters: MemDeadLetter, into: MemDeadLetter, result: Result) => {
    const sub = await letters.subscribe()
    const message = await next(sub)
    // What a hopper with a codec hands to its chain is a wrapper around the adapter's message.
    const seen = new PreparedMessage(message, {})
    const settled = await dlq(into)(() => result)(background(), seen)
    await settle(sub, message, settled)
    return settled
  }

  // W19
  it('is replaced in its place, with its original cursor', async () => {
    const letters = await holding('1', '2')
    expect(await replay(letters, letters, reject(new Error('still wrong')))).toMatchObject({ deadLettered: true })
    expect(values(letters)).toEqual(['1', '2'])
    expect(letters.records()[0]).toMatchObject({
      lastError: 'still wrong',
      reason: 'invalid_for_state',
      cursor: 'at-1',
    })
    expect(await replay(letters, letters, term(new Error('and again')))).toMatchObject({ deadLettered: true })
    expect(letters.records().map((r) => r.lastError)).toEqual(['and again', 'boom'])
    expect(letters.size).toBe(2)
  })

  it('is replaced even when its replay is cut off before it is settled', async () => {
    const letters = await holding('1')
    const sub = await letters.subscribe()
    await dlq(letters)(() => term(new Error('newer')))(background(), await next(sub))
    await sub.close()
    expect(letters.records()).toMatchObject([{ lastError: 'newer', cursor: 'at-1' }])
  })

  it('moves when that dlq has another store, which keeps what it had', async () => {
    const old = await holding('1')
    const fresh = await holding('other')
    const outThere = await fresh.subscribe()
    await next(outThere) // It has its own replay number 1 out: only the message distinguishes the two.
    await replay(old, fresh, term(new Error('moved')))
    expect(old.size).toBe(0)
    expect(values(fresh)).toEqual(['other', '1'])
  })
})

describe('replaying dead letters through a hopper', () => {
  // S24
  it('runs them in order as first attempts, and empties the store', async () => {
    const letters = new MemDeadLetter()
    for (const value of ['1', '2']) await letters.deadLetter(background(), record(value, { attempts: 3 }))
    const seen: unknown[] = []
    const summary = await new Hopper({ clock: new FakeClock() }).receive(letters, everything, (ctx, message) => {
      seen.push([text(message.value), attempt(ctx)[0]])
      return ack()
    })
    expect(seen).toEqual([
      ['1', 1],
      ['2', 1],
    ])
    expect(summary).toMatchObject({ received: 2, acked: 2 })
    expect(letters.size).toBe(0)
  })

  // S24
  it('keeps what fails again', async () => {
    const letters = await holding('1')
    await new Hopper({ clock: new FakeClock() }).receive(letters, everything, () => term(new Error('still')))
    expect(values(letters)).toEqual(['1'])
  })

  // W19
  it('with its own dlq and retry: what succeeds leaves, what fails is replaced, nothing is doubled', async () => {
    const clock = new FakeClock()
    const letters = await holding('good', 'bad', 'flaky')
    const tries: string[] = []
    const hopper = new Hopper({
      clock,
      name: 'replay',
      ordering: 'strict', // A replay is handed out once, so its retries are made in place.
      middleware: [dlq(letters), retry({ maxAttempts: 2, backoff: { baseMs: 10, jitter: false } })],
    })
    const run = hopper.receive(letters, everything, (ctx, message) => {
      const value = text(message.value)!
      tries.push(value)
      expect(ctx.signal.aborted).toBe(false)
      if (value === 'good') return ack()
      return value === 'bad' ? term(new Error('still bad')) : nak(new Error('still down'))
    })
    await clock.runUntilIdle()
    const summary = await run
    expect(tries).toEqual(['good', 'bad', 'flaky', 'flaky'])
    expect(summary).toMatchObject({ received: 3, acked: 1, term: 2 })
    expect(letters.records()).toMatchObject([
      { reason: 'poison', lastError: 'still bad', cursor: 'at-bad', source: 'replay', attempts: 1 },
      { reason: 'retryable', lastError: 'still down', cursor: 'at-flaky', source: 'replay', attempts: 2 },
    ])
  })
})
