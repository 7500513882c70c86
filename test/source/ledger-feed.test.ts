import { describe, expect, it } from 'vitest'
import { memoryBackend } from '../../src/backends/memory/backend.js'
import { GroupCommit } from '../../src/core/group-commit.js'
import type { Clock } from '../../src/core/time/clock.js'
import { ownedBy } from '../../src/ports/find-ledger.js'
import type { ClaimedItem, Envelope } from '../../src/ports/item.js'
import type { Ledger, WorkerRecord } from '../../src/ports/ledger.js'
import type { CommitResult, Effect, Settlement } from '../../src/ports/settlement.js'
import {
  type LedgerFeedOptions,
  ledgerFeed,
  type Outgoing,
  type PendingSettlement,
} from '../../src/source/feeds/ledger-feed.js'
import type { Admission, RunDeliveries } from '../../src/source/loop/admission.js'
import type { Delivery } from '../../src/source/loop/delivery.js'
import { LeaseLostError } from '../../src/source/loop/errors.js'
import { Loop } from '../../src/source/loop/loop.js'
import type { LoopObserver } from '../../src/source/loop/loop-observer.js'
import type { LoopOptions } from '../../src/source/loop/loop-options.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { held } from './hopper/support.js'

const DAY = 86_400_000
const worker: WorkerRecord = { id: 'w1', host: 'here', version: '1', types: ['t'], queues: ['default'] }

/** The least policy there is: so many at a time, in the order of arrival. */
class AtOnce implements Admission<ClaimedItem> {
  readonly #max: number
  readonly #waiting: Delivery<ClaimedItem>[] = []
  #running = 0
  #carry: RunDeliveries<ClaimedItem> | undefined
  #wake: (() => void) | undefined
  constructor(max: number, prefetch = 0) {
    this.#max = max
    this.#prefetch = prefetch
  }
  readonly #prefetch: number
  attach(carry: RunDeliveries<ClaimedItem>): void {
    this.#carry = carry
  }
  capacity(): number {
    return this.#max + this.#prefetch - this.#running - this.#waiting.length
  }
  offer(delivery: Delivery<ClaimedItem>): 'taken' {
    this.#waiting.push(delivery)
    this.#start()
    return 'taken'
  }
  onRoom(wake: () => void): () => void {
    this.#wake = wake
    return () => undefined
  }
  finish(): void {}
  drain(): readonly Delivery<ClaimedItem>[] {
    return this.#waiting.splice(0)
  }
  #start(): void {
    while (this.#running < this.#max && this.#waiting.length > 0) {
      this.#running += 1
      this.#carry!([this.#waiting.shift()!], undefined, () => {
        this.#running -= 1
        this.#start()
        this.#wake?.()
      })
    }
  }
}

/** The memory backend's own ledger with every call watched. */
function openLedger(clock: Clock, over: (ledger: Ledger) => Partial<Ledger> = () => ({})) {
  const backend = memoryBackend({ clock })
  const owned = ownedBy(backend, [])
  if (!('open' in owned)) throw new Error('the memory backend owns its ports')
  const inner = owned.open({ prefix: 'work:' })
  const commits: number[] = []
  const claims: { readonly queue: string; readonly max: number }[][] = []
  const ledger: Ledger = Object.assign(Object.create(inner) as Ledger, {
    claim: (ask: Parameters<Ledger['claim']>[0]) => {
      claims.push([...ask.queues])
      return inner.claim(ask)
    },
    commit: (batch: readonly Settlement[]) => {
      commits.push(batch.length)
      return inner.commit(batch)
    },
    ...over(inner),
  })
  return { backend, inner, ledger, commits, claims }
}

function itemOf(clock: Clock, id: string, over: Partial<Envelope> = {}): Envelope {
  const now = clock.now()
  return {
    id,
    type: 't',
    groupId: `g-${id}`,
    input: 'null',
    queueAt: now,
    startAt: now,
    attempt: 1,
    priority: 0,
    ...over,
  }
}

const pushed = (item: Envelope, how: { readonly queue?: string; readonly delayMs?: number } = {}): Settlement => ({
  guard: { by: 'absent', id: item.id },
  effects: [
    { do: 'joinGroup', groupId: item.groupId, count: 1 },
    { do: 'enqueue', item, queue: how.queue ?? 'default', delayMs: how.delayMs ?? 0 },
  ],
})

