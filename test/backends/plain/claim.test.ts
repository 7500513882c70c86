import { describe, expect, it } from 'vitest'
import { overPlainPorts } from '../../../src/backends/plain/over-plain-ports.js'
import type { PulledWork, Queue } from '../../../src/ports/ports.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { portsWith } from './ports.js'
import { byLease, complete, deadLetter, enqueue, env, item, retry } from './settlements.js'
import { world } from './world.js'

const ask = { queues: [{ queue: 'default', max: 10 }], leaseMs: 30_000, worker: 'w1' }

/** A queue that always hands out the same bodies, and counts what is done with them. */
function stub(bodies: () => readonly string[]) {
  const counts = { pops: 0, pushes: [] as { body: string; delay: number | undefined }[], acks: 0, fails: 0 }
  const queue: Queue = {
    push: (body, options) => void counts.pushes.push({ body, delay: options?.delay }),
    pop: (max) => {
      counts.pops += 1
      return bodies()
        .slice(0, max)
        .map((body, i): PulledWork => ({ body, handle: `${counts.pops} ${i}`, attempt: 1 }))
    },
    heartbeat: () => undefined,
    ack: () => {
      counts.acks += 1
    },
    fail: () => {
      counts.fails += 1
    },
  }
  const clock = new FakeClock()
  const { store, pubsub } = portsWith('documented', clock)
  return { counts, clock, ...overPlainPorts({ queue, store, pubsub }, [], { clock }) }
}

describe('a body that is no envelope', () => {
  // S70
  it('is acked, dropped and reported, and nothing of it is dead', async () => {
    const { ledger, pushRaw, ports, dead } = world()
    await pushRaw('not json')
    await pushRaw('{"id":"x"}')
    const reply = await ledger.claim(ask)
    expect(reply.items).toEqual([])
    expect(reply.unreadable).toEqual([
      { queue: 'default', body: 'not json' },
      { queue: 'default', body: '{"id":"x"}' },
    ])
    expect(await ports.queue.size?.()).toBe(0)
    expect(dead).toEqual([])
  })
})

describe('a hand-written envelope without any record', () => {
  // S71 S72
  it('is handed out with what its envelope says, for the engine to decide about', async () => {
    const { ledger, pushRaw } = world()
    await pushRaw(env('x', { type: 'ghost', attempt: 9, retry: { attempts: 3 }, input: '{bad json' }))
    const { items } = await ledger.claim(ask)
    expect(items).toMatchObject([
      { envelope: { id: 'x', type: 'ghost', attempt: 9, input: '{bad json' }, deliveries: 1 },
    ])
  })
})

