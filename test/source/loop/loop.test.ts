import { describe, expect, it } from 'vitest'
import { DrainedError } from '../../../src/core/stream/stream-errors.js'
import type { LeaseStatus } from '../../../src/ports/ledger.js'
import type { Admission, RunDeliveries } from '../../../src/source/loop/admission.js'
import type { Deliveries, Delivery } from '../../../src/source/loop/delivery.js'
import { CancelledError } from '../../../src/source/loop/errors.js'
import type { Feed } from '../../../src/source/loop/feed.js'
import { Loop } from '../../../src/source/loop/loop.js'
import type { LoopObserver } from '../../../src/source/loop/loop-observer.js'
import type { LoopOptions } from '../../../src/source/loop/loop-options.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { BusyClock } from '../../support/busy-clock.js'
import { held } from '../hopper/support.js'

/** A policy that starts immediately whatever it is offered, unless a test says otherwise. */
function policy(over: Partial<Admission<string>> = {}): Admission<string> & { carry: RunDeliveries<string> } {
  const self = {
    carry: (async () => undefined) as RunDeliveries<string>,
    capacity: () => 10,
    offer(delivery: Delivery<string>) {
      void self.carry([delivery])
      return 'taken' as const
    },
    attach(carry: RunDeliveries<string>) {
      self.carry = carry
    },
    onRoom: () => () => undefined,
    finish: () => undefined,
    drain: () => [],
    ...over,
  }
  return self
}

interface Given {
  readonly feed?: Partial<Feed<string, string>>
  readonly options?: Partial<LoopOptions>
  readonly observer?: LoopObserver<string, string>
}

/** A feed of a few items that then drains, and notes what becomes of them. */
function looping(items: readonly string[], { feed = {}, options = {}, observer = {} }: Given = {}) {
  const clock = new FakeClock()
  const settled: string[] = []
  const released: [string, number | undefined][] = []
  const failures: [string, unknown][] = []
  let isGiven = false
  const source: Feed<string, string> = {
    pull: async () => {
      if (isGiven) throw new DrainedError()
      isGiven = true
      return { items, more: true }
    },
    settle: ({ item }, outcome, by) => {
      settled.push(`${item}:${outcome}`)
      by.answered('settled')
    },
    release: async (deliveries, delayMs) => {
      for (const { item } of deliveries) released.push([item, delayMs])
    },
    ...feed,
  }
  const loop = new Loop<string, string>(
    { clock, ...options },
    { failed: (phase, error) => failures.push([phase, error]), ...observer },
  )
  return { clock, loop, source, settled, released, failures }
}

const ok = (deliveries: Deliveries<string>) => deliveries.map(() => 'ok')

