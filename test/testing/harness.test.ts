import { describe, expect, it } from 'vitest'
import { ack, nak, term } from '../../src/core/stream/result.js'
import { Hopper } from '../../src/source/hopper/hopper.js'
import { MemInlet } from '../../src/source/inlets/memory/mem-inlet.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { Harness } from '../../src/testing/harness.js'

describe('a harness', () => {
  it('runs until everything is dealt with, in no real time', async () => {
    const harness = new Harness({ messages: [{ value: 'a' }, { value: 'b' }] })
    const startedAt = performance.now()
    const summary = await harness.run(async () => {
      await harness.clock.sleep(3_600_000)
      return ack()
    })
    // Two hours of it in less than a minute, on any machine.
    expect(performance.now() - startedAt).toBeLessThan(60_000)
    expect(summary).toMatchObject({ received: 2, acked: 2 })
    expect(harness.clock.monotonic()).toBe(7_200_000)
    harness.assertCounts({ acked: 2 })
    harness.assertSettled(2)
  })

  it('moves on past timers at a fraction of a millisecond', async () => {
    const harness = new Harness({ inlet: { leaseMs: 1_000 }, messages: [{}] })
    await harness.run(async () => {
      await harness.clock.sleep(5_000.3)
      return ack()
    })
    harness.assertCounts({ acked: 1 })
  })

  it('says what differs', async () => {
    const harness = new Harness({ messages: [{}, {}] })
    await harness.run(() => nak(new Error('x')))
    expect(() => harness.assertCounts({ acked: 2 })).toThrow(/the settlements: expected .*"acked":2.*"nak":2/s)
    expect(() => harness.assertCounts({ nak: 1 })).toThrow('the settlements')
    expect(() => harness.assertSettled(3)).toThrow('the number of settlements: expected 3, got 2')
  })

  it('applies the options of the inlet before it queues the messages', async () => {
    let n = 0
    const harness = new Harness({ inlet: { nextId: () => `m-${++n}` }, messages: [{}, {}] })
    await harness.run(() => ack())
    expect(harness.ledger.ids()).toEqual(['m-1', 'm-2'])
  })

  it('can be fed and run again', async () => {
    const harness = new Harness({ messages: [{}] })
    await harness.run(() => ack())
    harness.inlet.queue({}, {})
    await harness.runBatch((_ctx, messages) => messages.map(() => term(new Error('x'))))
    harness.assertCounts({ acked: 1, term: 2 })
  })

  it('fails when the run fails', async () => {
    const harness = new Harness({ hopper: { name: 'shop' } })
    await harness.hopper.close()
    await expect(harness.run(() => ack())).rejects.toMatchObject({ code: 'HOPPER_CLOSED' })
  })

  it('fails, and says so, when the run does not end', async () => {
    const harness = new Harness({ messages: [{}], watchdogMs: 50 })
    await expect(harness.run(() => new Promise(() => undefined))).rejects.toMatchObject({ code: 'HARNESS_STUCK' })
  })

  it('is not late because the process got no turn on a busy machine', async () => {
    const harness = new Harness({ messages: [{}], watchdogMs: 200 })
    await harness.run(() => {
      // Nothing is computed while it stands still.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 250)
      return ack()
    })
    harness.assertCounts({ acked: 1 })
  })

  it('takes a hopper and an inlet that were made before, with their clock', async () => {
    const clock = new FakeClock()
    const hopper = new Hopper({ clock })
    const inlet = new MemInlet({ clock })
    const harness = new Harness({ clock, hopper, inlet, messages: [{}] })
    await harness.run(() => ack())
    expect(inlet.ledger.length).toBe(1)
    expect(() => new Harness({ hopper })).toThrow('harness.clock')
    expect(() => new Harness({ hoper: {} } as object)).toThrow('Did you mean "hopper"?')
  })
})