describe('a body that arrives before its time', () => {
  // S76
  it('is pushed again with what is left, then acked; it is never failed, and it is reported', async () => {
    const later = () => [env('x', { startAt: clock.now() + 60_000 })]
    const { counts, ledger, clock } = stub(() => later())
    const reply = await ledger.claim({ ...ask, queues: [{ queue: 'default', max: 1 }] })
    expect(reply.items).toEqual([])
    expect(reply.more).toBe(false)
    expect(reply.rescheduled).toMatchObject([{ envelope: { id: 'x', attempt: 1 }, byMs: 60_000 }])
    expect(counts).toMatchObject({ acks: 1, fails: 0, pushes: [{ body: later()[0], delay: 60_000 }] })
  })

  // S77
  it('is pushed as often as it is acked, however often it comes', async () => {
    const { counts, ledger, clock } = stub(() => [env('x', { startAt: clock.now() + 60_000 })])
    for (let round = 0; round < 10; round += 1) await ledger.claim(ask)
    expect(counts.pushes.length).toBe(10)
    expect(counts.acks).toBe(10)
    expect(counts.fails).toBe(0)
  })

  // S78
  it('wakes no loop and asks for no further claim, also when the queue is full of such bodies', async () => {
    const bodies = () => Array.from({ length: 10 }, (_, i) => env(`x${i}`, { startAt: clock.now() + 60_000 }))
    const { ledger, clock } = stub(bodies)
    const wakes: string[] = []
    ledger.onReady((queue) => void wakes.push(queue))
    const reply = await ledger.claim(ask)
    expect([reply.more, reply.nextDueAt, wakes]).toEqual([false, undefined, []])
    expect(reply.rescheduled).toHaveLength(10)
  })

  it('within a second of its time is on time', async () => {
    const { ledger, clock } = stub(() => [env('x', { startAt: clock.now() + 1000 })])
    expect((await ledger.claim(ask)).items).toHaveLength(1)
  })

  it('whose deadline has passed is handed out, to expire', async () => {
    const { ledger, clock } = stub(() => [env('x', { startAt: clock.now() + 60_000, deadline: clock.now() - 1 })])
    expect((await ledger.claim(ask)).items).toHaveLength(1)
  })

  it('because its queue caps delays comes on time all the same', async () => {
    const clock = new FakeClock()
    const { queue, store, pubsub } = portsWith('documented', clock)
    const { ledger } = overPlainPorts({ queue: { ...queue, maxDelay: 10_000 }, store, pubsub }, [], { clock })
    const startAt = clock.now() + 25_000
    await ledger.commit([enqueue(item('a', { startAt }), 25_000)])
    const seen: number[] = []
    for (let round = 0; round < 30; round += 1) {
      const { items } = await ledger.claim(ask)
      if (items.length > 0) seen.push(clock.now() - startAt)
      await ledger.commit(items.map((one) => complete(one)))
      await clock.advance(1000)
    }
    expect(seen).toEqual([0])
  })

  it('and cannot be pushed again stays leased, and is reported', async () => {
    const { ledger, pushRaw, ports, errors, clock } = world()
    await pushRaw(env('x', { startAt: clock.now() + 60_000 }))
    ports.fault = ({ name }) => (name === 'push' ? 'before' : undefined)
    expect((await ledger.claim(ask)).rescheduled).toBeUndefined()
    expect(errors).toMatchObject([{ phase: 'queue', error: { message: 'push failed' } }])
    expect(ports.calls.some(({ name }) => name === 'ack' || name === 'fail')).toBe(false)
    expect(await ports.queue.size?.()).toBe(1)
  })
})

