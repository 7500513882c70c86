import { describe, expect, it } from 'vitest'
import { ack, nak, type Result, skip, term } from '../../../src/core/stream/result.js'
import { BatchResultCountError, InvalidResultError } from '../../../src/core/stream/stream-errors.js'
import { jsonCodec } from '../../../src/source/codecs/codec-registry.js'
import { HandlerTimeoutError } from '../../../src/source/errors.js'
import { Hopper } from '../../../src/source/hopper/hopper.js'
import { MemInlet } from '../../../src/source/inlets/memory/mem-inlet.js'
import { dlq } from '../../../src/source/middleware/dead-letter.js'
import { defineMiddleware } from '../../../src/source/middleware/define-middleware.js'
import type { Handler, Middleware } from '../../../src/source/middleware/handler.js'
import { MemDeadLetter } from '../../../src/source/middleware/mem-dead-letter.js'
import { retry } from '../../../src/source/middleware/retry.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { Harness } from '../../../src/testing/harness.js'
import { counting, held, numbered, textOf } from './support.js'

const boom = new Error('boom')

describe('batches of one key', () => {
  it.each([
    [5, 10, [5, 5]],
    [8, 3, [3]],
    [1, 4, [1, 1, 1, 1]],
    [4, 10, [4, 4, 2]],
    [3, 5, [3, 2]],
    // S48
  ])('of size %i from %i messages', async (size, n, sizes) => {
    const harness = new Harness({ hopper: { batch: { size } }, messages: numbered(n) })
    const calls: string[][] = []
    const summary = await harness.runBatch((_ctx, messages) => {
      calls.push(messages.map(textOf))
      return messages.map(() => ack())
    })
    expect(calls.map((call) => call.length)).toEqual(sizes)
    expect(calls.flat()).toEqual(numbered(n).map((m) => m.value))
    expect(harness.ledger.ids()).toEqual(numbered(n).map((m) => String(Number(m.value) + 1)))
    expect(summary).toMatchObject({ received: n, acked: n })
  })

  it('are of one message without the batch option', async () => {
    const harness = new Harness({ messages: numbered(3) })
    let calls = 0
    await harness.runBatch((_ctx, messages) => {
      calls += 1
      return messages.map(() => ack())
    })
    expect(calls).toBe(3)
  })

  // S50, W34
  it('start maxWaitMs after their first message, by the injected clock', async () => {
    const clock = new FakeClock()
    const inlet = new MemInlet({ clock, messages: numbered(3), nextId: counting() })
    const hopper = new Hopper({ clock, batch: { size: 100, maxWaitMs: 50 } })
    const calls: [number, number][] = []
    const running = hopper.runBatch(await inlet.subscribe(), (_ctx, messages) => {
      calls.push([clock.monotonic(), messages.length])
      return messages.map(() => ack())
    })
    await clock.advance(20)
    inlet.queue({ key: 'k', value: '3' })
    await clock.advance(29)
    expect(calls).toEqual([])
    await clock.advance(1)
    expect(calls).toEqual([[50, 4]])
    inlet.queue({ key: 'k', value: '4' })
    await clock.advance(50)
    expect(calls).toEqual([
      [50, 4],
      [100, 1],
    ])
    await hopper.close()
    expect(await running).toMatchObject({ acked: 5 })
    expect(clock.pending).toBe(0)
  })

  it('never overlap, and wait from their first message although the last batch still runs', async () => {
    const clock = new FakeClock()
    const inlet = new MemInlet({ clock, messages: numbered(2), nextId: counting() })
    const hopper = new Hopper({ clock, concurrency: 4, batch: { size: 2, maxWaitMs: 50 } })
    const gate = held()
    const calls: number[] = []
    let inside = 0
    const running = hopper.runBatch(await inlet.subscribe(), async (_ctx, messages) => {
      inside += 1
      expect(inside).toBe(1)
      calls.push(messages.length)
      if (calls.length === 1) await gate.promise
      inside -= 1
      return messages.map(() => ack())
    })
    await clock.settle()
    inlet.queue({ key: 'k', value: '2' })
    await clock.advance(60)
    expect(calls).toEqual([2])
    gate.release()
    await clock.settle()
    expect(calls).toEqual([2, 1])
    await hopper.close()
    await running
  })
})

