import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { memoryQueue } from '../../src/backends/memory/queue/memory-queue.js'
import { memoryStore } from '../../src/backends/memory/store.js'
import type { PulledWork, Queue, Store } from '../../src/ports/ports.js'
import { QueueModel } from '../model/queue-model.js'
import { StoreModel } from '../model/store-model.js'

const START = Date.UTC(2026, 0, 1)
const ms = fc.constantFrom(0, 1000, 2000, 5000, 60_000)

// ── queues ──

const queueStep = fc.oneof(
  fc.record({
    do: fc.constant('push' as const),
    delay: ms,
    priority: fc.integer({ min: -2, max: 2 }),
    dedupeKey: fc.option(fc.constantFrom('a', 'b', 'c'), { nil: undefined }),
  }),
  fc.record({ do: fc.constant('pop' as const), max: fc.integer({ min: 0, max: 4 }), visibility: ms }),
  fc.record({ do: fc.constant('heartbeat' as const), which: fc.nat(20), visibility: ms }),
  fc.record({ do: fc.constant('ack' as const), which: fc.nat(20) }),
  fc.record({ do: fc.constant('fail' as const), which: fc.nat(20), delay: fc.option(ms, { nil: undefined }) }),
  fc.record({ do: fc.constant('pass' as const), ms }),
)

/** Plays the steps on a queue and on the model, and compares every answer and the size after each. */
async function sameQueue(open: (now: () => number) => Queue, steps: readonly QueueStep[]): Promise<void> {
  let now = START
  const real = open(() => now)
  const model = new QueueModel(() => now)
  const pulled: { real: PulledWork; handle: number }[] = []
  for (const [i, step] of steps.entries()) {
    // A millisecond for each step, and delays in whole seconds: no two due times are ever the same by accident.
    now += 1
    const chosen = 'which' in step && pulled.length > 0 ? pulled[step.which % pulled.length] : undefined
    switch (step.do) {
      case 'push': {
        const { delay, priority, dedupeKey } = step
        const options = { delay, priority, ...(dedupeKey === undefined ? {} : { dedupeKey }) }
        await real.push(`body ${i}`, options)
        model.push(`body ${i}`, options)
        break
      }
      case 'pop': {
        const got = await real.pop(step.max, step.visibility)
        const expected = model.pop(step.max, step.visibility)
        expect(got.map(({ body, attempt }) => ({ body, attempt }))).toEqual(
          expected.map(({ body, attempt }) => ({ body, attempt })),
        )
        for (const [j, one] of got.entries()) pulled.push({ real: one, handle: expected[j]!.handle })
        break
      }
      case 'heartbeat':
        if (chosen === undefined) break
        expect(await real.heartbeat(chosen.real, step.visibility)).toBe(model.heartbeat(chosen.handle, step.visibility))
        break
      case 'ack':
        if (chosen === undefined) break
        await real.ack(chosen.real)
        model.ack(chosen.handle)
        break
      case 'fail':
        if (chosen === undefined) break
        await real.fail(chosen.real, step.delay)
        model.fail(chosen.handle, step.delay)
        break
      case 'pass':
        now += step.ms
        break
    }
    expect(await real.size?.()).toBe(model.size)
  }
}

type QueueStep = typeof queueStep extends fc.Arbitrary<infer T> ? T : never

describe('a queue played against its model', () => {
  it('gives the same answers, step by step, on the memory queue', () =>
    fc.assert(
      fc.asyncProperty(fc.array(queueStep, { maxLength: 60, size: 'max' }), (steps) =>
        sameQueue((now) => memoryQueue({ now }), steps),
      ),
      { numRuns: 1000 },
    ))
})

// ── stores ──

const key = fc.constantFrom('a', 'b', 'c')
const value = fc.constantFrom('0', '1', '2', '3')
const ttl = fc.option(ms, { nil: undefined })

const storeStep = fc.oneof(
  fc.record({ do: fc.constant('set' as const), key, value, ttl }),
  fc.record({ do: fc.constant('delete' as const), key }),
  fc.record({ do: fc.constant('setIfNotExists' as const), key, value, ttl }),
  fc.record({ do: fc.constant('increment' as const), key, by: fc.integer({ min: -3, max: 3 }), ttl }),
  fc.record({ do: fc.constant('incrementOnce' as const), key, marker: fc.constantFrom('m', 'n'), by: fc.nat(3), ttl }),
  fc.record({
    do: fc.constant('compareAndSet' as const),
    key,
    expected: fc.option(value, { nil: undefined }),
    value,
    ttl,
  }),
  fc.record({ do: fc.constant('pass' as const), ms }),
)

type StoreStep = typeof storeStep extends fc.Arbitrary<infer T> ? T : never

/** Plays the steps on a store and on the model, and compares every answer and all keys after each. */
async function sameStore(open: (now: () => number) => Store, steps: readonly StoreStep[]): Promise<void> {
  let now = START
  const real = open(() => now)
  const model = new StoreModel(() => now)
  for (const step of steps) {
    now += 1
    switch (step.do) {
      case 'set':
        await real.set(step.key, step.value, step.ttl)
        model.set(step.key, step.value, step.ttl)
        break
      case 'delete':
        await real.delete?.(step.key)
        model.delete(step.key)
        break
      case 'setIfNotExists':
        expect(await real.setIfNotExists(step.key, step.value, step.ttl)).toBe(
          model.setIfNotExists(step.key, step.value, step.ttl),
        )
        break
      case 'increment':
        expect(await real.increment?.(step.key, step.by, step.ttl)).toBe(model.increment(step.key, step.by, step.ttl))
        break
      case 'incrementOnce':
        expect(await real.incrementOnce?.(step.key, step.marker, step.by, step.ttl)).toEqual(
          model.incrementOnce(step.key, step.marker, step.by, step.ttl),
        )
        break
      case 'compareAndSet':
        expect(await real.compareAndSet?.(step.key, step.expected, step.value, step.ttl)).toBe(
          model.compareAndSet(step.key, step.expected, step.value, step.ttl),
        )
        break
      case 'pass':
        now += step.ms
        break
    }
    const keys = ['a', 'b', 'c']
    expect(await Promise.all(keys.map((k) => real.get(k)))).toEqual(keys.map((k) => model.get(k)))
    if (real.getMany !== undefined) expect(await real.getMany(keys)).toEqual(keys.map((k) => model.get(k)))
  }
}

describe('a store played against its model', () => {
  it('gives the same answers, step by step, on the memory store', () =>
    fc.assert(
      fc.asyncProperty(fc.array(storeStep, { maxLength: 60, size: 'max' }), (steps) =>
        sameStore((now) => memoryStore({ now }), steps),
      ),
      { numRuns: 1000 },
    ))
})
