import { describe, expect, it } from 'vitest'
import { ack, nak } from '../../../src/core/stream/result.js'
import { DrainedError } from '../../../src/core/stream/stream-errors.js'
import { Hopper } from '../../../src/source/hopper/hopper.js'
import { MemInlet } from '../../../src/source/inlets/memory/mem-inlet.js'
import { ShutdownDeadlineError } from '../../../src/source/loop/errors.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { held, messageOf, numbered, scripted, textOf } from './support.js'

async function consuming(n: number, options: ConstructorParameters<typeof Hopper>[0] = {}) {
  const clock = new FakeClock()
  const inlet = new MemInlet({ clock, messages: numbered(n) })
  const hopper = new Hopper({ clock, ...options })
  const sub = await inlet.subscribe()
  return { clock, inlet, hopper, sub }
}

describe('an idle run', () => {
  // S43
  it('ends when the hopper is closed, however often', async () => {
    const { clock, hopper, sub } = await consuming(0)
    expect(hopper.state).toBe('idle')
    const running = hopper.run(sub, () => ack())
    await clock.settle()
    expect(hopper.state).toBe('running')
    const closed = Promise.all([hopper.close(), hopper.close()])
    expect(hopper.state).toBe('draining')
    await closed
    expect(hopper.state).toBe('closed')
    expect(await running).toMatchObject({ received: 0 })
    expect(clock.pending).toBe(0)
  })

  // S43
  it("ends when the caller's signal aborts, and the hopper can run again", async () => {
    const { clock, hopper, sub, inlet } = await consuming(0)
    const stop = new AbortController()
    const running = hopper.run(sub, () => ack(), { signal: stop.signal })
    await clock.settle()
    stop.abort(new Error('enough'))
    expect(await running).toMatchObject({ received: 0 })
    expect(hopper.state).toBe('idle')
    inlet.queue({ value: 'x' })
    await sub.close()
    expect(await hopper.run(sub, () => ack())).toMatchObject({ acked: 1 })
    expect(clock.pending).toBe(0)
  })

  it('fetches nothing when the signal had aborted before', async () => {
    const { hopper, sub } = await consuming(3)
    expect(await hopper.run(sub, () => ack(), { signal: AbortSignal.abort() })).toMatchObject({ received: 0 })
  })
})

describe('a closed hopper', () => {
  it('ends a receive that was still subscribing, without a message and without an error', async () => {
    const { hopper, inlet } = await consuming(1)
    const received = hopper.receive(inlet, { topics: [] }, () => ack())
    await hopper.close()
    expect(await received).toMatchObject({ received: 0 })
    expect(hopper.state).toBe('closed')
  })

  it('refuses to run, and says so', async () => {
    const { hopper, sub, inlet } = await consuming(1)
    await hopper.close()
    await expect(hopper.run(sub, () => ack())).rejects.toMatchObject({ code: 'HOPPER_CLOSED' })
    await expect(hopper.runBatch(sub, () => [])).rejects.toMatchObject({ code: 'HOPPER_CLOSED' })
    await expect(hopper.receive(inlet, { topics: [] }, () => ack())).rejects.toMatchObject({ code: 'HOPPER_CLOSED' })
  })

  it('refuses a deadline that is none', async () => {
    const { hopper } = await consuming(0)
    await expect(hopper.close({ deadlineMs: Number.NaN })).rejects.toThrow('close.deadlineMs must be')
  })
})

describe('receive', () => {
  it('subscribes, runs and closes the subscription', async () => {
    const { hopper, inlet } = await consuming(2)
    const log: string[] = []
    const watched = {
      ...inlet,
      capabilities: inlet.capabilities,
      close: () => inlet.close(),
      subscribe: async () => {
        const sub = await inlet.subscribe()
        await sub.close()
        log.push('subscribed')
        return Object.assign(Object.create(sub), {
          next: sub.next.bind(sub),
          settle: sub.settle.bind(sub),
          capability: sub.capability.bind(sub),
          close: async () => void log.push('closed'),
        })
      },
    }
    expect(await hopper.receive(watched, { topics: ['orders'] }, () => ack())).toMatchObject({ acked: 2 })
    expect(await hopper.receiveBatch(watched, { topics: ['orders'] }, () => [])).toMatchObject({ received: 0 })
    expect(log).toEqual(['subscribed', 'closed', 'subscribed', 'closed'])
  })

  it('rejects with the error of a failing subscribe, unchanged', async () => {
    const { hopper } = await consuming(0)
    const error = new Error('no such topic')
    const inlet = {
      capabilities: new Set<never>(),
      subscribe: async () => Promise.reject(error),
      close: async () => {},
    }
    await expect(hopper.receive(inlet, { topics: ['x'] }, () => ack())).rejects.toBe(error)
  })

  it('rejects with the reason of the run, also when the close fails too', async () => {
    const { hopper } = await consuming(0)
    const error = new Error('broke')
    const sub = {
      ...scripted({ next: () => Promise.reject(error) }),
      close: () => Promise.reject(new Error('and this')),
    }
    const inlet = { capabilities: new Set<never>(), subscribe: async () => sub, close: async () => {} }
    await expect(hopper.receive(inlet, { topics: ['x'] }, () => ack())).rejects.toBe(error)
  })
})