describe('the results of a batch', () => {
  // S49
  it('settle each message by its own', async () => {
    const harness = new Harness({ hopper: { batch: { size: 4 } }, messages: numbered(4) })
    await harness.runBatch(() => [ack(), nak(boom), term(boom), skip()])
    harness.assertCounts({ acked: 1, nak: 1, term: 1, dropped: 1 })
  })

  // S49
  it('that are too few leave the rest poison', async () => {
    const harness = new Harness({ hopper: { batch: { size: 3 } }, messages: numbered(3) })
    await harness.runBatch(() => [ack()])
    harness.assertCounts({ acked: 1, term: 2 })
    const errors = harness.ledger.entries().slice(1)
    for (const { result } of errors)
      expect(result).toMatchObject({ class: 'poison', error: expect.any(BatchResultCountError) })
  })

  // S49
  it('that are too many are ignored beyond the last message, with a warning', async () => {
    const errors: string[] = []
    const logger = { warn: () => undefined, error: (text: string) => errors.push(text) }
    const harness = new Harness({ hopper: { batch: { size: 2 }, logger }, messages: numbered(2) })
    await harness.runBatch(() => [ack(), ack(), ack()])
    harness.assertCounts({ acked: 2 })
    expect(errors).toEqual([expect.stringContaining('2 messages and returned 3 results')])
  })

  it('that are none at all, or thrown, redeliver every member', async () => {
    const harness = new Harness({ hopper: { batch: { size: 2 } }, messages: numbered(4) })
    let calls = 0
    await harness.runBatch(() => {
      calls += 1
      if (calls === 1) throw boom
      return undefined as unknown as readonly Result[]
    })
    harness.assertCounts({ nak: 4 })
    expect(harness.ledger.entries()[0]?.result).toMatchObject({ error: boom })
    expect(harness.ledger.entries()[2]?.result).toMatchObject({ error: expect.any(InvalidResultError) })
  })

  it('that are not results are naks, each for itself', async () => {
    const harness = new Harness({ hopper: { batch: { size: 2 } }, messages: numbered(2) })
    await harness.runBatch(() => [ack(), 'ack' as unknown as Result])
    harness.assertCounts({ acked: 1, nak: 1 })
  })

  it('that come too late count for nothing', async () => {
    const harness = new Harness({
      hopper: { batch: { size: 2 }, handlerTimeoutMs: 100 },
      messages: numbered(2),
    })
    await harness.runBatch(async (_ctx, messages) => {
      await harness.clock.sleep(200)
      return messages.map(() => ack())
    })
    harness.assertCounts({ nak: 2 })
    expect(harness.ledger.entries()[0]?.result).toMatchObject({ error: expect.any(HandlerTimeoutError) })
  })
})

describe('members of a batch that are not fit', () => {
  // S50
  it('are terminated by themselves and left out of the call', async () => {
    const harness = new Harness({
      hopper: { codec: jsonCodec(), batch: { size: 3 } },
      messages: [
        { key: 'k', value: '1' },
        { key: 'k', value: '{bad' },
        { key: 'k', value: '3' },
      ],
    })
    const calls: string[][] = []
    await harness.runBatch((_ctx, messages) => {
      calls.push(messages.map(textOf))
      return messages.map(() => ack())
    })
    expect(calls).toEqual([['1', '3']])
    harness.assertCounts({ acked: 2, term: 1 })
    expect(harness.ledger.entries().find((entry) => entry.result.action === 'term')?.id).toBe('2')
  })

  // S50
  it('leave the handler uncalled when no other is left', async () => {
    const harness = new Harness({
      hopper: { codec: jsonCodec(), batch: { size: 2 } },
      messages: [{ value: '{' }, { value: '{' }],
    })
    let calls = 0
    await harness.runBatch(() => {
      calls += 1
      return []
    })
    expect(calls).toBe(0)
    harness.assertCounts({ term: 2 })
  })

  it('lose their lease one by one: the signal aborts only when every one has', async () => {
    const clock = new FakeClock()
    const inlet = new MemInlet({ clock, messages: numbered(2), nextId: counting() })
    const sub = await inlet.subscribe()
    const real = sub.capability('leaseExtender')!
    const lost = new Set(['1'])
    let signal: AbortSignal | undefined
    const hopper = new Hopper({ clock, batch: { size: 2 } })
    const running = hopper.runBatch(
      {
        next: (o) => sub.next(o),
        settle: (m, r, o) => sub.settle(m, r, o),
        close: () => sub.close(),
        capability: (name) =>
          name === 'leaseExtender'
            ? ({
                ...real,
                extendMany: async (ms: Parameters<NonNullable<typeof real.extendMany>>[0]) => {
                  const kept = await real.extendMany!(ms)
                  return ms.map((m, i) => !lost.has(m.cursor.toString()) && kept[i])
                },
              } as never)
            : sub.capability(name),
      },
      async (ctx, messages) => {
        signal = ctx.signal
        await clock.sleep(15_000)
        return messages.map(() => ack())
      },
    )
    await clock.advance(12_000)
    expect(signal?.aborted).toBe(false)
    await clock.advance(3_000)
    expect(inlet.ledger.ids()).toEqual(['2'])
    await hopper.close()
    expect(await running).toMatchObject({ acked: 1 })
  })
})