describe('several queues', () => {
  const two = (queue: Queue, clock: FakeClock) => {
    const { store, pubsub, queue: other } = portsWith('documented', clock)
    const errors: unknown[] = []
    const onError = (error: unknown) => void errors.push(error)
    return {
      ...overPlainPorts({ queue, store, pubsub }, [other, queue, other], { clock, onError }),
      other,
      errors,
    }
  }
  const both = {
    ...ask,
    queues: [
      { queue: 'default', max: 5 },
      { queue: 'q1', max: 5 },
    ],
  }
  const inQ1 = (id: string) => {
    const { guard, effects } = enqueue(item(id))
    return { guard, effects: effects.map((effect) => (effect.do === 'enqueue' ? { ...effect, queue: 'q1' } : effect)) }
  }

  it('are named default, q1, …; the same object is the same queue', () => {
    const clock = new FakeClock()
    const { queue } = portsWith('documented', clock)
    const { names, other } = two(queue, clock)
    expect([...names]).toEqual([
      [queue, 'default'],
      [other, 'q1'],
    ])
  })

  // S79
  it('dead letters go to the sink of their own queue', async () => {
    const clock = new FakeClock()
    const { queue, dead } = portsWith('documented', clock)
    const letters: string[] = []
    const { store, pubsub, queue: plain } = portsWith('documented', clock)
    const other = { ...plain, deadLetter: (_: string, error: string) => void letters.push(error) }
    const { ledger } = overPlainPorts({ queue, store, pubsub }, [other], { clock })
    await other.push(env('x', { type: 'ghost' }))
    const [x] = (await ledger.claim(both)).items
    const death = {
      do: 'deadLetter',
      id: 'x',
      ending: 'unroutable',
      class: 'poison',
      error: 'unknown work type: ghost',
      keepMs: 1000,
    } as const
    await ledger.commit([byLease(x!.lease, [death, { do: 'leaveGroup', groupId: 'g', count: 1 }])])
    expect([letters, dead]).toEqual([['unknown work type: ghost'], []])
  })

  // S80
  it('one that throws is named, and the others are served', async () => {
    const clock = new FakeClock()
    const { queue } = portsWith('documented', clock)
    const broken = {
      ...queue,
      pop: () => {
        throw new Error('down')
      },
    }
    const { ledger } = two(broken, clock)
    await ledger.commit([inQ1('a')])
    const reply = await ledger.claim(both)
    expect(reply.items.map(({ lease }) => [lease.id, lease.queue])).toEqual([['a', 'q1']])
    expect(reply.failedQueues).toMatchObject([{ queue: 'default', error: { message: 'down' } }])
  })

  it('one that is slow delays the others only for a moment, and is handed out when it comes', async () => {
    const clock = new FakeClock()
    const { queue } = portsWith('documented', clock)
    let answer: (pulled: PulledWork[]) => void = () => undefined
    let pops = 0
    const slow = {
      ...queue,
      pop: () => {
        pops += 1
        return new Promise<PulledWork[]>((resolve) => {
          answer = resolve
        })
      },
    }
    const { ledger } = two(slow, clock)
    const wakes: string[] = []
    ledger.onReady((name) => void wakes.push(name))
    await ledger.commit([inQ1('a'), inQ1('b')])
    wakes.length = 0
    const first = ledger.claim({
      ...both,
      queues: [
        { queue: 'default', max: 5 },
        { queue: 'q1', max: 1 },
      ],
    })
    await clock.advance(50)
    expect((await first).items.map(({ lease }) => lease.id)).toEqual(['a'])
    const second = ledger.claim(both)
    await clock.advance(50)
    expect((await second).items.map(({ lease }) => lease.id)).toEqual(['b'])
    expect([pops, wakes]).toEqual([1, []])
    answer([{ body: env('late'), handle: 'h', attempt: 1 }])
    await clock.settle()
    expect(wakes).toEqual(['default'])
    expect((await ledger.claim(both)).items.map(({ lease }) => lease.id)).toEqual(['late'])
  })

  it('gets back what came late, when no further claim comes', async () => {
    const clock = new FakeClock()
    const { queue } = portsWith('documented', clock)
    let answer: (pulled: PulledWork[]) => void = () => undefined
    const failed: unknown[] = []
    const slow: Queue = {
      ...queue,
      pop: () =>
        new Promise<PulledWork[]>((resolve) => {
          answer = resolve
        }),
      fail: (pulled) => void failed.push(pulled.handle),
    }
    const { ledger } = two(slow, clock)
    const claim = ledger.claim(both)
    await clock.advance(50)
    await claim
    answer([{ body: env('late'), handle: 'h', attempt: 1 }])
    await clock.advance(10_000)
    expect(failed).toEqual(['h'])
  })

  it('an unknown one is answered as failed', async () => {
    const { ledger } = world()
    const reply = await ledger.claim({ ...ask, queues: [{ queue: 'nowhere', max: 1 }] })
    expect(reply.failedQueues).toMatchObject([
      { queue: 'nowhere', error: { message: expect.stringContaining('"nowhere"') } },
    ])
  })
})

