import { describe, expect, it } from 'vitest'
import {
  DecodeError,
  InvalidForStateError,
  PoisonError,
  RetryAfterError,
} from '../../../src/core/failure/failure-errors.js'
import {
  ack,
  inProgress,
  manual,
  nak,
  nakAfter,
  type Result,
  reject,
  skip,
  term,
} from '../../../src/core/stream/result.js'
import { InvalidResultError } from '../../../src/core/stream/stream-errors.js'
import { Hopper } from '../../../src/source/hopper/hopper.js'
import { memDelivery } from '../../../src/source/inlets/memory/mem-message.js'
import { Harness } from '../../../src/testing/harness.js'
import { listed, messageOf, numbered, scripted, textOf } from './support.js'

const boom = new Error('boom')

describe('a handler that returns a result', () => {
  it.each([
    ['ack', ack(), { acked: 1 }],
    ['skip', skip(), { dropped: 1 }],
    ['nak', nak(boom), { nak: 1 }],
    ['term', term(boom), { term: 1 }],
    ['reject', reject(boom), { term: 1 }],
    ['inProgress', inProgress(), { inProgress: 1 }],
    ['manual', manual(), { manual: 1 }],
    // S36
  ] as const)('has its message settled by it: %s', async (_name, result, counts) => {
    const harness = new Harness({ messages: numbered(1) })
    const summary = await harness.run(() => result)
    harness.assertCounts(counts)
    harness.assertSettled(1)
    expect(harness.ledger.entries()[0]?.result).toBe(result)
    const { acked = 0, dropped = 0, nak: naks = 0, term: terms = 0 } = counts as Partial<Record<string, number>>
    expect(summary).toEqual({
      received: 1,
      acked,
      dropped,
      nak: naks,
      term: terms,
      settleFailures: 0,
      returned: 0,
      abandoned: 0,
    })
  })

  // S44
  it('is counted by kind', async () => {
    const results = [ack(), nak(boom), term(boom), skip()]
    const harness = new Harness({ messages: numbered(4) })
    const summary = await harness.run((_ctx, message) => results[Number(textOf(message))] ?? ack())
    expect(summary).toEqual({
      received: 4,
      acked: 1,
      nak: 1,
      term: 1,
      dropped: 1,
      settleFailures: 0,
      returned: 0,
      abandoned: 0,
    })
  })

  it('may answer synchronously or later, and return any thenable', async () => {
    const thenable = { then: (resolve: (r: Result) => void) => resolve(ack()) } as unknown as Promise<Result>
    const answers = [() => ack(), async () => ack(), () => thenable]
    const harness = new Harness({ messages: numbered(3) })
    await harness.run((_ctx, message) => answers[Number(textOf(message))]!())
    harness.assertCounts({ acked: 3 })
  })
})