// W8
describe('a shutdown with a handler running', () => {
  // S46
  it('lets it finish in time, with its signal untouched, and settles its result', async () => {
    const { clock, hopper, sub, inlet } = await consuming(1)
    let signal: AbortSignal | undefined
    const running = hopper.run(sub, async (ctx) => {
      signal = ctx.signal
      await clock.sleep(500)
      return ack()
    })
    await clock.advance(100)
    const closed = hopper.close({ deadlineMs: 1_000 })
    await clock.advance(399)
    expect(inlet.ledger.length).toBe(0)
    await clock.advance(1)
    await closed
    expect(signal?.aborted).toBe(false)
    expect(inlet.ledger.entries()[0]).toMatchObject({ result: { action: 'ack' }, atMs: clock.now() })
    expect(await running).toMatchObject({ acked: 1, abandoned: 0 })
    expect(clock.pending).toBe(0)
  })

  // S46
  it('aborts its signal at the deadline, waits the grace, and then leaves it', async () => {
    const { clock, hopper, sub, inlet } = await consuming(1)
    let abortedAt: number | undefined
    let reason: unknown
    let endedAt: number | undefined
    const running = hopper
      .run(sub, (ctx) => {
        ctx.signal.addEventListener('abort', () => {
          abortedAt = clock.monotonic()
          reason = ctx.signal.reason
        })
        return new Promise(() => undefined)
      })
      .finally(() => {
        endedAt = clock.monotonic()
      })
    await clock.advance(100)
    void hopper.close({ deadlineMs: 1_000 })
    await clock.advance(10_000)
    expect(abortedAt).toBe(1_100)
    expect(reason).toBeInstanceOf(ShutdownDeadlineError)
    expect(endedAt).toBe(2_100)
    expect(await running).toMatchObject({ received: 1, abandoned: 1, returned: 0 })
    // It is given back immediately, as an attempt that counts: a handler that never ends must reach the delivery limit.
    expect(inlet.ledger.entries()).toMatchObject([{ result: { action: 'nak', error: reason }, attempt: 1 }])
    expect(clock.pending).toBe(0)
  })

  it('settles what ends within the grace', async () => {
    const { clock, hopper, sub } = await consuming(1)
    const running = hopper.run(sub, async (ctx) => {
      await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
      await clock.sleep(900)
      return nak(ctx.signal.reason)
    })
    await clock.settle()
    void hopper.close({ deadlineMs: 0 })
    await clock.advance(900)
    expect(await running).toMatchObject({ nak: 1, abandoned: 0 })
  })

  it('discards what an abandoned handler returns in the end', async () => {
    const { clock, hopper, sub, inlet } = await consuming(1)
    const gate = held()
    const running = hopper.run(sub, async () => {
      await gate.promise
      return ack()
    })
    await clock.settle()
    void hopper.close({ deadlineMs: 10 })
    await clock.advance(2_000)
    expect(await running).toMatchObject({ abandoned: 1, acked: 0 })
    gate.release()
    await clock.settle()
    expect(inlet.ledger.counts()).toMatchObject({ acked: 0, nak: 1 })
  })

  it('can be hurried by a second close, but not put off', async () => {
    const { clock, hopper, sub } = await consuming(1, { abortGraceMs: 0 })
    let abortedAt: number | undefined
    const running = hopper.run(sub, (ctx) => {
      ctx.signal.addEventListener('abort', () => {
        abortedAt = clock.monotonic()
      })
      return new Promise(() => undefined)
    })
    await clock.settle()
    void hopper.close({ deadlineMs: 10_000 })
    await clock.advance(100)
    void hopper.close({ deadlineMs: 50_000 })
    void hopper.close({ deadlineMs: 200 })
    await clock.advance(5_000)
    expect(abortedAt).toBe(300)
    expect(await running).toMatchObject({ abandoned: 1 })
  })

  it('tries to settle as often as ever while there is time', async () => {
    const clock = new FakeClock()
    let tries = 0
    const sub = scripted({
      next: async (signal) => {
        if (tries === 0 && !isTaken) {
          isTaken = true
          return messageOf()
        }
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
      settle: async () => {
        tries += 1
        if (tries < 3) throw new Error('away')
      },
    })
    let isTaken = false
    const hopper = new Hopper({ clock })
    const running = hopper.run(sub, async () => {
      await clock.sleep(100)
      return ack()
    })
    await clock.settle()
    void hopper.close()
    await clock.advance(1_000)
    expect(tries).toBe(3)
    expect(await running).toMatchObject({ acked: 1, settleFailures: 0 })
  })
})

// W9
describe('a shutdown with messages that have not started', () => {
  it('gives them back to their place, without an attempt', async () => {
    const { clock, hopper, sub, inlet } = await consuming(10)
    const gate = held()
    const running = hopper.run(sub, async () => {
      await gate.promise
      return ack()
    })
    await clock.settle()
    void hopper.close()
    await clock.settle()
    gate.release()
    await clock.settle()
    expect(await running).toMatchObject({ received: 10, acked: 1, returned: 9, abandoned: 0 })
    const again = await inlet.subscribe()
    const seen: [string, number | undefined][] = []
    for (let i = 0; i < 9; i += 1) {
      const message = await again.next({ signal: new AbortController().signal })
      seen.push([textOf(message), message.deliveryCount])
    }
    expect(seen).toEqual(Array.from({ length: 9 }, (_, i) => [String(i + 1), 1]))
  })

  it('naks them immediately where they cannot be given back', async () => {
    const clock = new FakeClock()
    let n = 0
    const sub = scripted({
      next: async (signal) => {
        n += 1
        if (n <= 3) return messageOf({ cursor: { toString: () => String(n) } })
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    const hopper = new Hopper({ clock })
    const running = hopper.run(sub, async () => {
      await clock.sleep(100)
      return ack()
    })
    await clock.settle()
    void hopper.close()
    await clock.advance(100)
    expect(await running).toMatchObject({ received: 3, acked: 1, returned: 2 })
    expect(sub.settled.map(({ result }) => [result.action, result.requeueMs])).toEqual([
      ['nak', 0],
      ['nak', 0],
      ['ack', 0],
    ])
  })

  it('also gives back what a fetch brings after the stop', async () => {
    const clock = new FakeClock()
    const late = held()
    let isFirst = true
    const sub = scripted({
      next: async () => {
        if (!isFirst) throw new DrainedError()
        isFirst = false
        await late.promise
        return messageOf()
      },
    })
    const hopper = new Hopper({ clock })
    const running = hopper.run(sub, () => ack())
    await clock.settle()
    void hopper.close()
    await clock.settle()
    late.release()
    expect(await running).toMatchObject({ received: 1, acked: 0, returned: 1 })
    expect(sub.settled.map(({ result }) => result.action)).toEqual(['nak'])
  })

  it('ends at the deadline although a fetch never returns', async () => {
    const clock = new FakeClock()
    const hopper = new Hopper({ clock, abortGraceMs: 0 })
    const running = hopper.run(scripted({ next: () => new Promise(() => undefined) }), () => ack())
    await clock.settle()
    void hopper.close({ deadlineMs: 100 })
    await clock.advance(100)
    expect(await running).toMatchObject({ received: 0 })
  })

  it('processes all that is queued when the source is drained by itself', async () => {
    const { clock, hopper, sub } = await consuming(10)
    await sub.close()
    const running = hopper.run(sub, async () => {
      await clock.sleep(100)
      return ack()
    })
    await clock.advance(1_000)
    expect(await running).toMatchObject({ received: 10, acked: 10, returned: 0 })
  })

  it('also ends at the deadline when giving back never succeeds', async () => {
    const clock = new FakeClock()
    let n = 0
    const sub = scripted({
      next: async (signal) => {
        n += 1
        if (n <= 3) return messageOf()
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
      settle: () => new Promise(() => undefined),
    })
    const hopper = new Hopper({ clock, abortGraceMs: 50 })
    const running = hopper.run(sub, () => new Promise(() => undefined))
    await clock.settle()
    void hopper.close({ deadlineMs: 100 })
    await clock.advance(300)
    expect(await running).toMatchObject({ received: 3, abandoned: 3 })
  })
})