describe('deliveries of an item that something is known of', () => {
  // S62
  it('a run that started and never ended is a crash, counted once each time', async () => {
    const { commit, claim, clock, get } = world()
    await commit(enqueue(item('a')))
    const crashes: number[] = []
    for (let round = 0; round < 4; round += 1) {
      const [a] = await claim({ leaseMs: 40 })
      crashes.push(a!.crashes)
      await clock.advance(41)
    }
    expect(crashes).toEqual([0, 1, 2, 3])
    expect(await get('crash:a')).toBe('3')
  })

  it('a put-back after a crash does not count it again', async () => {
    const { ledger, commit, claim, clock } = world()
    await commit(enqueue(item('a')))
    await claim({ leaseMs: 40 })
    await clock.advance(41)
    for (let round = 0; round < 3; round += 1) {
      const { items } = await ledger.claim(ask)
      expect(items[0]?.crashes).toBe(1)
      await commit(byLease(items[0]!.lease, [{ do: 'release', id: 'a' }]))
    }
  })

  it('crashes are remembered over a retry', async () => {
    const { commit, claim, clock } = world()
    await commit(enqueue(item('a')))
    await claim({ leaseMs: 40 })
    await clock.advance(41)
    const [again] = await claim()
    await commit(retry(again!, 0))
    expect((await claim())[0]).toMatchObject({ crashes: 1, envelope: { attempt: 2 } })
  })

  it('a copy of what another process runs is put back for a while, and dropped when that has ended', async () => {
    for (const powers of ['all', 'documented', 'minimal'] as const) {
      const { ledger, commit, claim, pushRaw, again, clock, ports } = world(powers)
      await commit(enqueue(item('a')))
      const [a] = await claim()
      await pushRaw(JSON.stringify(item('a')))
      const other = again()
      expect((await other.claim(ask)).items).toEqual([])
      await clock.advance(1000)
      expect((await ledger.claim(ask)).items).toEqual([])
      const [end] = await ledger.commit([complete(a!, '1')])
      expect(end).toMatchObject({ kind: 'applied' })
      await clock.advance(1000)
      expect((await other.claim(ask)).items).toEqual([])
      expect(await ports.queue.pop(10, 1000)).toEqual([])
    }
  })

  it('two copies in one claim are one run', async () => {
    const { ledger, pushRaw } = world()
    await pushRaw(env('x'))
    await pushRaw(env('x'))
    expect((await ledger.claim(ask)).items).toHaveLength(1)
  })

  it('a retry soon after its run is not taken for a second copy of it', async () => {
    const { commit, claim, again } = world()
    await commit(enqueue(item('a')))
    const [a] = await claim()
    await commit(retry(a!, 0))
    expect(await claim({ ledger: again() })).toHaveLength(1)
  })

  it('what cannot be looked up is put back, and its queue named', async () => {
    const { ledger, commit, ports, clock } = world('documented')
    await commit(enqueue(item('a')))
    await commit(enqueue(item('b')))
    ports.fault = ({ name, given }) => (name === 'get' && given[0] === 'work:state:a' ? 'before' : undefined)
    const reply = await ledger.claim(ask)
    expect(reply.items.map(({ lease }) => lease.id)).toEqual(['b'])
    expect(reply.failedQueues).toMatchObject([{ queue: 'default' }])
    ports.fault = () => undefined
    await clock.advance(1000)
    expect((await ledger.claim(ask)).items.map(({ lease }) => lease.id)).toEqual(['a'])
  })

  it('the fence rises from run to run', async () => {
    const { commit, claim } = world()
    await commit(enqueue(item('a')))
    const fences: number[] = []
    for (let round = 0; round < 4; round += 1) {
      const [a] = await claim()
      fences.push(a!.lease.fence)
      await commit(retry(a!, 0))
    }
    expect(fences).toEqual(fences.toSorted((a, b) => a - b))
    expect(new Set(fences).size).toBe(4)
  })
})

describe('pauses and cancels, which plain queues know nothing of', () => {
  const order = (what: 'pause' | 'resume', of: 'queue' | 'type', name: string) =>
    ({ guard: { by: 'none' }, effects: [{ do: what, what: of, name }] }) as const

  it('a paused queue is not popped, after the round that found it paused', async () => {
    const { ledger, commit, ports, again } = world()
    await commit(enqueue(item('a')))
    await again().commit([order('pause', 'queue', 'default')])
    for (let round = 0; round < 5; round += 1) expect((await ledger.claim(ask)).items).toEqual([])
    expect(ports.calls.filter(({ name }) => name === 'pop')).toHaveLength(1)
  })

  it('a paused type is put back for longer and longer, and comes back after the resume', async () => {
    const { ledger, commit, ports, clock } = world()
    await commit(enqueue(item('a')))
    await commit(order('pause', 'type', 't'))
    for (let round = 0; round < 8; round += 1) {
      expect((await ledger.claim(ask)).items).toEqual([])
      await clock.advance(30_000)
    }
    const delays = ports.calls.filter(({ name }) => name === 'fail').map(({ given }) => given[1])
    expect(delays).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000])
    const wakes: string[] = []
    ledger.onReady((queue) => void wakes.push(queue))
    await commit(order('resume', 'type', 't'))
    expect(wakes).toEqual(['default'])
    expect((await ledger.claim(ask)).items).toHaveLength(1)
  })

  it('an item cancelled while it ran, whose process died, ends at its next delivery', async () => {
    const { ledger, commit, claim, clock } = world()
    await commit(enqueue(item('a')))
    await claim({ leaseMs: 1000 })
    const cancel = {
      guard: { by: 'status', id: 'a', in: ['running'] },
      effects: [{ do: 'requestCancel', id: 'a', reason: 'not needed' }],
    } as const
    expect(await commit(cancel)).toMatchObject({ kind: 'applied' })
    await clock.advance(1001)
    const reply = await ledger.claim(ask)
    expect([reply.items, reply.closedGroups]).toEqual([[], [{ groupId: 'g-a' }]])
    expect((await ledger.read(['a']))[0]).toMatchObject({
      status: 'dead',
      ending: 'cancelled',
      error: 'cancelled: not needed',
    })
  })
})

