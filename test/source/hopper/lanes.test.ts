import { describe, expect, it } from 'vitest'
import { ack } from '../../../src/core/stream/result.js'
import { Hopper } from '../../../src/source/hopper/hopper.js'
import { MemInlet } from '../../../src/source/inlets/memory/mem-inlet.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { Harness } from '../../../src/testing/harness.js'
import { held, textOf } from './support.js'

/** Counts how many are inside at the same time. */
function crowd() {
  let inside = 0
  let most = 0
  return {
    get most() {
      return most
    },
    enter() {
      inside += 1
      most = Math.max(most, inside)
    },
    leave() {
      inside -= 1
    },
  }
}

describe('messages of several keys', () => {
  // S37
  it('run in order within each key, whatever runs beside them', async () => {
    const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    const messages = Array.from({ length: 50 }, (_, n) => keys.map((key) => ({ key, value: String(n) }))).flat()
    const harness = new Harness({ hopper: { concurrency: 8 }, messages })
    const seen = new Map<string, number[]>()
    await harness.run(async (_ctx, message) => {
      await harness.clock.sleep((message.partitionKey.charCodeAt(0) * 7) % 11)
      seen.set(message.partitionKey, [...(seen.get(message.partitionKey) ?? []), Number(textOf(message))])
      return ack()
    })
    for (const key of keys) expect(seen.get(key)).toEqual(Array.from({ length: 50 }, (_, n) => n))
    harness.assertCounts({ acked: 400 })
  })

  // S38
  it('run as many at the same time as concurrency allows', async () => {
    const clock = new FakeClock()
    const inlet = new MemInlet({ clock, messages: ['a', 'b', 'c', 'd'].map((key) => ({ key })) })
    const hopper = new Hopper({ clock, concurrency: 4 })
    const all = crowd()
    const gate = held()
    const running = hopper.run(await inlet.subscribe(), async () => {
      all.enter()
      await gate.promise
      return ack()
    })
    await clock.settle()
    expect(all.most).toBe(4)
    gate.release()
    await clock.settle()
    await hopper.close()
    expect(await running).toMatchObject({ acked: 4 })
  })

  // S38
  it('never run two at the same time with concurrency 1', async () => {
    const messages = Array.from({ length: 20 }, (_, i) => ({ key: `key-${i}` }))
    const harness = new Harness({ messages })
    const all = crowd()
    await harness.run(async () => {
      all.enter()
      await harness.clock.sleep(5)
      all.leave()
      return ack()
    })
    expect(all.most).toBe(1)
    harness.assertSettled(20)
  })

  it('keep their arrival order over all keys with concurrency 1', async () => {
    const messages = Array.from({ length: 30 }, (_, i) => ({ key: `key-${i % 3}`, value: String(i) }))
    const harness = new Harness({ messages })
    const seen: string[] = []
    await harness.run(async (_ctx, message) => {
      await harness.clock.sleep(1)
      seen.push(textOf(message))
      return ack()
    })
    expect(seen).toEqual(messages.map((m) => m.value))
  })

  // S39
  it('share a lane when they share a partition', async () => {
    const messages = Array.from({ length: 30 }, (_, i) => ({ key: `k${i}`, partitionKey: 'shared', value: String(i) }))
    const harness = new Harness({ hopper: { concurrency: 2 }, messages })
    const seen: number[] = []
    await harness.run(async (_ctx, message) => {
      await harness.clock.sleep(30 - Number(textOf(message)))
      seen.push(Number(textOf(message)))
      return ack()
    })
    expect(seen).toEqual(Array.from({ length: 30 }, (_, i) => i))
  })

  // S40
  it('never exceed maxInFlight, and are all settled', async () => {
    const messages = Array.from({ length: 30 }, (_, i) => ({ key: `k${i}` }))
    const harness = new Harness({ hopper: { concurrency: 8, maxInFlight: 3 }, messages })
    const all = crowd()
    await harness.run(async () => {
      all.enter()
      await harness.clock.sleep(10)
      all.leave()
      return ack()
    })
    expect(all.most).toBe(3)
    harness.assertCounts({ acked: 30 })
  })

  // S40
  it('are all processed when there is but one lane for them', async () => {
    const messages = Array.from({ length: 50 }, (_, i) => ({ key: `k${i}` }))
    const harness = new Harness({ hopper: { concurrency: 8, maxLanes: 1 }, messages })
    await harness.run(() => ack())
    harness.assertCounts({ acked: 50 })
  })

  it('go by laneOf where one is given', async () => {
    const messages = Array.from({ length: 20 }, (_, i) => ({ key: `k${i}`, value: String(i) }))
    const harness = new Harness({
      hopper: { concurrency: 4, laneOf: (m) => String(Number(textOf(m)) % 2) },
      messages,
    })
    const all = crowd()
    await harness.run(async () => {
      all.enter()
      await harness.clock.sleep(1)
      all.leave()
      return ack()
    })
    expect(all.most).toBe(2)
  })

  it('go by their key when laneOf fails or returns no string, and are not stuck', async () => {
    const errors: string[] = []
    const harness = new Harness({
      hopper: {
        concurrency: 4,
        logger: { warn: () => undefined, error: (text) => errors.push(text) },
        laneOf: (m) => {
          if (textOf(m) === '0') throw new Error('no lane')
          return 7 as unknown as string
        },
      },
      messages: [{ value: '0' }, { value: '1' }],
    })
    await harness.run(() => ack())
    harness.assertCounts({ acked: 2 })
    expect(errors).toEqual([expect.stringContaining('laneOf failed'), expect.stringContaining('did not return')])
  })
})

