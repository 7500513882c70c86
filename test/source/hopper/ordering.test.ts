import { describe, expect, it } from 'vitest'
import { ack, nak, nakAfter } from '../../../src/core/stream/result.js'
import { DeliveryLimitError } from '../../../src/source/errors.js'
import { Hopper } from '../../../src/source/hopper/hopper.js'
import { MemInlet } from '../../../src/source/inlets/memory/mem-inlet.js'
import { attempt } from '../../../src/source/message/context.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { Harness } from '../../../src/testing/harness.js'
import { numbered, textOf } from './support.js'

const boom = new Error('boom')

describe('a nak with relaxed ordering', () => {
  it('may be overtaken by the next message of its key', async () => {
    const harness = new Harness({ messages: numbered(3), inlet: { drainRedeliveries: true } })
    const seen: string[] = []
    await harness.run((_ctx, message) => {
      seen.push(textOf(message))
      return seen.length === 1 ? nakAfter(1_000, boom) : ack()
    })
    expect(seen).toEqual(['0', '1', '2', '0'])
  })
})

// W32
describe('a nak with strict ordering', () => {
  it('waits in place and is tried again before anything else of its key', async () => {
    const messages = [...numbered(3, 'a'), ...numbered(3, 'b')]
    const harness = new Harness({ hopper: { ordering: 'strict', concurrency: 2 }, messages })
    const seen: [string, string, number][] = []
    await harness.run((ctx, message) => {
      const [n] = attempt(ctx)
      seen.push([message.partitionKey, textOf(message), n])
      return message.partitionKey === 'a' && textOf(message) === '0' && n < 3 ? nakAfter(1_000, boom) : ack()
    })
    expect(seen.filter(([key]) => key === 'a')).toEqual([
      ['a', '0', 1],
      ['a', '0', 2],
      ['a', '0', 3],
      ['a', '1', 1],
      ['a', '2', 1],
    ])
    // The other key did not wait.
    expect(seen.slice(1, 4).map(([key]) => key)).toEqual(['b', 'b', 'b'])
    harness.assertCounts({ acked: 6 })
    expect(harness.clock.monotonic()).toBe(2_000)
  })

  it('keeps its lease meanwhile', async () => {
    const harness = new Harness({ hopper: { ordering: 'strict' }, messages: numbered(1) })
    let runs = 0
    await harness.run(() => {
      runs += 1
      return runs < 3 ? nakAfter(60_000, boom) : ack()
    })
    harness.assertCounts({ acked: 1 })
    expect(harness.ledger.entries()[0]?.attempt).toBe(1)
  })

  it('is bounded by maxDeliveries', async () => {
    const harness = new Harness({ hopper: { ordering: 'strict', maxDeliveries: 4 }, messages: numbered(2) })
    let runs = 0
    await harness.run((_ctx, message) => {
      if (textOf(message) === '1') return ack()
      runs += 1
      return nakAfter(10, boom)
    })
    expect(runs).toBe(4)
    harness.assertCounts({ term: 1, acked: 1 })
    expect(harness.ledger.entries()[0]?.result).toMatchObject({
      class: 'poison',
      error: expect.any(DeliveryLimitError),
    })
  })

  it('becomes a plain nak when a drain cuts its wait short', async () => {
    const clock = new FakeClock()
    const inlet = new MemInlet({ clock, messages: numbered(2) })
    const hopper = new Hopper({ clock, ordering: 'strict' })
    const running = hopper.run(await inlet.subscribe(), () => nakAfter(60_000, boom))
    await clock.advance(1_000)
    await hopper.close()
    expect(await running).toMatchObject({ received: 2, nak: 1, returned: 1 })
    expect(inlet.ledger.entries()).toMatchObject([{ result: { action: 'nak', requeueMs: 60_000, error: boom } }])
    expect(clock.pending).toBe(0)
  })

  it('is given up when its lease is lost', async () => {
    const clock = new FakeClock()
    const inlet = new MemInlet({ clock, messages: numbered(1) })
    const sub = await inlet.subscribe()
    const real = sub.capability('leaseExtender')!
    const hopper = new Hopper({ clock, ordering: 'strict' })
    let runs = 0
    const running = hopper.run(
      {
        next: (o) => sub.next(o),
        settle: (m, r, o) => sub.settle(m, r, o),
        close: () => sub.close(),
        capability: (name) =>
          name === 'leaseExtender'
            ? ({ ...real, extendMany: async (ms: readonly unknown[]) => ms.map(() => false) } as never)
            : sub.capability(name),
      },
      () => {
        runs += 1
        return nakAfter(60_000, boom)
      },
    )
    await clock.advance(20_000)
    expect(runs).toBe(1)
    expect(inlet.ledger.length).toBe(0)
    await hopper.close()
    expect(await running).toMatchObject({ nak: 0 })
  })

  it('does not pile up listeners on the signal of the run', async () => {
    const clock = new FakeClock()
    const inlet = new MemInlet({ clock, messages: numbered(1) })
    const stop = new AbortController()
    const hopper = new Hopper({ clock, ordering: 'strict', maxDeliveries: 10_000 })
    let runs = 0
    const running = hopper.run(
      await inlet.subscribe(),
      () => {
        runs += 1
        return runs < 1_000 ? nak(boom) : ack()
      },
      { signal: stop.signal },
    )
    const warnings: Error[] = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', onWarning)
    await clock.advance(1_000)
    process.off('warning', onWarning)
    expect(runs).toBe(1_000)
    expect(warnings).toEqual([])
    await hopper.close()
    expect(await running).toMatchObject({ acked: 1 })
  })
})
