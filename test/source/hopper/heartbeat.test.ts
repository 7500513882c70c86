import { describe, expect, it } from 'vitest'
import { ack, nak } from '../../../src/core/stream/result.js'
import { DrainedError } from '../../../src/core/stream/stream-errors.js'
import { Hopper } from '../../../src/source/hopper/hopper.js'
import { MemInlet, type MemInletOptions } from '../../../src/source/inlets/memory/mem-inlet.js'
import type { Capabilities, Subscription } from '../../../src/source/inlets/subscription.js'
import { LeaseLostError } from '../../../src/source/loop/errors.js'
import type { Message } from '../../../src/source/message/message.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { counting, held, numbered, scripted } from './support.js'

/** A memory subscription whose extends are watched, and may be replaced. */
async function leased(n: number, extend?: Partial<Capabilities['leaseExtender']>, options: MemInletOptions = {}) {
  const clock = new FakeClock()
  const inlet = new MemInlet({ clock, messages: numbered(n), nextId: counting(), ...options })
  const sub = await inlet.subscribe()
  const real = sub.capability('leaseExtender')!
  const beats: { readonly atMs: number; readonly messages: number }[] = []
  const extender: Capabilities['leaseExtender'] = {
    leaseMs: real.leaseMs,
    extend: real.extend,
    extendMany: (messages) => {
      beats.push({ atMs: clock.monotonic(), messages: messages.length })
      return real.extendMany!(messages)
    },
    ...extend,
  }
  const watched: Subscription = {
    next: (o) => sub.next(o),
    settle: (m, r, o) => sub.settle(m, r, o),
    close: () => sub.close(),
    capability: (name) => (name === 'leaseExtender' ? (extender as never) : sub.capability(name)),
  }
  return { clock, inlet, sub: watched, beats, real }
}

// W12
describe('a handler that takes longer than a third of its lease', () => {
  // S47
  it('has it extended every third, exactly as often as needed', async () => {
    const { clock, inlet, sub, beats } = await leased(1)
    await sub.close()
    const running = new Hopper({ clock }).run(sub, async () => {
      await clock.sleep(25_000)
      return ack()
    })
    await clock.advance(60_000)
    expect(await running).toMatchObject({ acked: 1 })
    expect(beats).toEqual([
      { atMs: 10_000, messages: 1 },
      { atMs: 20_000, messages: 1 },
    ])
    expect(inlet.ledger.entries()[0]!.atMs - clock.now()).toBe(25_000 - 60_000)
    expect(clock.pending).toBe(0)
  })

  it('runs for ten leases on one delivery', async () => {
    const { clock, inlet, sub } = await leased(1)
    await sub.close()
    let runs = 0
    const running = new Hopper({ clock }).run(sub, async () => {
      runs += 1
      await clock.sleep(300_000)
      return ack()
    })
    await clock.advance(300_000)
    expect(await running).toMatchObject({ received: 1, acked: 1 })
    expect(runs).toBe(1)
    expect(inlet.ledger.entries()[0]?.attempt).toBe(1)
  })

  it('extends also what is still queued, and a hundred messages in one call per beat', async () => {
    const { clock, sub, beats } = await leased(100)
    await sub.close()
    const running = new Hopper({ clock, maxInFlight: 200 }).run(sub, async () => {
      await clock.sleep(1_000)
      return ack()
    })
    await clock.advance(40_000)
    expect(beats).toEqual([
      { atMs: 10_000, messages: 91 },
      { atMs: 20_000, messages: 81 },
      { atMs: 30_000, messages: 71 },
      { atMs: 40_000, messages: 61 },
    ])
    await clock.advance(60_000)
    expect(await running).toMatchObject({ received: 100, acked: 100 })
  })

  it('extends one by one where the source knows no other way', async () => {
    const one: number[] = []
    const { clock, sub, real } = await leased(3)
    const extender = sub.capability('leaseExtender')!
    const { extendMany: _none, ...single } = extender
    await sub.close()
    const plain: Subscription = {
      ...sub,
      capability: (name) =>
        name === 'leaseExtender'
          ? ({
              ...single,
              extend: (m: Message) => {
                one.push(clock.monotonic())
                return real.extend(m)
              },
            } as never)
          : sub.capability(name),
    }
    const running = new Hopper({ clock, concurrency: 3, laneOf: (m) => m.cursor.toString() }).run(plain, async () => {
      await clock.sleep(15_000)
      return ack()
    })
    await clock.advance(15_000)
    expect(await running).toMatchObject({ acked: 3 })
    expect(one).toEqual([10_000, 10_000, 10_000])
  })

  it('loses it without a heartbeat: the message is delivered again, and the late result does not count', async () => {
    const { clock, inlet, sub, beats } = await leased(1)
    let runs = 0
    const hopper = new Hopper({ clock, heartbeat: false, concurrency: 2, laneOf: (m) => String(m.deliveryCount) })
    const running = hopper.run(sub, async () => {
      runs += 1
      await clock.sleep(runs === 1 ? 40_000 : 5_000)
      return ack()
    })
    await clock.advance(40_000)
    expect(beats).toEqual([])
    expect(inlet.ledger.entries()).toMatchObject([{ attempt: 2, result: { action: 'ack' } }])
    await hopper.close()
    expect(await running).toMatchObject({ received: 2, acked: 1 })
  })
})