describe('batches of several keys', () => {
  // W35
  it('are cut per key, and concurrency bounds the calls, also at the end', async () => {
    const messages = Array.from({ length: 12 }, (_, i) => ({ key: `k${i % 6}`, value: String(i) }))
    const harness = new Harness({ hopper: { concurrency: 2, batch: { size: 10 } }, messages })
    let inside = 0
    let most = 0
    const calls: string[][] = []
    await harness.runBatch(async (_ctx, batch) => {
      inside += 1
      most = Math.max(most, inside)
      calls.push(batch.map(textOf))
      await harness.clock.sleep(10)
      inside -= 1
      return batch.map(() => ack())
    })
    expect(most).toBe(2)
    expect(calls).toEqual([0, 1, 2, 3, 4, 5].map((n) => [String(n), String(n + 6)]))
    harness.assertCounts({ acked: 12 })
  })

  it('are mixed in arrival order with concurrency 1', async () => {
    const messages = Array.from({ length: 6 }, (_, i) => ({ key: `k${i}`, value: String(i) }))
    const harness = new Harness({ hopper: { batch: { size: 3 } }, messages })
    const calls: string[][] = []
    await harness.runBatch((_ctx, batch) => {
      calls.push(batch.map(textOf))
      return batch.map(() => ack())
    })
    expect(calls).toEqual([
      ['0', '1', '2'],
      ['3', '4', '5'],
    ])
  })

  // W40
  it('do not stall when partial ones fill the window: the oldest goes as it is', async () => {
    const clock = new FakeClock()
    const messages = Array.from({ length: 20 }, (_, i) => ({ key: `k${i}`, value: String(i) }))
    const inlet = new MemInlet({ clock, messages, nextId: counting() })
    const hopper = new Hopper({ clock, concurrency: 2, maxInFlight: 4, batch: { size: 4 } })
    const seen: string[] = []
    const running = hopper.runBatch(await inlet.subscribe(), (_ctx, batch) => {
      seen.push(...batch.map(textOf))
      return batch.map(() => ack())
    })
    await clock.settle()
    // All but the last window went through: three wait for company, which may still come.
    expect(seen.length).toBeGreaterThanOrEqual(16)
    await hopper.close()
    expect(await running).toMatchObject({ received: 20 })
  })
})

describe('options that cannot work with batches', () => {
  const plain: Middleware = (next: Handler) => next

  // W40
  it('are refused: a batch that could never fill', () => {
    expect(() => new Hopper({ maxInFlight: 10, batch: { size: 11 } })).toThrow(
      'hopper.maxInFlight must be at least batch.size (11) unless batch.maxWaitMs is set, got 10',
    )
    expect(() => new Hopper({ maxInFlight: 10, batch: { size: 11, maxWaitMs: 5 } })).not.toThrow()
    expect(() => new Hopper({ batch: { size: 0 } })).toThrow(RangeError)
  })

  // W7
  it('are refused: middleware that knows no batches', async () => {
    expect(() => new Hopper({ middleware: [plain], batch: { size: 2 } })).toThrow('hopper.middleware must be')
    const harness = new Harness({ hopper: { middleware: [plain] } })
    await expect(harness.runBatch(() => [])).rejects.toThrow('hopper.middleware must be')
  })

  it('are refused: strict ordering', () => {
    expect(() => new Hopper({ ordering: 'strict', batch: { size: 2 } })).toThrow("hopper.ordering must be 'relaxed'")
  })
})

// W7
describe('middleware in batch mode', () => {
  it('works on each member: retry, and dead letters', async () => {
    const letters = new MemDeadLetter()
    const harness = new Harness({
      hopper: {
        middleware: [dlq(letters), retry({ maxAttempts: 2, backoff: () => 100 })],
        batch: { size: 3, maxWaitMs: 10 },
      },
      inlet: { drainRedeliveries: true },
      messages: numbered(3),
    })
    const calls: string[][] = []
    await harness.runBatch((_ctx, messages) => {
      calls.push(messages.map(textOf))
      return messages.map((message) => (textOf(message) === '1' ? nak(boom) : ack()))
    })
    expect(calls).toEqual([['0', '1', '2'], ['1']])
    harness.assertCounts({ acked: 2, nak: 1, term: 1 })
    expect(letters.records()).toMatchObject([{ attempts: 2, reason: 'retryable' }])
  })

  it('that fails for one member fails for that one only', async () => {
    const picky = defineMiddleware<undefined>({
      kind: 'picky',
      before: (_ctx, message) => {
        if (textOf(message) === '0') throw boom
        return { state: undefined }
      },
      after: (_ctx, message, result) => {
        if (textOf(message) === '1') throw boom
        return result
      },
    })
    const harness = new Harness({ hopper: { middleware: [picky], batch: { size: 3 } }, messages: numbered(3) })
    await harness.runBatch((_ctx, messages) => messages.map(() => ack()))
    harness.assertCounts({ nak: 2, acked: 1 })
  })
})

describe('a shutdown in batch mode', () => {
  it('gives partial batches back', async () => {
    const clock = new FakeClock()
    const inlet = new MemInlet({ clock, messages: numbered(5), nextId: counting() })
    const hopper = new Hopper({ clock, batch: { size: 3 } })
    const running = hopper.runBatch(await inlet.subscribe(), (_ctx, messages) => messages.map(() => ack()))
    await clock.settle()
    await hopper.close()
    expect(await running).toMatchObject({ received: 5, acked: 3, returned: 2 })
  })
})