describe('a slow key', () => {
  // S41, W5
  it('holds up no other key', async () => {
    const clock = new FakeClock()
    const names = ['hot-1', 'hot-2', 'hot-3', 'hot-4', 'cold-1']
    const inlet = new MemInlet({ clock, messages: names.map((value) => ({ key: value.split('-')[0]!, value })) })
    const hopper = new Hopper({ clock, concurrency: 4 })
    const gate = held()
    const done: string[] = []
    const running = hopper.run(await inlet.subscribe(), async (_ctx, message) => {
      if (textOf(message) === 'hot-1') await gate.promise
      done.push(textOf(message))
      return ack()
    })
    await clock.settle()
    expect(done).toEqual(['cold-1'])
    gate.release()
    await clock.settle()
    expect(done).toEqual(['cold-1', 'hot-1', 'hot-2', 'hot-3', 'hot-4'])
    await hopper.close()
    await running
  })

  // W5
  it('that fills nearly the whole window leaves what is left of it to the others, without waiting for a poll', async () => {
    const clock = new FakeClock()
    const hot = Array.from({ length: 60 }, (_, i) => ({ key: 'hot', value: `hot-${i}` }))
    const cold = Array.from({ length: 500 }, (_, i) => ({ key: `cold-${i}`, value: `cold-${i}` }))
    const inlet = new MemInlet({ clock, messages: [...hot, ...cold] })
    const hopper = new Hopper({ clock, concurrency: 4, maxInFlight: 64 })
    const gate = held()
    let colds = 0
    const running = hopper.run(await inlet.subscribe(), async (_ctx, message) => {
      if (message.partitionKey === 'hot') await gate.promise
      else colds += 1
      return ack()
    })
    await clock.settle()
    expect(clock.monotonic()).toBe(0)
    expect(colds).toBe(500)
    gate.release()
    await clock.settle()
    await hopper.close()
    expect(await running).toMatchObject({ acked: 560 })
  })

  it('has its partition paused at maxInFlightPerLane, and resumed at half of it', async () => {
    const clock = new FakeClock()
    const hot = Array.from({ length: 40 }, (_, i) => ({ key: 'hot', value: String(i) }))
    const inlet = new MemInlet({ clock, pausable: true, messages: [...hot, { key: 'cold' }] })
    const hopper = new Hopper({ clock, concurrency: 4, maxInFlight: 8, maxInFlightPerLane: 4 })
    const sub = await inlet.subscribe()
    const log: string[] = []
    const pausable = sub.capability('pausable')!
    const watched = {
      ...pausable,
      pause: (partition: string) => {
        log.push(`pause ${partition}`)
        pausable.pause(partition)
      },
      resume: (partition: string) => {
        log.push(`resume ${partition}`)
        pausable.resume(partition)
      },
    }
    const gates = new Map<number, ReturnType<typeof held<void>>>()
    const running = hopper.run(
      {
        next: (o) => sub.next(o),
        settle: (m, r, o) => sub.settle(m, r, o),
        close: () => sub.close(),
        capability: (name) => (name === 'pausable' ? (watched as never) : sub.capability(name)),
      },
      async (_ctx, message) => {
        if (message.partitionKey === 'cold') {
          log.push('cold')
          return ack()
        }
        const gate = held()
        gates.set(Number(textOf(message)), gate)
        await gate.promise
        return ack()
      },
    )
    await clock.settle()
    // Four of the hot ones are held, so the window has room for the cold one behind forty of them.
    expect(log).toEqual(['pause hot', 'cold'])
    gates.get(0)!.release()
    await clock.settle()
    expect(log).toEqual(['pause hot', 'cold'])
    gates.get(1)!.release()
    await clock.settle()
    expect(log.slice(2, 4)).toEqual(['resume hot', 'pause hot'])
    for (let i = 2; i < 40; i += 1) {
      gates.get(i)!.release()
      await clock.settle()
    }
    await hopper.close()
    expect(await running).toMatchObject({ acked: 41 })
    expect(log.filter((line) => line.startsWith('pause')).length).toBe(
      log.filter((line) => line.startsWith('resume')).length,
    )
  })

  it('does not leave its partition paused behind when the run is abandoned', async () => {
    const clock = new FakeClock()
    const inlet = new MemInlet({ clock, pausable: true, messages: Array.from({ length: 10 }, () => ({ key: 'hot' })) })
    const hopper = new Hopper({ clock, concurrency: 2, maxInFlight: 4, deadlineMs: 0, abortGraceMs: 0 })
    const sub = await inlet.subscribe()
    const running = hopper.run(sub, () => new Promise(() => undefined))
    await clock.settle()
    void hopper.close()
    await clock.advance(1)
    expect(await running).toMatchObject({ abandoned: 1 })
    expect(await sub.next({ signal: new AbortController().signal })).toMatchObject({ partitionKey: 'hot' })
  })
})

describe('a subscription that delivers in order', () => {
  // W27
  it('has one lane, however many handlers could run', async () => {
    const harness = new Harness({
      hopper: { concurrency: 8 },
      inlet: { ordered: true },
      messages: Array.from({ length: 20 }, (_, i) => ({ key: `k${i}`, value: String(i) })),
    })
    const all = crowd()
    const seen: number[] = []
    await harness.run(async (_ctx, message) => {
      all.enter()
      await harness.clock.sleep(20 - Number(textOf(message)))
      all.leave()
      seen.push(Number(textOf(message)))
      return ack()
    })
    expect(all.most).toBe(1)
    expect(seen).toEqual(Array.from({ length: 20 }, (_, i) => i))
  })
})