describe('a policy', () => {
  it('that asks for a pause is asked again after it, and only a stop cuts that short', async () => {
    const { clock, loop, source, settled } = looping(['a'])
    const asked: number[] = []
    const by = policy({
      capacity: () => {
        asked.push(clock.monotonic())
        return asked.length <= 2 ? { askAgainInMs: 500 } : 10
      },
    })
    const running = loop.run(source, by, ok)
    await clock.advance(2_000)
    await running
    expect(asked.slice(0, 3)).toEqual([0, 500, 1_000])
    expect(settled).toEqual(['a:ok'])

    const paused = looping(['a'])
    const stuck = paused.loop.run(paused.source, policy({ capacity: async () => ({ askAgainInMs: 1e9 }) }), ok)
    await paused.clock.settle()
    await paused.loop.stop()
    expect(await stuck).toMatchObject({ received: 0 })
    expect(paused.clock.pending).toBe(0)
  })

  it('that fails to say how much it wants is asked again; the run goes on', async () => {
    for (const fail of [
      () => {
        throw new Error('no idea')
      },
      () => Promise.reject(new Error('no idea')),
    ]) {
      const { clock, loop, source, settled, failures } = looping(['a'], { options: { idlePollMs: 100 } })
      let asked = 0
      const by = policy({
        capacity: () => {
          asked += 1
          return asked === 1 ? fail() : 10
        },
      })
      const running = loop.run(source, by, ok)
      await clock.advance(100)
      await running
      expect(settled).toEqual(['a:ok'])
      expect(failures).toEqual([['offer', expect.objectContaining({ message: 'no idea' })]])
    }
  })

  it('that does not take a delivery has it given back, after the delay that it names', async () => {
    const { clock, loop, source, released } = looping(['a', 'b', 'c'])
    const by = policy({ offer: (d) => ({ releaseAfterMs: d.item === 'b' ? 50 : 100 }) })
    const running = loop.run(source, by, ok)
    // Nothing of the round could start, so the next claim is left to the poll.
    await clock.advance(1_000)
    expect(await running).toMatchObject({ received: 3, returned: 3, settled: 0 })
    expect(released).toEqual([
      ['a', 100],
      ['c', 100],
      ['b', 50],
    ])
  })

  it('that throws does not strand the delivery', async () => {
    const { clock, loop, source, released, failures } = looping(['a'], { options: { idlePollMs: 250 } })
    const by = policy({
      offer: () => {
        throw new Error('broken')
      },
    })
    const running = loop.run(source, by, ok)
    await clock.advance(1_000)
    expect(await running).toMatchObject({ returned: 1 })
    expect(released).toEqual([['a', 250]])
    expect(failures.map(([phase]) => phase)).toEqual(['offer'])
  })

  it('is notified when the handler is done, before the outcome is settled', async () => {
    const log: string[] = []
    const gate = held()
    const { clock, loop, source } = looping(['a'], {
      feed: {
        settle: async (_delivery, _outcome, by) => {
          await gate.promise
          log.push('settled')
          by.answered('settled')
        },
      },
    })
    const by = policy({
      offer: (delivery) => {
        void by.carry([delivery], () => log.push('executed'))
        return 'taken'
      },
    })
    const running = loop.run(source, by, ok)
    await clock.settle()
    expect(log).toEqual(['executed'])
    gate.release()
    await running
    expect(log).toEqual(['executed', 'settled'])
  })
})

describe('a run', () => {
  it('whose execute breaks its promise and throws gives its deliveries back', async () => {
    const { loop, source, released, failures } = looping(['a'], { options: { idlePollMs: 250 } })
    const running = loop.run(source, policy(), () => {
      throw new Error('a bug')
    })
    expect(await running).toMatchObject({ received: 1, returned: 1, settled: 0 })
    expect(released).toEqual([['a', 250]])
    expect(failures.map(([phase]) => phase)).toEqual(['execute'])
  })

  it('notifies its observer of everything that happens to a delivery', async () => {
    const log: string[] = []
    const note = (what: string) => (d: Delivery<string>) => void log.push(`${what} ${d.item}`)
    const { loop, source } = looping(['a', 'b', 'c', 'd'], {
      feed: {
        settle: ({ item }, _outcome, by) => {
          if (item === 'c') throw new Error('away')
          by.answered(item === 'b' ? 'lost' : 'settled')
        },
      },
      options: { settle: { attempts: 1, baseMs: 0, maxMs: 0, timeoutMs: 100 } },
      observer: {
        pulled: note('pulled'),
        started: note('started'),
        settled: note('settled'),
        lost: note('lost'),
        unsettled: note('unsettled'),
        returned: note('returned'),
      },
    })
    const by = policy({
      offer: (delivery) => {
        if (delivery.item === 'd') return { releaseAfterMs: 5 }
        void by.carry([delivery])
        return 'taken'
      },
    })
    expect(await loop.run(source, by, ok)).toEqual({
      received: 4,
      settled: 1,
      lost: 1,
      settleFailures: 1,
      returned: 1,
      abandoned: 0,
    })
    expect(log.toSorted()).toEqual([
      'lost b',
      'pulled a',
      'pulled b',
      'pulled c',
      'pulled d',
      'returned d',
      'settled a',
      'started a',
      'started b',
      'started c',
      'unsettled c',
    ])
  })

  it.each([
    { givesBackWhatRuns: true, released: [['a', undefined]] },
    { givesBackWhatRuns: false, released: [] },
  ])('that leaves a handler running gives its item back or not: %o', async ({ givesBackWhatRuns, released }) => {
    const one = looping(['a'], { options: { graceMs: 0, givesBackWhatRuns } })
    let signal: AbortSignal | undefined
    const running = one.loop.run(one.source, policy(), ([delivery]) => {
      signal = delivery.signal
      return new Promise<never>(() => undefined)
    })
    await one.clock.settle()
    void one.loop.stop(1_000)
    await one.clock.advance(1_000)
    expect(await running).toMatchObject({ received: 1, abandoned: 1, returned: 0 })
    expect(signal?.aborted).toBe(true)
    expect(one.released).toEqual(released)
    expect(one.clock.pending).toBe(0)
  })

  it('may be one of several of one loop, and a stopped loop may run again', async () => {
    const first = looping(['a'])
    const second = looping(['b'])
    const both = [
      first.loop.run(first.source, policy(), ok),
      first.loop.run(
        {
          ...second.source,
          pull: (_max, signal) =>
            new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
        },
        policy(),
        ok,
      ),
    ]
    await first.clock.settle()
    expect(first.loop.isRunning).toBe(true)
    await first.loop.stop()
    await Promise.all(both)
    expect(first.loop.isRunning).toBe(false)
    expect(await first.loop.run(second.source, policy(), ok)).toMatchObject({ settled: 1 })
    await first.loop.close()
    expect(first.loop.isClosed).toBe(true)
    await expect(first.loop.run(second.source, policy(), ok)).rejects.toMatchObject({ code: 'HOPPER_CLOSED' })
  })
})