describe('a lease that is lost', () => {
  it("aborts the message's signal with LeaseLostError, and its result is not settled", async () => {
    const { clock, inlet, sub } = await leased(1, { extendMany: async (messages) => messages.map(() => false) })
    await sub.close()
    let reason: unknown
    const running = new Hopper({ clock }).run(sub, async (ctx) => {
      await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
      reason = ctx.signal.reason
      return ack()
    })
    await clock.advance(10_000)
    expect(await running).toMatchObject({ received: 1, acked: 0, nak: 0 })
    expect(reason).toBeInstanceOf(LeaseLostError)
    expect(inlet.ledger.length).toBe(0)
  })

  it('while its message was queued keeps the handler from running at all', async () => {
    const lost = new Set<string>(['2'])
    const setup = await leased(3, {
      extendMany: async (messages) => {
        const kept = await setup.real.extendMany!(messages)
        return messages.map((m, i) => !lost.has(m.cursor.toString()) && kept[i])
      },
    })
    const { clock, inlet, sub } = setup
    await sub.close()
    const ran: string[] = []
    const running = new Hopper({ clock }).run(sub, async (_ctx, message) => {
      ran.push(message.cursor.toString())
      await clock.sleep(15_000)
      return ack()
    })
    await clock.advance(60_000)
    expect(await running).toMatchObject({ received: 3, acked: 2 })
    expect(ran).toEqual(['1', '3'])
    expect(inlet.ledger.ids()).toEqual(['1', '3'])
  })

  it('is noticed when the backend says so at the settlement', async () => {
    const { clock, inlet, sub } = await leased(1, { extendMany: async (messages) => messages.map(() => true) })
    await sub.close()
    const running = new Hopper({ clock }).run(sub, async () => {
      await clock.sleep(31_000)
      return ack()
    })
    await clock.advance(31_000)
    expect(await running).toMatchObject({ acked: 0, settleFailures: 0 })
    expect(inlet.ledger.length).toBe(0)
  })

  it('is assumed once nothing could be extended for a whole lease', async () => {
    const { clock, sub } = await leased(1, { extendMany: () => Promise.reject(new Error('away')) })
    await sub.close()
    let abortedAt: number | undefined
    const running = new Hopper({ clock }).run(sub, async (ctx) => {
      await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
      abortedAt = clock.monotonic()
      return nak(ctx.signal.reason)
    })
    await clock.advance(30_000)
    expect(abortedAt).toBe(30_000)
    expect(await running).toMatchObject({ nak: 0 })
  })

  it('is not assumed for one failed beat', async () => {
    let beats = 0
    const setup = await leased(1, {
      extendMany: async (messages) => {
        beats += 1
        if (beats === 1) throw new Error('away')
        return setup.real.extendMany!(messages)
      },
    })
    const { clock, sub } = setup
    await sub.close()
    const running = new Hopper({ clock }).run(sub, async () => {
      await clock.sleep(50_000)
      return ack()
    })
    await clock.advance(50_000)
    expect(await running).toMatchObject({ acked: 1 })
  })

  it('does not stop heartbeats: one that is never answered is not the last', async () => {
    let beats = 0
    const setup = await leased(2, {
      extendMany: async (messages) => {
        beats += 1
        if (beats === 1) return new Promise(() => undefined)
        return setup.real.extendMany!(messages)
      },
    })
    const { clock, sub } = setup
    const hopper = new Hopper({ clock, maxInFlight: 1 })
    let runs = 0
    const running = hopper.run(sub, async (ctx) => {
      runs += 1
      await clock.sleep(100_000, ctx.signal)
      return ack()
    })
    // The first run is lost with the unanswered beat; the next one lives on later beats.
    await clock.advance(250_000)
    expect(runs).toBeGreaterThan(1)
    void hopper.close()
    await clock.advance(100_000)
    expect((await running).acked).toBeGreaterThan(0)
  })
})

