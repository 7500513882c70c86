import { describe, expect, it } from 'vitest'
import { ack, nak, term } from '../../../src/core/stream/result.js'
import { DeliveryLimitError, HandlerTimeoutError } from '../../../src/source/errors.js'
import { Hopper } from '../../../src/source/hopper/hopper.js'
import { AttemptHeader, attempt } from '../../../src/source/message/context.js'
import { Headers } from '../../../src/source/message/headers.js'
import { dlq } from '../../../src/source/middleware/dead-letter.js'
import { MemDeadLetter } from '../../../src/source/middleware/mem-dead-letter.js'
import { retry } from '../../../src/source/middleware/retry.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { Harness } from '../../../src/testing/harness.js'
import { held, listed, messageOf, numbered, scripted, textOf } from './support.js'

const boom = new Error('boom')

// W1
describe('the attempt of a delivery', () => {
  it('is on the context before the handler and its middleware run, and rises with every redelivery', async () => {
    const harness = new Harness({ messages: numbered(1), inlet: { drainRedeliveries: true } })
    const seen: (readonly [number, boolean])[] = []
    await harness.run((ctx) => {
      seen.push(attempt(ctx))
      return seen.length < 4 ? nak(boom) : ack()
    })
    expect(seen).toEqual([
      [1, true],
      [2, true],
      [3, true],
      [4, true],
    ])
  })

  it('is what makes a cap on attempts work at last, with growing delays and a true count in the dead letter', async () => {
    const letters = new MemDeadLetter()
    const harness = new Harness({
      hopper: {
        middleware: [
          dlq(letters),
          retry({ maxAttempts: 3, backoff: { baseMs: 100, maxMs: 1_000, factor: 2, jitter: false } }),
        ],
      },
      inlet: { drainRedeliveries: true },
      messages: numbered(1),
    })
    const at: number[] = []
    await harness.run(() => {
      at.push(harness.clock.monotonic())
      return nak(boom)
    })
    expect(at).toEqual([0, 100, 300])
    harness.assertCounts({ nak: 2, term: 1 })
    expect(letters.records()).toMatchObject([{ attempts: 3, reason: 'retryable', lastError: 'boom' }])
  })

  it.each([
    ['the count of the backend', { deliveryCount: 4 }, [4, true]],
    ['the header', { headers: new Headers([[AttemptHeader, '6']]) }, [6, true]],
    ['the larger of both', { deliveryCount: 2, headers: new Headers([[AttemptHeader, '5']]) }, [5, true]],
    ['nothing: then it is the first', {}, [1, false]],
  ])('comes from %s', async (_name, fields, expected) => {
    let seen: unknown
    await new Hopper({ clock: new FakeClock() }).run(scripted({ next: listed([messageOf(fields)]) }), (ctx) => {
      seen = attempt(ctx)
      return ack()
    })
    expect(seen).toEqual(expected)
  })

  it('is warned of once per subject when its header is no attempt', async () => {
    const warnings: unknown[] = []
    const bad = messageOf({ headers: new Headers([[AttemptHeader, 'many']]) })
    const other = messageOf({ subject: 'bills', headers: new Headers([[AttemptHeader, '0']]) })
    const logger = { warn: (_text: string, facts: unknown) => warnings.push(facts), error: () => undefined }
    const hopper = new Hopper({ clock: new FakeClock(), logger })
    await hopper.run(scripted({ next: listed([bad, bad, other]) }), () => ack())
    expect(warnings).toEqual([
      { subject: 'orders', header: 'many' },
      { subject: 'bills', header: '0' },
    ])
  })
})