const done = ({ item }: Delivery<ClaimedItem>, more: readonly Effect[] = []): PendingSettlement => ({
  settlement: {
    guard: { by: 'lease', lease: item.lease },
    effects: [
      ...more,
      { do: 'complete', id: item.envelope.id, ending: 'completed', keepMs: DAY },
      { do: 'leaveGroup', groupId: item.envelope.groupId, count: 1 },
    ],
  },
})

interface Setup {
  readonly over?: (ledger: Ledger) => Partial<Ledger>
  readonly feed?: Partial<LedgerFeedOptions>
  readonly loop?: Partial<LoopOptions>
  readonly observer?: LoopObserver<ClaimedItem, PendingSettlement>
}

function working({ over, feed = {}, loop = {}, observer = {} }: Setup = {}) {
  const clock = new FakeClock()
  const opened = openLedger(clock, over)
  const outcomes = new GroupCommit<Outgoing, CommitResult>({
    flush: (batch) => opened.ledger.commit(batch.map(({ settlement }) => settlement)),
  })
  const source = ledgerFeed({
    ledger: opened.ledger,
    outcomes,
    queues: ['default'],
    leaseMs: 30_000,
    heartbeatMs: 10_000,
    worker,
    clock,
    retryQueueMs: 100,
    ...feed,
  })
  const patience = { attempts: Infinity, baseMs: 100, maxMs: 5_000, timeoutMs: 5_000 }
  const engine = new Loop<ClaimedItem, PendingSettlement>(
    {
      clock,
      settle: patience,
      maxSettleFailures: Infinity,
      fetchRetry: { attempts: Infinity, delayMs: () => 100 },
      idlePollMs: 60_000,
      graceMs: 0,
      ...loop,
    },
    observer,
  )
  return { ...opened, clock, groupCommit: outcomes, source, engine }
}

describe('the loop over a ledger', () => {
  it('claims, runs and settles a thousand items, each exactly once', async () => {
    const { clock, ledger, inner, source, engine } = working()
    const items = Array.from({ length: 1_000 }, (_, i) => itemOf(clock, `i${i}`))
    await ledger.commit(items.map((item) => pushed(item)))
    const runs = new Map<string, number>()
    const running = engine.run(source, new AtOnce(64), async ([delivery]) => {
      const { id } = delivery.item.envelope
      runs.set(id, (runs.get(id) ?? 0) + 1)
      if (runs.size % 7 === 0) await clock.sleep(5)
      return [done(delivery)]
    })
    await clock.advance(10_000)
    await engine.stop()
    expect(await running).toMatchObject({ received: 1_000, settled: 1_000, lost: 0, returned: 0, abandoned: 0 })
    expect([...runs.values()]).toEqual(items.map(() => 1))
    const views = await inner.read(items.map(({ id }) => id))
    expect(views.map((view) => view?.status)).toEqual(items.map(() => 'completed'))
    expect(clock.pending).toBe(0)
  })

  it('writes a hundred settlements that end together in one commit', async () => {
    const { clock, ledger, source, engine, commits } = working()
    await ledger.commit(Array.from({ length: 100 }, (_, i) => pushed(itemOf(clock, `i${i}`))))
    commits.length = 0
    const gate = held()
    const running = engine.run(source, new AtOnce(100), async ([delivery]) => {
      await gate.promise
      return [done(delivery)]
    })
    await clock.settle()
    gate.release()
    await clock.settle()
    expect(commits).toEqual([100])
    await engine.stop()
    expect(await running).toMatchObject({ settled: 100 })
  })

  it('starts an item at its due time, by one timer and not by a poll', async () => {
    const { clock, ledger, source, engine, claims } = working()
    const startedAt: number[] = []
    const running = engine.run(source, new AtOnce(10), async ([delivery]) => {
      startedAt.push(clock.monotonic())
      return [done(delivery)]
    })
    await clock.settle()
    await ledger.commit([pushed(itemOf(clock, 'later'), { delayMs: 1_234 })])
    await clock.advance(1_000)
    await ledger.commit([pushed(itemOf(clock, 'sooner'), { delayMs: 100 })])
    await clock.advance(1_000)
    expect(startedAt).toEqual([1_100, 1_234])
    // It claims at the start, when notified of each, and when each is due; an idle minute has no claims.
    const sent = claims.length
    expect(sent).toBeLessThanOrEqual(8)
    await clock.advance(50_000)
    expect(claims.length).toBe(sent)
    await engine.stop()
    await running
  })

  it('starts immediately what is pushed meanwhile', async () => {
    const { clock, ledger, source, engine } = working()
    const seen: string[] = []
    const running = engine.run(source, new AtOnce(10), async ([delivery]) => {
      seen.push(delivery.item.envelope.id)
      return [done(delivery)]
    })
    await clock.settle()
    await ledger.commit([pushed(itemOf(clock, 'a'))])
    await clock.settle()
    expect(seen).toEqual(['a'])
    expect(clock.monotonic()).toBe(0)
    await engine.stop()
    await running
  })
})