describe('a gate that no member frees', () => {
  it('is polled, less and less often, with one item and no new keys', async () => {
    const { ledger, commit, claim, ports, clock, get } = world()
    await commit(enqueue(item('m')))
    const hold = { by: 'gate', key: 'k' } as const
    const { guard, effects } = enqueue(item('gate'))
    const held = effects.map((effect) => (effect.do === 'enqueue' ? { ...effect, delayMs: Infinity, hold } : effect))
    const opened = { do: 'openGate', key: 'k', heldId: 'gate', members: ['m'], need: 1, of: 'success' } as const
    await commit({ guard, effects: [...held, opened] })
    const [m] = await claim({ max: 1, leaseMs: 1e9 })
    ports.calls.length = 0
    for (let second = 0; second < 300; second += 1) {
      expect((await ledger.claim(ask)).items).toEqual([])
      await clock.advance(1000)
    }
    const delays = ports.calls
      .filter(({ name }) => name === 'push')
      .map(({ given }) => (given[1] as { delay: number }).delay)
    expect(delays).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000])
    expect((await ledger.read(['gate']))[0]).toMatchObject({ status: 'pending', hold })
    // Its member ends in a process that dies before it notifies the gate: only the state is there.
    ports.fault = ({ name, given }) => (String(given[0]).includes('gate-') && name !== 'get' ? 'before' : undefined)
    expect(await commit(complete(m!, '1'))).toMatchObject({ kind: 'failed' })
    ports.fault = () => undefined
    await clock.advance(60_000)
    const [gate] = (await ledger.claim(ask)).items
    expect(gate).toMatchObject({ lease: { id: 'gate' }, gate: { met: true } })
    expect(await get('gate-freed:k')).toBeDefined()
  })

  it.each(['documented', 'minimal'] as const)(
    'counts a member once, though its state is there longer than the mark that it was counted (%s powers)',
    async (powers) => {
      const { ledger, commit, claim, clock, get } = world(powers, { retentionMs: 600_000 })
      await commit(enqueue(item('m1')))
      await commit(enqueue(item('m2')))
      const hold = { by: 'gate', key: 'k' } as const
      const { guard, effects } = enqueue(item('gate'))
      const held = effects.map((effect) => (effect.do === 'enqueue' ? { ...effect, delayMs: Infinity, hold } : effect))
      const opened = { do: 'openGate', key: 'k', heldId: 'gate', members: ['m1', 'm2'], need: 2, of: 'done' } as const
      await commit({ guard, effects: [...held, opened] })
      const members = await claim({ max: 2, leaseMs: 1e9 })
      const m1 = members.find(({ lease }) => lease.id === 'm1')
      // Dead letters are kept for thirty days, whatever the store forgets sooner.
      expect(await commit(deadLetter(m1!))).toMatchObject({ kind: 'applied' })
      for (let minute = 0; minute < 25; minute += 1) {
        await clock.advance(60_000)
        expect((await ledger.claim(ask)).items, `after ${minute + 1} min`).toEqual([])
      }
      expect(await get('gate-ended:k')).toBe('1')
      expect((await ledger.read(['m1', 'gate'])).map((view) => view?.status)).toEqual(['dead', 'pending'])
    },
  )
})