// S45 W10
describe('a handler that throws', () => {
  it('has its message delivered again, and the next one is still processed', async () => {
    const harness = new Harness({ messages: numbered(2) })
    const summary = await harness.run((_ctx, message) => {
      if (textOf(message) === '0') throw boom
      return ack()
    })
    harness.assertCounts({ nak: 1, acked: 1 })
    expect(harness.ledger.entries()[0]?.result).toMatchObject({ action: 'nak', class: 'retryable', error: boom })
    expect(summary).toMatchObject({ received: 2, nak: 1, acked: 1 })
  })

  it.each([
    ['a DecodeError', new DecodeError('', 'orders', boom), { action: 'term', class: 'poison' }],
    ['a PoisonError', new PoisonError('no'), { action: 'term', class: 'poison' }],
    ['an InvalidForStateError', new InvalidForStateError('no'), { action: 'term', class: 'invalidForState' }],
    ['a RetryAfterError', new RetryAfterError(7_000), { action: 'nak', class: 'retryable', requeueMs: 7_000 }],
    ['a string', 'oops', { action: 'nak', class: 'retryable' }],
    ['undefined', undefined, { action: 'nak', class: 'retryable' }],
  ])('is classified, asynchronously or not: %s', async (_name, error, expected) => {
    const harness = new Harness({ messages: numbered(2) })
    await harness.run((_ctx, message) => {
      if (textOf(message) === '0') throw error
      return Promise.reject(error)
    })
    const results = harness.ledger.entries().map((entry) => entry.result)
    expect(results).toEqual([
      expect.objectContaining({ ...expected, error }),
      expect.objectContaining({ ...expected, error }),
    ])
  })

  it('naks what was aborted by its own signal', async () => {
    const harness = new Harness({ hopper: { handlerTimeoutMs: 50 }, messages: numbered(1) })
    await harness.run(async (ctx) => {
      await harness.clock.sleep(10)
      ctx.signal.throwIfAborted()
      throw new DOMException('aborted', 'AbortError')
    })
    harness.assertCounts({ nak: 1 })
  })

  it.each([
    ['undefined', undefined],
    ['null', null],
    ['a string', 'ack'],
    ['a poison nak', { action: 'nak', class: 'poison', requeueMs: 0 }],
    ['an unknown action', { action: 'later', class: 'unclassified', requeueMs: 0 }],
    // S45
  ])('is not read as an ack when it returns %s', async (_name, returned) => {
    const harness = new Harness({ messages: numbered(1) })
    const summary = await harness.run(() => returned as unknown as Result)
    const [entry] = harness.ledger.entries()
    expect(entry?.result).toMatchObject({ action: 'nak', class: 'retryable', error: expect.any(InvalidResultError) })
    expect(summary).toMatchObject({ nak: 1, acked: 0 })
  })
})

describe('a handler that settles by itself', () => {
  it('does so through the vendor value and returns manual()', async () => {
    const harness = new Harness({ messages: numbered(1), inlet: { drainRedeliveries: true } })
    await harness.run(async (_ctx, message) => {
      await message.as(memDelivery)?.settle(ack())
      return manual()
    })
    harness.assertCounts({ acked: 1, manual: 1 })
  })

  it('gets the message again when it had not settled it', async () => {
    const harness = new Harness({ messages: numbered(1), inlet: { drainRedeliveries: true } })
    let runs = 0
    await harness.run(() => {
      runs += 1
      return runs === 1 ? manual() : ack()
    })
    harness.assertCounts({ manual: 1, acked: 1 })
    expect(harness.ledger.entries()[1]).toMatchObject({ attempt: 2, atMs: harness.clock.now() })
    expect(harness.clock.monotonic()).toBe(30_000)
  })
})

describe('inProgress() as a result', () => {
  it('extends the lease once; the message comes back when that lapses', async () => {
    const harness = new Harness({ messages: numbered(1), inlet: { drainRedeliveries: true } })
    let runs = 0
    await harness.run(async () => {
      runs += 1
      await harness.clock.sleep(5_000)
      return runs === 1 ? inProgress() : ack()
    })
    harness.assertCounts({ inProgress: 1, acked: 1 })
    const [first, second] = harness.ledger.entries()
    expect(second!.atMs - first!.atMs).toBe(35_000)
    expect(second!.attempt).toBe(2)
  })

  it('is a nak, with a warning, where no lease could bring the message back', async () => {
    const warnings: string[] = []
    const sub = scripted({ next: listed([messageOf()]) })
    const hopper = new Hopper({ logger: { warn: (text) => warnings.push(text), error: () => undefined } })
    const summary = await hopper.run(sub, () => inProgress())
    expect(sub.settled[0]?.result).toMatchObject({ action: 'nak' })
    expect(summary.nak).toBe(1)
    expect(warnings).toEqual([expect.stringContaining('inProgress')])
  })
})

describe('a delayed nak', () => {
  it('comes back after its delay, counted as one more delivery', async () => {
    const harness = new Harness({ messages: numbered(1), inlet: { drainRedeliveries: true } })
    const seen: (readonly [number, number | undefined])[] = []
    await harness.run((_ctx, message) => {
      seen.push([harness.clock.monotonic(), message.deliveryCount])
      return seen.length < 3 ? nakAfter(2_000, boom) : ack()
    })
    expect(seen).toEqual([
      [0, 1],
      [2_000, 2],
      [4_000, 3],
    ])
  })
})