describe('leases', () => {
  it('are kept by one call per beat for all that is held', async () => {
    const beats: number[] = []
    const { clock, ledger, source, engine } = working({
      over: (inner) => ({
        extend: (leases, leaseMs, me) => {
          beats.push(leases.length)
          return inner.extend(leases, leaseMs, me)
        },
      }),
    })
    await ledger.commit(Array.from({ length: 100 }, (_, i) => pushed(itemOf(clock, `i${i}`))))
    const running = engine.run(source, new AtOnce(100), async ([delivery]) => {
      await clock.sleep(95_000)
      return [done(delivery)]
    })
    await clock.advance(95_000)
    expect(beats).toEqual(Array.from({ length: 9 }, () => 100))
    await engine.stop()
    expect(await running).toMatchObject({ settled: 100, lost: 0 })
  })

  it('that lapse are lost: the run is notified, and its settlement changes nothing', async () => {
    const { clock, ledger, inner, source, engine } = working({
      // A process that cannot reach its ledger to beat.
      over: () => ({ extend: () => Promise.reject(new Error('away')) }),
    })
    await ledger.commit([pushed(itemOf(clock, 'a'))])
    const reasons: unknown[] = []
    const gate = held()
    let runs = 0
    const running = engine.run(source, new AtOnce(2), async ([delivery]) => {
      runs += 1
      if (runs > 1) return [done(delivery)]
      delivery.signal.addEventListener('abort', () => reasons.push(delivery.signal.reason))
      await gate.promise
      return [done(delivery)]
    })
    await clock.advance(61_000)
    expect(reasons).toEqual([expect.any(LeaseLostError)])
    expect(runs).toBe(2)
    gate.release()
    await clock.settle()
    await engine.stop()
    expect(await running).toMatchObject({ received: 2, settled: 1, lost: 1 })
    expect(await inner.read(['a'])).toMatchObject([{ status: 'completed', lapses: 1 }])
  })

  it('that another worker took over are lost at the settlement', async () => {
    const { clock, ledger, inner, source, engine } = working({
      over: () => ({ extend: async (all) => all.map(() => 'held' as const) }),
    })
    await ledger.commit([pushed(itemOf(clock, 'a'))])
    const running = engine.run(source, new AtOnce(1), async ([delivery]) => {
      await clock.sleep(31_000)
      // Another worker claims what has lapsed.
      await inner.claim({ queues: [{ queue: 'default', max: 1 }], leaseMs: 60_000, worker: 'w2' })
      return [done(delivery)]
    })
    await clock.advance(31_000)
    await engine.stop()
    expect(await running).toMatchObject({ settled: 0, lost: 1 })
    expect(await inner.read(['a'])).toMatchObject([{ status: 'running', worker: 'w2' }])
  })
})