describe('a heartbeat', () => {
  const beating = (words: readonly (readonly LeaseStatus[])[]) => {
    let beats = 0
    return {
      lease: {
        ms: 3_000,
        extend: async (deliveries: readonly Delivery<string>[]) => {
          const said = words[beats] ?? deliveries.map(() => 'held' as const)
          beats += 1
          return said
        },
      },
    }
  }

  it('that says "cancelled" aborts the run with CancelledError; its outcome is still settled', async () => {
    const { clock, loop, source, settled } = looping(['a'], { feed: beating([['cancelled']]) })
    let reason: unknown
    const running = loop.run(source, policy(), async ([delivery]) => {
      await new Promise((resolve) => delivery.signal.addEventListener('abort', resolve))
      reason = delivery.signal.reason
      return ['cancelled']
    })
    await clock.advance(1_000)
    await running
    expect(reason).toBeInstanceOf(CancelledError)
    expect(settled).toEqual(['a:cancelled'])
  })

  it('that could not ask about a lease, or says nothing of it, loses it only when its whole time has passed', async () => {
    for (const words of [Array.from({ length: 20 }, () => ['unknown' as const]), [[], [], []]] as const) {
      const { clock, loop, source } = looping(['a'], { feed: beating(words) })
      let lostAt: number | undefined
      const running = loop.run(source, policy(), async ([delivery]) => {
        await new Promise((resolve) => delivery.signal.addEventListener('abort', resolve))
        lostAt = clock.monotonic()
        return ['late']
      })
      await clock.advance(5_000)
      expect(await running).toMatchObject({ lost: 1, settled: 0 })
      expect(lostAt).toBe(3_000)
    }
  })

  it('that finds a lease held by another worker comes again soon, and not for those that it has just extended', async () => {
    const asked: [number, readonly string[]][] = []
    const extend = async (deliveries: readonly Delivery<string>[]) => {
      asked.push([clock.monotonic(), deliveries.map(({ item }) => item)])
      return deliveries.map(({ item }): LeaseStatus => (item === 'b' && asked.length < 3 ? 'unknown' : 'held'))
    }
    const { clock, loop, source } = looping(['a', 'b'], { feed: { lease: { ms: 3_000, everyMs: 1_000, extend } } })
    const running = loop.run(source, policy(), async ([delivery]) => {
      await clock.sleep(2_600)
      return [delivery.item]
    })
    await clock.advance(3_000)
    expect(await running).toMatchObject({ settled: 2 })
    expect(asked).toEqual([
      [1_000, ['a', 'b']],
      [1_250, ['b']],
      [1_500, ['a', 'b']],
      [2_500, ['a', 'b']],
    ])
  })

  it('that takes long leaves room for no more leases than a beat can extend in half the time between two', async () => {
    const rooms: number[] = []
    const items = Array.from({ length: 2_000 }, (_, i) => `i${i}`)
    const extend = async (deliveries: readonly Delivery<string>[]) => {
      await clock.sleep(1_000)
      return deliveries.map(() => 'held' as const)
    }
    const { clock, loop, source } = looping([], {
      feed: {
        lease: { ms: 9_000, everyMs: 3_000, extend },
        pull: async () => ({ items: rooms.length === 1 ? items : [], more: true }),
      },
    })
    const gate = held()
    const by = policy({
      capacity: (_held, leasesLeft) => {
        rooms.push(leasesLeft)
        return leasesLeft > 0 && rooms.length < 3 ? 10 : 0
      },
    })
    const running = loop.run(source, by, async () => {
      await gate.promise
      return ['ok']
    })
    await clock.advance(10_000)
    gate.release()
    await Promise.all([loop.stop(), clock.advance(10_000), running])
    // 4,096 until a beat has shown more; then 2,000 in a second make 3,000 in half of three.
    expect(rooms[0]).toBe(4_096)
    expect(rooms[1]).toBe(2_096)
    expect(rooms.at(-1)).toBe(1_000)
  })

  it('that was slow once is given more leases again when beats come in time, and none are kept from what waits for others', async () => {
    let tookMs = 2_900
    const rooms: number[] = []
    const extend = async (deliveries: readonly Delivery<string>[]) => {
      await clock.sleep(tookMs)
      return deliveries.map(() => 'held' as const)
    }
    const { clock, loop, source } = looping([], {
      feed: {
        lease: { ms: 90_000, everyMs: 3_000, extend },
        pull: async () => ({
          items: rooms.length === 1 ? Array.from({ length: 1_500 }, (_, i) => `i${i}`) : [],
          more: false,
        }),
      },
    })
    const deliveries: Delivery<string>[] = []
    const gate = held()
    const by = policy({
      capacity: (_held, leasesLeft) => {
        rooms.push(leasesLeft)
        return 10
      },
    })
    const running = loop.run(source, by, async ([delivery]) => {
      deliveries.push(delivery)
      await gate.promise
      return ['ok']
    })
    await clock.advance(30_000)
    // As few as one call extends: less would be no worker at all.
    expect(rooms.at(-1)).toBe(0)
    for (const delivery of deliveries.slice(0, 800)) delivery.moveTo('lent')
    await clock.advance(2_000)
    expect(rooms.at(-1)).toBe(300)
    tookMs = 10
    await clock.advance(20_000)
    expect(rooms.at(-1)).toBeGreaterThan(2_000)
    gate.release()
    await Promise.all([loop.stop(), clock.advance(10_000), running])
  })

  it('that fails is reported once, until one is answered', async () => {
    let isAway = true
    const { clock, loop, source, failures } = looping(['a', 'b'], {
      feed: {
        lease: {
          ms: 90_000,
          everyMs: 1_000,
          extend: async (deliveries: readonly Delivery<string>[]) => {
            if (isAway) throw new Error('away')
            return deliveries.map(() => 'held' as const)
          },
        },
      },
    })
    const gate = held()
    const running = loop.run(source, policy(), async () => {
      await gate.promise
      return ['ok']
    })
    await clock.advance(10_500)
    expect(failures).toHaveLength(1)
    isAway = false
    await clock.advance(2_000)
    isAway = true
    await clock.advance(5_000)
    expect(failures).toHaveLength(2)
    gate.release()
    await Promise.all([clock.advance(1_000), running])
  })

  it('of many leases lets the event loop in between its calls', async () => {
    const order: string[] = []
    const clock = new BusyClock(() => order.push('turn'))
    const lease = {
      ms: 3_000,
      extend: async (deliveries: readonly Delivery<string>[]) => {
        order.push('call')
        clock.workedMs += 5
        return deliveries.map(() => 'held' as const)
      },
    }
    const items = Array.from({ length: 6_000 }, (_, i) => `i${i}`)
    const { loop, source } = looping(items, { feed: { lease }, options: { clock } })
    const gate = held()
    const running = loop.run(source, policy(), async () => {
      await gate.promise
      return ['ok']
    })
    await clock.fake.advance(1_000)
    // The turns are those of the real event loop, which the fake clock does not wait for.
    await expect.poll(() => order.filter((word) => word === 'call')).toHaveLength(6)
    gate.release()
    await running
    expect(order.join(' ')).not.toContain('call call')
  })
})
