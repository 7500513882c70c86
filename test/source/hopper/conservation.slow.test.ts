import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ack, nakAfter, type Result } from '../../../src/core/stream/result.js'
import { Hopper } from '../../../src/source/hopper/hopper.js'
import { MemInlet } from '../../../src/source/inlets/memory/mem-inlet.js'
import type { Message } from '../../../src/source/message/message.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { Harness } from '../../../src/testing/harness.js'
import { counting, textOf } from './support.js'

/** What a handler does with one delivery. */
const behaviour = fc.record({
  ms: fc.integer({ min: 0, max: 40 }),
  then: fc.constantFrom('ack', 'ack', 'nak', 'throw', 'hang'),
})

const scenario = fc.record({
  messages: fc.array(
    fc.record({ key: fc.constantFrom('a', 'b', 'c'), script: fc.array(behaviour, { maxLength: 3 }) }),
    {
      minLength: 1,
      maxLength: 12,
    },
  ),
  concurrency: fc.integer({ min: 1, max: 4 }),
  maxInFlight: fc.integer({ min: 1, max: 8 }),
  ordering: fc.constantFrom('relaxed' as const, 'strict' as const),
  batched: fc.boolean(),
  leaseMs: fc.constantFrom(15, 60, 30_000),
  heartbeat: fc.boolean(),
  closeAtMs: fc.integer({ min: 0, max: 120 }),
  deadlineMs: fc.integer({ min: 0, max: 60 }),
})

describe('whatever handlers do and whenever the process is stopped', () => {
  it('no message is lost, and none is settled for good twice', async () => {
    const property = fc.asyncProperty(scenario, async (given) => {
      const clock = new FakeClock({ quietTurns: 2 })
      const inlet = new MemInlet({
        nextId: counting(),
        clock,
        batched: given.batched,
        leaseMs: given.leaseMs,
        drainRedeliveries: true,
        messages: given.messages.map(({ key }, n) => ({ key, value: String(n) })),
      })
      const { concurrency, maxInFlight, ordering, heartbeat, deadlineMs } = given
      const options = { clock, concurrency, maxInFlight, ordering, heartbeat, maxDeliveries: 1_000, lagIntervalMs: 0 }

      // The first process runs the script of each message, and is stopped in the middle of it.
      const runs = given.messages.map(() => 0)
      const scripted = async (_ctx: unknown, message: Message): Promise<Result> => {
        const n = Number(textOf(message))
        const step = given.messages[n]?.script[runs[n] ?? 0]
        runs[n] = (runs[n] ?? 0) + 1
        if (step === undefined) return ack()
        if (step.ms > 0) await clock.sleep(step.ms)
        if (step.then === 'hang') return new Promise(() => undefined)
        if (step.then === 'throw') throw new Error('scripted')
        return step.then === 'nak' ? nakAfter(step.ms, new Error('scripted')) : ack()
      }
      const first = new Hopper({ ...options, deadlineMs, abortGraceMs: 5 })
      const running = first.run(await inlet.subscribe(), scripted)
      await clock.advance(given.closeAtMs)
      void first.close()
      await clock.advance(deadlineMs + 5 + 5)
      const summary = await running
      const { received, acked, nak, term, dropped, settleFailures, returned, abandoned } = summary
      expect(received).toBeGreaterThanOrEqual(acked + nak + term + dropped + settleFailures + returned + abandoned)

      // The next one finds all that is left.
      const second = new Hopper({ ...options, heartbeat: true })
      const sub = await inlet.subscribe()
      await sub.close()
      let hasEnded = false
      const rest = second
        .run(sub, () => ack())
        .then(() => {
          hasEnded = true
        })
      for (let i = 0; i < 20 && !hasEnded; i += 1) await clock.advance(given.leaseMs)
      await rest

      const ends = inlet.ledger.entries().filter(({ result }) => result.action === 'ack' || result.action === 'term')
      expect(ends.map(({ id }) => id).toSorted()).toEqual(given.messages.map((_, n) => String(n + 1)).toSorted())
      expect(await sub.capability('lagReporter')!.lag()).toBe(0)
      // Handlers that were left behind may still sleep; nothing else does.
      await clock.advance(100)
      expect(clock.pending).toBe(0)
    })
    await fc.assert(property, { numRuns: 1_000 })
  })

  it('strict lanes acknowledge each key in order, whatever fails on the way', async () => {
    const step = fc.record({
      key: fc.constantFrom('a', 'b', 'c'),
      naks: fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 3 }),
    })
    const property = fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 15 }),
      fc.integer({ min: 1, max: 4 }),
      async (steps, concurrency) => {
        const harness = new Harness({
          clock: new FakeClock({ quietTurns: 2 }),
          hopper: { concurrency, ordering: 'strict' },
          messages: steps.map(({ key }, n) => ({ key, value: String(n) })),
        })
        const left = steps.map(({ naks }) => [...naks])
        await harness.run((_ctx, message) => {
          const delay = left[Number(textOf(message))]?.shift()
          return delay === undefined ? ack() : nakAfter(delay, new Error('scripted'))
        })
        harness.assertCounts({ acked: steps.length })
        for (const key of ['a', 'b', 'c']) {
          const ids = harness.ledger.ids().filter((id) => steps[Number(id) - 1]?.key === key)
          expect(ids).toEqual(ids.toSorted((x, y) => Number(x) - Number(y)))
        }
      },
    )
    await fc.assert(property, { numRuns: 1_000 })
  })
})