describe('a stop', () => {
  it('gives back what has not started, without an attempt and in its place, in one commit', async () => {
    const { clock, ledger, inner, source, engine, commits } = working()
    await ledger.commit(Array.from({ length: 10 }, (_, i) => pushed(itemOf(clock, `i${i}`))))
    const running = engine.run(source, new AtOnce(1, 9), async ([delivery]) => {
      await clock.sleep(100)
      return [done(delivery)]
    })
    await clock.settle()
    commits.length = 0
    const stopped = engine.stop()
    await clock.advance(100)
    await stopped
    expect(await running).toMatchObject({ received: 10, settled: 1, returned: 9 })
    expect(commits).toEqual([9, 1])
    const reply = await inner.claim({
      queues: [{ queue: 'default', max: 20 }],
      leaseMs: 1_000,
      worker: 'w2',
    })
    expect(
      reply.items.map(({ envelope, lapses, crashes }) => [envelope.id, envelope.attempt, lapses, crashes]),
    ).toEqual(Array.from({ length: 9 }, (_, i) => [`i${i + 1}`, 1, 0, 0]))
  })

  it('gives back what a claim brings that was under way', async () => {
    const gate = held()
    const { clock, ledger, source, engine, inner } = working({
      over: (l) => ({
        claim: async (ask) => {
          const reply = await l.claim(ask)
          await gate.promise
          return reply
        },
      }),
    })
    await ledger.commit([pushed(itemOf(clock, 'a'))])
    const running = engine.run(source, new AtOnce(1), async ([delivery]) => [done(delivery)])
    await clock.settle()
    const stopped = engine.stop()
    await clock.settle()
    gate.release()
    await stopped
    expect(await running).toMatchObject({ received: 1, settled: 0, returned: 1 })
    expect(await inner.read(['a'])).toMatchObject([{ status: 'pending' }])
  })

  it('does not wait for a ledger that is away: the outcome is left to the lease', async () => {
    const { clock, ledger, source, engine, groupCommit } = working()
    await ledger.commit([pushed(itemOf(clock, 'a'))])
    const running = engine.run(source, new AtOnce(1), async ([delivery]) => [done(delivery)])
    groupCommit.addFor = (to) => to.reject(new Error('away'))
    await clock.advance(1_000)
    await engine.stop()
    expect(await running).toMatchObject({ settled: 0, settleFailures: 1 })
  })
})

describe('a settlement', () => {
  it('is folded again when the value of its group has moved on', async () => {
    const { clock, ledger, inner, source, engine } = working()
    const group = { groupId: 'g' }
    await ledger.commit([pushed(itemOf(clock, 'a', group)), pushed(itemOf(clock, 'b', group))])
    const folds: string[] = []
    const running = engine.run(source, new AtOnce(2), async ([delivery]) => {
      const { id } = delivery.item.envelope
      const append = (now: { readonly value?: string; readonly version: number }): Settlement => {
        const value = `${now.value ?? ''}${id}`
        folds.push(value)
        return done(delivery, [{ do: 'setGroupValue', groupId: 'g', value, final: false, ifVersion: now.version }])
          .settlement
      }
      return [{ settlement: append({ version: 0 }), refold: append }]
    })
    await clock.settle()
    await engine.stop()
    expect(await running).toMatchObject({ settled: 2 })
    // Both began from nothing; the second one folded once more.
    expect(folds).toEqual(['a', 'b', 'ab'])
    expect(await inner.groups(['g'])).toMatchObject([{ value: 'ab', open: 0 }])
  })

  it('that is refused is replaced once, and an item never loops on it', async () => {
    const { clock, ledger, inner, source, engine } = working()
    await ledger.commit([pushed(itemOf(clock, 'big'))])
    const running = engine.run(source, new AtOnce(1), async ([delivery]) => {
      const { item } = delivery
      const guard = { by: 'lease' as const, lease: item.lease }
      const finish: Effect = {
        do: 'complete',
        id: 'big',
        ending: 'completed',
        result: 'x'.repeat(2_000_000),
        keepMs: DAY,
      }
      return [
        {
          settlement: { guard, effects: [finish, { do: 'leaveGroup', groupId: 'g-big', count: 1 }] },
          refused: (result) => ({
            guard,
            effects: [
              { do: 'deadLetter', id: 'big', ending: 'aborted', class: 'poison', error: result.message, keepMs: DAY },
              { do: 'leaveGroup', groupId: 'g-big', count: 1 },
            ],
          }),
        },
      ]
    })
    await clock.settle()
    await engine.stop()
    expect(await running).toMatchObject({ settled: 1 })
    expect(await inner.read(['big'])).toMatchObject([{ status: 'dead', class: 'poison' }])
  })

  it('whose replacement is refused as well is an error, not an endless round', async () => {
    const { clock, ledger, source, engine, commits } = working({
      loop: { settle: { attempts: 1, baseMs: 1, maxMs: 1, timeoutMs: 100 } },
    })
    await ledger.commit([pushed(itemOf(clock, 'big'))])
    commits.length = 0
    const running = engine.run(source, new AtOnce(1), async ([delivery]) => {
      const guard = { by: 'lease' as const, lease: delivery.item.lease }
      const finish: Effect = {
        do: 'complete',
        id: 'big',
        ending: 'completed',
        result: 'x'.repeat(2_000_000),
        keepMs: DAY,
      }
      const again: Settlement = { guard, effects: [finish] }
      return [{ settlement: again, refused: () => again }]
    })
    await clock.settle()
    await engine.stop()
    expect(await running).toMatchObject({ settled: 0, settleFailures: 1 })
    expect(commits).toEqual([1, 1])
  })

  it('is tried until the ledger is back, and the handler is not run again', async () => {
    let isAway = false
    const { clock, ledger, source, engine } = working({
      over: (inner) => ({
        commit: (batch) => (isAway ? Promise.reject(new Error('away')) : inner.commit(batch)),
      }),
    })
    await ledger.commit([pushed(itemOf(clock, 'a'))])
    let runs = 0
    const running = engine.run(source, new AtOnce(1), async ([delivery]) => {
      runs += 1
      isAway = true
      return [done(delivery)]
    })
    await clock.advance(120_000)
    isAway = false
    await clock.advance(10_000)
    await engine.stop()
    expect(await running).toMatchObject({ settled: 1 })
    expect(runs).toBe(1)
  })
})

