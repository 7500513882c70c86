import { describe, expect, it } from 'vitest'
import { ack, nak } from '../../../src/core/stream/result.js'
import { AlreadySettledError } from '../../../src/source/errors.js'
import { Hopper } from '../../../src/source/hopper/hopper.js'
import { SettleError, SettleTimeoutError } from '../../../src/source/loop/errors.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { listed, messageOf, scripted } from './support.js'

const three = () => listed([1, 2, 3].map((n) => messageOf({ cursor: { toString: () => String(n) } })))

// W11
describe('a settlement that fails', () => {
  // S42
  it('is tried three times with doubling waits, and then left to a redelivery; the run goes on', async () => {
    const clock = new FakeClock()
    const at: number[] = []
    const sub = scripted({
      next: listed([messageOf()]),
      settle: async () => {
        at.push(clock.monotonic())
        throw new Error('away')
      },
    })
    const errors: string[] = []
    const logger = { warn: () => undefined, error: (text: string) => errors.push(text) }
    const running = new Hopper({ clock, logger }).run(sub, () => ack())
    await clock.advance(1_000)
    expect(await running).toEqual({
      received: 1,
      acked: 0,
      dropped: 0,
      nak: 0,
      term: 0,
      settleFailures: 1,
      returned: 0,
      abandoned: 0,
    })
    expect(at).toEqual([0, 50, 150])
    expect(errors).toEqual([expect.stringContaining('could not be settled')])
    expect(clock.pending).toBe(0)
  })

  it('counts once it succeeds after all', async () => {
    const clock = new FakeClock()
    let tries = 0
    const sub = scripted({
      next: listed([messageOf()]),
      settle: async () => {
        tries += 1
        if (tries < 3) throw new Error('away')
      },
    })
    const running = new Hopper({ clock }).run(sub, () => nak(new Error('x')))
    await clock.advance(1_000)
    expect(await running).toMatchObject({ nak: 1, settleFailures: 0 })
  })

  it('is given up after its own time, with its own signal', async () => {
    const clock = new FakeClock()
    const reasons: unknown[] = []
    const sub = scripted({
      next: listed([messageOf()]),
      settle: (_m, _r, signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            reasons.push(signal.reason)
            reject(signal.reason)
          })
        }),
    })
    const options = { clock, settle: { timeoutMs: 1_000, attempts: 2, baseMs: 10 } }
    const running = new Hopper(options).run(sub, () => ack())
    await clock.advance(2_010)
    expect(await running).toMatchObject({ settleFailures: 1 })
    expect(reasons).toEqual([expect.any(SettleTimeoutError), expect.any(SettleTimeoutError)])
  })

  it('is a success when an unanswered try had got through', async () => {
    const clock = new FakeClock()
    let tries = 0
    const sub = scripted({
      next: listed([messageOf()]),
      settle: async () => {
        tries += 1
        if (tries === 1) return new Promise(() => undefined)
        throw new AlreadySettledError('orders', '1')
      },
    })
    const running = new Hopper({ clock, settle: { timeoutMs: 100 } }).run(sub, () => ack())
    await clock.advance(1_000)
    expect(await running).toMatchObject({ acked: 1, settleFailures: 0 })
  })

  it('is a failure when another consumer had settled before the first try', async () => {
    const clock = new FakeClock()
    const sub = scripted({
      next: listed([messageOf()]),
      settle: () => Promise.reject(new AlreadySettledError('orders', '1')),
    })
    const running = new Hopper({ clock, settle: { attempts: 1 } }).run(sub, () => ack())
    await clock.advance(1_000)
    expect(await running).toMatchObject({ acked: 0, settleFailures: 1 })
  })

  it('ends the run with SettleError when too many fail in a row', async () => {
    const clock = new FakeClock()
    const away = new Error('away')
    let fetched = 0
    const sub = scripted({
      next: async () => {
        fetched += 1
        return messageOf()
      },
      settle: () => Promise.reject(away),
    })
    const options = { clock, settle: { attempts: 1, maxConsecutiveFailures: 3 } }
    const running = new Hopper(options).run(sub, () => ack())
    const outcome = expect(running).rejects.toMatchObject({
      code: 'SETTLE_FAILED',
      cause: away,
      facts: { failures: 3 },
    })
    await clock.advance(10_000)
    await outcome
    await expect(running).rejects.toBeInstanceOf(SettleError)
    expect(fetched).toBeLessThan(200)
  })

  it('does not end the run when one succeeds in between', async () => {
    const clock = new FakeClock()
    let n = 0
    const sub = scripted({
      next: three(),
      settle: async () => {
        n += 1
        if (n !== 2) throw new Error('away')
      },
    })
    const options = { clock, settle: { attempts: 1, maxConsecutiveFailures: 2 } }
    const running = new Hopper(options).run(sub, () => ack())
    await clock.advance(1_000)
    expect(await running).toMatchObject({ acked: 1, settleFailures: 2 })
  })

  it('that throws instead of rejecting is a failure like any other', async () => {
    const clock = new FakeClock()
    const sub = {
      ...scripted({ next: listed([messageOf()]) }),
      settle: () => {
        throw new Error('away')
      },
    }
    const running = new Hopper({ clock }).run(sub, () => ack())
    await clock.advance(1_000)
    expect(await running).toMatchObject({ settleFailures: 1 })
  })
})

describe('settling', () => {
  // W8
  it('never uses the signal of the run', async () => {
    const clock = new FakeClock()
    const signals: AbortSignal[] = []
    const stop = new AbortController()
    const sub = scripted({
      next: three(),
      settle: async (_m, _r, signal) => void signals.push(signal),
    })
    const running = new Hopper({ clock }).run(
      sub,
      async () => {
        await clock.sleep(10)
        stop.abort()
        return ack()
      },
      { signal: stop.signal },
    )
    await clock.advance(10)
    await running
    expect(signals.length).toBeGreaterThan(0)
    expect(signals.every((signal) => !signal.aborted)).toBe(true)
  })
})
