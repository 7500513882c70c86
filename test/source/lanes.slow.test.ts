import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ack } from '../../src/core/stream/result.js'
import { type LaneOptions, Lanes } from '../../src/source/hopper/lanes.js'
import { Delivery } from '../../src/source/loop/delivery.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { Harness } from '../../src/testing/harness.js'
import { textOf } from './hopper/support.js'

interface Item {
  readonly key: string
}

/** Lanes with a hand on every run. */
function lanesOf(options: Partial<LaneOptions<Item>> = {}) {
  const lanes = new Lanes<Item>({
    clock: new FakeClock(),
    concurrency: 4,
    maxInFlight: 1_000_000,
    maxLanes: 4_096,
    laneOf: ({ key }) => key,
    ...options,
  })
  const running: { readonly keys: readonly string[]; end(): Promise<void> }[] = []
  lanes.attach((deliveries, _executed, settled) => {
    const run = {
      keys: deliveries.map(({ item }) => item.key),
      async end() {
        running.splice(running.indexOf(run), 1)
        settled?.()
        // The lane is notified a turn later.
        await Promise.resolve()
        await Promise.resolve()
      },
    }
    running.push(run)
  })
  const offer = (...keys: string[]) => {
    for (const key of keys) lanes.offer(new Delivery({ key }, 0))
  }
  return { lanes, running, offer, now: () => running.flatMap((run) => run.keys) }
}

describe('lanes', () => {
  // W30
  it('are exact: keys whose hashes would collide run side by side', () => {
    const { offer, now } = lanesOf()
    // With FNV-1a modulo 4096 the first two share lane 3262, and the third shares lane 0 with what has no key.
    offer('key-58', 'key-126', 'key-450', '')
    expect(now()).toEqual(['key-58', 'key-126', 'key-450', ''])
  })

  // W30
  it('are shared only beyond maxLanes, and a key is never on two of them', async () => {
    const { lanes, offer, running, now } = lanesOf({ concurrency: 10, maxLanes: 2 })
    offer('a', 'b', 'c', 'c')
    expect(lanes.size).toBe(2)
    expect(now()).toEqual(['a', 'b'])
    // Whichever lane c shares: as long as it is there, everything of c goes there, also when the other lane is gone.
    const shared = async (): Promise<void> => {
      while (running.length > 0 && !now().includes('c')) await running[0]!.end()
    }
    await shared()
    expect(now().filter((key) => key === 'c')).toEqual(['c'])
    offer('c')
    expect(now().filter((key) => key === 'c')).toEqual(['c'])
    while (running.length > 0) await running[0]!.end()
    expect(lanes.size).toBe(0)
    // Quiet again, it gets its own lane.
    offer('c', 'd')
    expect(now()).toEqual(['c', 'd'])
  })

  it('take turns, one run each', async () => {
    const { offer, running, now } = lanesOf({ concurrency: 1 })
    offer('a', 'a', 'a', 'b', 'b')
    const order: string[] = []
    while (running.length > 0) {
      order.push(...now())
      await running[0]!.end()
    }
    expect(order).toEqual(['a', 'b', 'a', 'b', 'a'])
  })

  it('give back what has not started when they are drained, and start nothing any more', async () => {
    const { lanes, offer, running, now } = lanesOf({ concurrency: 1 })
    offer('a', 'a', 'b')
    const left = lanes.drain()
    expect(left.map(({ item }) => item.key)).toEqual(['a', 'b'])
    await running[0]!.end()
    expect(now()).toEqual([])
    expect(lanes.size).toBe(0)
  })

  it('call for more when there is room again', async () => {
    const { lanes, offer, running } = lanesOf({ concurrency: 2, maxInFlight: 3 })
    let calls = 0
    lanes.onRoom(() => {
      calls += 1
    })
    offer('a', 'b', 'c')
    expect(lanes.capacity()).toBe(0)
    await running[0]!.end()
    expect(calls).toBe(1)
    expect(lanes.capacity()).toBe(1)
  })

  it('cost nothing once a million keys are quiet', async () => {
    const lanes = new Lanes<Item>({
      clock: new FakeClock(),
      concurrency: 64,
      maxInFlight: 1_024,
      maxLanes: 512,
      laneOf: ({ key }) => key,
    })
    lanes.attach((_deliveries, _executed, settled) => settled?.())
    const pass = async (name: string, keys: number) => {
      for (let i = 0; i < keys; ) {
        for (let room = lanes.capacity(); room > 0; room -= 1, i += 1) {
          lanes.offer(new Delivery({ key: `${name}-${i}` }, 0))
        }
        await Promise.resolve()
      }
      while (lanes.size > 0) await Promise.resolve()
    }
    await pass('warm-up', 10_000)
    const before = heapBytes()
    await pass('measured', 1_000_000)
    expect(lanes.size).toBe(0)
    // A million keys of about 16 bytes each: keeping them would take tens of megabytes.
    expect(heapBytes() - before).toBeLessThan(4 * 1024 * 1024)
  })
})

/** What is in use after a collection. */
function heapBytes(): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  return process.memoryUsage().heapUsed
}

describe('any messages, handlers and limits', () => {
  it('keep the promises: in order per key, never more at the same time than allowed, each settled exactly once', async () => {
    const message = fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd', 'e'), ms: fc.integer({ min: 0, max: 4 }) })
    const limits = fc.record({
      concurrency: fc.integer({ min: 1, max: 6 }),
      maxInFlight: fc.integer({ min: 1, max: 12 }),
      maxLanes: fc.integer({ min: 1, max: 5 }),
    })
    const property = fc.asyncProperty(
      fc.array(message, { maxLength: 20 }),
      limits,
      fc.boolean(),
      async (messages, hopper, batched) => {
        const harness = new Harness({
          clock: new FakeClock({ quietTurns: 2 }),
          hopper,
          inlet: { batched },
          messages: messages.map(({ key, ms }, n) => ({ key, value: `${n}/${ms}` })),
        })
        let inside = 0
        let inFlight = 0
        const seen = new Map<string, number[]>()
        await harness.run(async (_ctx, m) => {
          const [n = '', ms = ''] = textOf(m).split('/')
          inside += 1
          inFlight = Math.max(inFlight, inside)
          if (ms !== '0') await harness.clock.sleep(Number(ms))
          seen.set(m.partitionKey, [...(seen.get(m.partitionKey) ?? []), Number(n)])
          inside -= 1
          return ack()
        })
        expect(inFlight).toBeLessThanOrEqual(Math.min(hopper.concurrency, hopper.maxInFlight))
        for (const order of seen.values()) expect(order).toEqual(order.toSorted((a, b) => a - b))
        expect(harness.ledger.ids().toSorted()).toEqual(messages.map((_, i) => String(i + 1)).toSorted())
        harness.assertCounts({ acked: messages.length })
        expect(harness.clock.pending).toBe(0)
      },
    )
    await fc.assert(property, { numRuns: 1_000 })
  })
})