describe('ctx.extendLease', () => {
  it('is there where the subscription can extend, and extends', async () => {
    const { clock, inlet, sub } = await leased(1)
    await sub.close()
    const running = new Hopper({ clock, heartbeat: false }).run(sub, async (ctx) => {
      await clock.sleep(20_000)
      await ctx.extendLease!()
      await clock.sleep(20_000)
      return ack()
    })
    await clock.advance(40_000)
    expect(await running).toMatchObject({ acked: 1 })
    expect(inlet.ledger.counts()).toMatchObject({ acked: 1 })
  })

  it('rejects once the lease is lost, and the run is over', async () => {
    const { clock, inlet, sub } = await leased(1)
    await sub.close()
    const running = new Hopper({ clock, heartbeat: false }).run(sub, async (ctx) => {
      await clock.sleep(31_000)
      await expect(ctx.extendLease!()).rejects.toBeInstanceOf(LeaseLostError)
      expect(ctx.signal.reason).toBeInstanceOf(LeaseLostError)
      return ack()
    })
    await clock.advance(31_000)
    expect(await running).toMatchObject({ acked: 0, received: 1 })
    expect(inlet.ledger.length).toBe(0)
  })

  it('is absent where it cannot', async () => {
    const clock = new FakeClock()
    const inlet = new MemInlet({ clock, redeliver: false, messages: numbered(1) })
    const sub = await inlet.subscribe()
    await sub.close()
    await new Hopper({ clock }).run(sub, (ctx) => {
      expect(ctx.extendLease).toBeUndefined()
      return ack()
    })
    expect(inlet.ledger.counts()).toMatchObject({ acked: 1 })
  })

  it('extends every member of a batch', async () => {
    const { clock, inlet, sub } = await leased(3)
    await sub.close()
    const hopper = new Hopper({ clock, heartbeat: false, batch: { size: 3 } })
    const running = hopper.runBatch(sub, async (ctx, messages) => {
      await clock.sleep(20_000)
      await ctx.extendLease!()
      await clock.sleep(20_000)
      return messages.map(() => ack())
    })
    await clock.advance(40_000)
    expect(await running).toMatchObject({ acked: 3 })
    expect(inlet.ledger.length).toBe(3)
  })
})

describe('a heartbeat', () => {
  it('goes on during a shutdown, until the handler is done', async () => {
    const { clock, sub, beats } = await leased(1)
    const hopper = new Hopper({ clock, deadlineMs: 100_000 })
    const gate = held()
    const running = hopper.run(sub, async () => {
      await gate.promise
      return ack()
    })
    await clock.settle()
    void hopper.close()
    await clock.advance(35_000)
    gate.release()
    expect(await running).toMatchObject({ acked: 1 })
    expect(beats.map((beat) => beat.atMs)).toEqual([10_000, 20_000, 30_000])
    expect(clock.pending).toBe(0)
  })

  it('is not sent for a message without a lease', async () => {
    const clock = new FakeClock()
    const hopper = new Hopper({ clock })
    await hopper.run(scripted({ next: () => Promise.reject(new DrainedError()) }), () => ack())
    expect(clock.pending).toBe(0)
  })
})