// W37
describe('a message that was delivered too often', () => {
  it('is terminated as poison without its handler, and dead-lettered', async () => {
    const letters = new MemDeadLetter()
    const hopper = new Hopper({ clock: new FakeClock(), maxDeliveries: 3, middleware: [dlq(letters)] })
    const ran: unknown[] = []
    const sub = scripted({ next: listed([messageOf({ deliveryCount: 3 }), messageOf({ deliveryCount: 4 })]) })
    const summary = await hopper.run(sub, (_ctx, message) => {
      ran.push(message.deliveryCount)
      return ack()
    })
    expect(ran).toEqual([3])
    expect(summary).toMatchObject({ acked: 1, term: 1 })
    expect(sub.settled[1]?.result).toMatchObject({
      class: 'poison',
      error: expect.any(DeliveryLimitError),
      deadLettered: true,
    })
    expect(letters.records()).toMatchObject([{ attempts: 4, reason: 'poison', errorName: 'DeliveryLimitError' }])
  })

  it('is stopped although it never lets its handler return', async () => {
    const harness = new Harness({
      hopper: { heartbeat: false, maxDeliveries: 3, concurrency: 10, laneOf: (m) => String(m.deliveryCount) },
      inlet: { drainRedeliveries: true, leaseMs: 1_000 },
      messages: numbered(1),
    })
    let runs = 0
    const gate = held()
    const running = harness.run(async () => {
      runs += 1
      await gate.promise
      return ack()
    })
    // Three runs hang until their leases have lapsed; the fourth delivery is the last.
    const ended = harness.clock.sleep(10_000).then(() => gate.release())
    await running
    await ended
    expect(runs).toBe(3)
    expect(harness.ledger.entries()).toMatchObject([{ attempt: 4, result: { action: 'term', class: 'poison' } }])
  })

  it('has no limit where that is asked for', async () => {
    const sub = scripted({ next: listed([messageOf({ deliveryCount: 1_000_000 })]) })
    expect(await new Hopper({ clock: new FakeClock(), maxDeliveries: Infinity }).run(sub, () => ack())).toMatchObject({
      acked: 1,
    })
  })

  it('is never reached before retry has given up', () => {
    expect(() => new Hopper({ maxDeliveries: 4, middleware: [retry({ maxAttempts: 5 })] })).toThrow(
      'retry.maxAttempts must be at most hopper.maxDeliveries (4)',
    )
    expect(() => new Hopper({ maxDeliveries: 5, middleware: [retry({ maxAttempts: 5 })] })).not.toThrow()
  })
})

describe('a handler with a time limit', () => {
  it('has its signal aborted and its message delivered again; what it still returns is discarded', async () => {
    const harness = new Harness({
      hopper: { handlerTimeoutMs: 1_000 },
      inlet: { drainRedeliveries: true },
      messages: numbered(1),
    })
    let runs = 0
    const reasons: unknown[] = []
    await harness.run(async (ctx) => {
      runs += 1
      if (runs > 1) return ack()
      ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason))
      await harness.clock.sleep(5_000)
      return term(boom)
    })
    expect(reasons).toEqual([expect.any(HandlerTimeoutError)])
    expect(harness.ledger.entries()).toMatchObject([
      { result: { action: 'nak', error: reasons[0] }, attempt: 1 },
      { result: { action: 'ack' }, attempt: 2 },
    ])
  })

  it('that throws too late is ignored', async () => {
    const harness = new Harness({ hopper: { handlerTimeoutMs: 10 }, messages: numbered(2) })
    await harness.run(async (_ctx, message) => {
      if (textOf(message) === '1') {
        await harness.clock.sleep(5)
        return ack()
      }
      await harness.clock.sleep(12)
      throw boom
    })
    harness.assertCounts({ nak: 1, acked: 1 })
  })

  it('sees the abort of its run as well', async () => {
    const clock = new FakeClock()
    const hopper = new Hopper({ clock, handlerTimeoutMs: 60_000 })
    let signal: AbortSignal | undefined
    const running = hopper.run(scripted({ next: listed([messageOf()]) }), async (ctx) => {
      signal = ctx.signal
      await clock.sleep(60_000, ctx.signal)
      return ack()
    })
    await clock.settle()
    void hopper.close({ deadlineMs: 100 })
    await clock.advance(100)
    expect(await running).toMatchObject({ nak: 1 })
    expect(signal?.reason).toMatchObject({ code: 'SHUTDOWN_DEADLINE' })
    expect(clock.pending).toBe(0)
  })
})