describe('several queues', () => {
  const queues = ['default', 'bulk', 'mail']

  it('get equal parts of the capacity, never more than it together, and another leads each time', async () => {
    const { clock, ledger, source, engine, claims } = working({ feed: { queues } })
    for (const queue of queues) {
      await ledger.commit(Array.from({ length: 4 }, (_, i) => pushed(itemOf(clock, `${queue}-${i}`), { queue })))
    }
    const order: string[] = []
    const running = engine.run(source, new AtOnce(4), async ([delivery]) => {
      order.push(delivery.item.lease.queue)
      await clock.sleep(10)
      return [done(delivery)]
    })
    await clock.advance(1_000)
    await engine.stop()
    expect(await running).toMatchObject({ settled: 12 })
    for (const from of claims) {
      expect(from.reduce((sum, share) => sum + share.max, 0)).toBeLessThanOrEqual(4)
      expect(from.every((share) => share.max >= 1)).toBe(true)
    }
    expect(claims[0]).toEqual([
      { queue: 'default', max: 2 },
      { queue: 'bulk', max: 1 },
      { queue: 'mail', max: 1 },
    ])
    expect(claims.slice(0, 3).map(([first]) => first?.queue)).toEqual(['default', 'bulk', 'mail'])
    for (const queue of queues) expect(order.filter((q) => q === queue)).toHaveLength(4)
  })

  it('are all asked although there is a place for one only', async () => {
    const { clock, ledger, source, engine, claims } = working({ feed: { queues } })
    await ledger.commit([pushed(itemOf(clock, 'm'), { queue: 'mail' })])
    const running = engine.run(source, new AtOnce(1), async ([delivery]) => [done(delivery)])
    await clock.settle()
    expect(claims.slice(0, 3)).toEqual([
      [{ queue: 'default', max: 1 }],
      [{ queue: 'bulk', max: 1 }],
      [{ queue: 'mail', max: 1 }],
    ])
    await engine.stop()
    expect(await running).toMatchObject({ settled: 1 })
  })

  it('go on while one of them cannot be asked; that one sits out longer each time, and comes back', async () => {
    const asked: number[] = []
    let isBroken = true
    const setup = working({
      feed: { queues: ['default', 'bulk'] },
      over: (inner) => ({
        claim: async (ask) => {
          const bulk = ask.queues.some((share) => share.queue === 'bulk')
          if (bulk) asked.push(setup.clock.monotonic())
          if (!bulk || !isBroken) return inner.claim(ask)
          const reply = await inner.claim({ ...ask, queues: ask.queues.filter((share) => share.queue !== 'bulk') })
          return { ...reply, failedQueues: [{ queue: 'bulk', error: new Error('away') }] }
        },
      }),
    })
    const { clock, ledger, source, engine } = setup
    const seen: string[] = []
    const running = engine.run(source, new AtOnce(10), async ([delivery]) => {
      seen.push(delivery.item.envelope.id)
      return [done(delivery)]
    })
    await clock.settle()
    await ledger.commit([pushed(itemOf(clock, 'b'), { queue: 'bulk' }), pushed(itemOf(clock, 'd'))])
    await clock.advance(1_000)
    expect(seen).toEqual(['d'])
    expect(asked).toEqual([0, 100, 300, 700])
    isBroken = false
    await clock.advance(1_000)
    expect(seen).toEqual(['d', 'b'])
    await engine.stop()
    await running
  })
})
