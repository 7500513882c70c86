import { describe, expect, it } from 'vitest'
import { ack } from '../../../src/core/stream/result.js'
import { Hopper } from '../../../src/source/hopper/hopper.js'
import { MemInlet } from '../../../src/source/inlets/memory/mem-inlet.js'
import { LeaseLostError } from '../../../src/source/loop/errors.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { held, textOf } from './support.js'

async function grouped(options: ConstructorParameters<typeof Hopper>[0] = {}) {
  const clock = new FakeClock()
  const messages = ['a0', 'b0', 'a1', 'b1', 'a2', 'b2'].map((value) => ({ key: value[0]!, value }))
  const inlet = new MemInlet({ clock, consumerGroups: true, messages })
  const hopper = new Hopper({ clock, concurrency: 2, ...options })
  return { clock, inlet, hopper, sub: await inlet.subscribe({ topics: [], group: 'g' }) }
}

// W26
describe('a partition that is revoked', () => {
  it('is drained first: what runs is settled, what has not started is given back uncounted', async () => {
    const { clock, inlet, hopper, sub } = await grouped()
    const gate = held()
    const done: string[] = []
    const running = hopper.run(sub, async (_ctx, message) => {
      if (textOf(message) === 'a0') await gate.promise
      done.push(textOf(message))
      return ack()
    })
    await clock.settle()
    expect(done).toEqual(['b0', 'b1', 'b2'])
    let isRevoked = false
    const revoking = inlet.revoke('a').then(() => {
      isRevoked = true
    })
    await clock.settle()
    expect(isRevoked).toBe(false)
    gate.release()
    await clock.settle()
    await revoking
    expect(isRevoked).toBe(true)
    expect(done).toEqual(['b0', 'b1', 'b2', 'a0'])
    // Assigned to us again, it goes on where it was, with the same attempts.
    await inlet.assign('a')
    await clock.settle()
    expect(done).toEqual(['b0', 'b1', 'b2', 'a0', 'a1', 'a2'])
    expect(inlet.ledger.entries().every((entry) => entry.attempt === 1)).toBe(true)
    await hopper.close()
    expect(await running).toMatchObject({ acked: 6, returned: 2 })
    expect(clock.pending).toBe(0)
  })

  it('does not wait forever: what does not end in time is lost, and its result is not settled', async () => {
    const { clock, inlet, hopper, sub } = await grouped({ deadlineMs: 1_000, heartbeat: false })
    const gate = held()
    let reason: unknown
    const running = hopper.run(sub, async (ctx, message) => {
      if (textOf(message) !== 'a0') return ack()
      ctx.signal.addEventListener('abort', () => {
        reason = ctx.signal.reason
      })
      await gate.promise
      return ack()
    })
    await clock.settle()
    const revoking = inlet.revoke('a')
    await clock.advance(999)
    expect(reason).toBeUndefined()
    await clock.advance(1)
    await revoking
    expect(reason).toBeInstanceOf(LeaseLostError)
    gate.release()
    await clock.settle()
    expect(inlet.ledger.ids()).not.toContain('1')
    await hopper.close()
    expect(await running).toMatchObject({ acked: 3, returned: 2 })
  })

  it('takes partial batches along', async () => {
    const { clock, inlet, hopper, sub } = await grouped({ batch: { size: 5, maxWaitMs: 1_000 } })
    const calls: string[][] = []
    const running = hopper.runBatch(sub, (_ctx, messages) => {
      calls.push(messages.map(textOf))
      return messages.map(() => ack())
    })
    await clock.advance(500)
    await inlet.revoke('a')
    await clock.advance(500)
    expect(calls).toEqual([['b0', 'b1', 'b2']])
    await hopper.close()
    expect(await running).toMatchObject({ received: 6, acked: 3, returned: 3 })
    expect(clock.pending).toBe(0)
  })
})
