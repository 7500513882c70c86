import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Redis } from 'ioredis'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { redisBackend } from '../../../src/backends/redis/index.js'
import type { ClaimedItem, Envelope } from '../../../src/ports/item.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import type { Effect, Settlement } from '../../../src/ports/settlement.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { startRedis } from '../../servers/index.js'
import { ledgerOn } from '../ledger-on.js'
import { claim as claimAny, DAY, deadLetter, enqueue, envelope, finish, ids, ran } from '../native.js'
import { wrongIn } from './true-lists.js'

const server = await startRedis()
const admin = new Redis(server.url)
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
  const wrong = await wrongIn(admin, 'millrace')
  await server.flush()
  expect(wrong).toEqual([])
})
afterAll(async () => {
  admin.disconnect()
  await server.stop()
})

const KEY = (name: string) => `{millrace}:${name}`
const me = { id: 'w1', host: 'h', version: '0', types: ['t'], queues: ['default'] }

function open() {
  const clock = new FakeClock()
  const backend = redisBackend({ url: server.url, clock })
  closing.push(() => backend.close())
  return { clock, ledger: ledgerOn(backend) }
}

/** An item alone in its group, as most are. */
const alone = (id: string, over: Partial<Envelope> = {}) =>
  envelope(id, { groupId: id, queueAt: 5, startAt: 7, ...over })
const push = (ledger: Ledger, ...names: readonly string[]) => ledger.commit(names.map((id) => enqueue(alone(id))))
const end = (item: ClaimedItem, result?: string) => finish(item, result, [ran(item)])
const isLight = async (id: string) => (await admin.hget(KEY('items'), id))?.startsWith('h') === true

/** A claim with room for all types is served by a script of its own while nothing but light items waits. */
async function claimWithRoom(ledger: Ledger, max = 100): Promise<readonly ClaimedItem[]> {
  const rooms = [{ types: ['t', 'u', 'v'], max }]
  const { items } = await ledger.claim({ queues: [{ queue: 'default', max }], rooms, leaseMs: 30_000, worker: 'w1' })
  return items
}

describe.each([
  ['any type', claimAny],
  ['the types that it knows', claimWithRoom],
])('for a worker that asks for %s', (_, claim) => {
  const inOrder = async (ledger: Ledger) => ids(await claim(ledger))

  describe('an item to which nothing happens', () => {
    it('is a text from its enqueue to its removal, and nothing else is kept of it', async () => {
      const { clock, ledger } = open()
      const retry = { attempts: 3 }
      await ledger.commit([enqueue(alone('a', { retry, priority: 2, input: '"ä"', parent: 'p' })), enqueue(alone('b'))])

      const [a, b] = await claim(ledger)
      expect(a).toMatchObject({ lapses: 0, crashes: 0, deliveries: 1 })
      expect(a?.envelope).toEqual(alone('a', { retry, priority: 2, input: '"ä"', parent: 'p' }))
      expect(b?.lease.fence).toBeGreaterThan(0)
      expect(await ledger.commit([end(a!, '"r"'), end(b!)])).toEqual([
        { kind: 'applied', closed: [{ groupId: 'a' }] },
        { kind: 'applied', closed: [{ groupId: 'b' }] },
      ])

      expect(await isLight('a')).toBe(true)
      expect(await ledger.read(['a'])).toMatchObject([
        {
          status: 'completed',
          ending: 'completed',
          result: '"r"',
          endAt: clock.now(),
          envelope: { id: 'a', priority: 2, queueAt: 5 },
        },
      ])
      expect(await ledger.inspect!.attempts('a')).toMatchObject([
        { attempt: 1, startedAt: 1, endedAt: 2, worker: 'w1' },
      ])
      expect(await ledger.inspect!.input('a')).toBe('"ä"')
      expect(await ledger.groups(['a'])).toEqual([{ final: false, version: 0, open: 0 }])
      expect(await ledger.inspect!.count({ state: 'completed' })).toBe(2)
      expect(await admin.exists(KEY('groups'), KEY('inputs'), KEY('results'), KEY('claims'))).toBe(0)

      await clock.advance(DAY)
      const { removed } = await ledger.claim({ queues: [{ queue: 'default', max: 1 }], leaseMs: 1, worker: 'w' })
      expect(removed).toBe(2)
      const left = (await admin.keys('*')).filter((key) => !/:(mode|storage|seq|claim-seq)$/.test(key))
      expect(left).toEqual([])
    })

    it('is enqueued once: again in the same batch, after a lost reply, or beside a whole item of that id', async () => {
      const { ledger } = open()
      const kinds = async (...batch: readonly Settlement[]) => (await ledger.commit(batch)).map(({ kind }) => kind)
      await ledger.commit([enqueue(envelope('whole'))])

      expect(await kinds(...['a', 'b', 'a', 'whole', 'c'].map((id) => enqueue(alone(id))))).toEqual([
        'applied',
        'applied',
        'repeated',
        'repeated',
        'applied',
      ])
      expect(await kinds(enqueue(alone('a')), enqueue(alone('d')))).toEqual(['repeated', 'applied'])
      expect(await inOrder(ledger)).toEqual(['whole', 'a', 'b', 'c', 'd'])
    })

    it('arrives in the order of its batch, whatever stands beside it there', async () => {
      const { ledger } = open()
      const names = Array.from({ length: 40 }, (_, i) => `i${i}`)
      for (const every of [2, 9]) {
        const batch = names.map((id, i) => `${every}-${id}${i % every === 0 ? '-tagged' : ''}`)
        await ledger.commit(
          batch.map((id) =>
            enqueue(alone(id, { type: id.length % 2 === 0 ? 't' : 'u', ...(id.endsWith('d') ? { tags: ['x'] } : {}) })),
          ),
        )
        expect(await inOrder(ledger)).toEqual(batch)
      }
    })

    it('says the same of its envelope as a text and as a whole record', async () => {
      const { ledger } = open()
      const retry = { attempts: 3, base: 1000, factor: 1.5, max: 30_000, jitter: 0.5 }
      const kinds: Partial<Envelope>[] = [
        { v: 1, retry },
        { v: 1, retry, queueAt: 1_795_065_077_601, startAt: 1_795_065_077_601, priority: -3 },
        { v: 1, retry: { ...retry, attempts: Number.MAX_SAFE_INTEGER } },
        { v: 1, retry: { attempts: 3, base: 1000 } },
        { v: 1, retry, parent: 'p', group: 'g', unknown: { as: ['it', 'is'] } },
        { retry },
        {},
      ]
      const all = kinds.map((over, i) => alone(`i${i}`, { startAt: 5, ...over }))
      await ledger.commit(all.map((item) => enqueue(item)))
      const light = (await ledger.read(all.map(({ id }) => id))).map((view) => view?.envelope)
      await ledger.watch('inbox', { itemIds: all.map(({ id }) => id), groupIds: [] })
      expect(await isLight('i0')).toBe(false)
      const whole = (await ledger.read(all.map(({ id }) => id))).map((view) => view?.envelope)
      expect(light).toEqual(all.map(({ input: _, ...rest }) => rest))
      expect(whole).toEqual(light)
      const again = await claim(ledger)
      expect(again.map((item) => item.envelope).toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(all)
      await ledger.commit(all.map((item) => enqueue({ ...item, id: `${item.id}-light`, groupId: `${item.id}-light` })))
      const claimed = (await claim(ledger)).map(({ envelope: { id: _, groupId: __, ...rest } }) => rest)
      const sorted = all.toSorted((a, b) => b.priority - a.priority).map(({ id: _, groupId: __, ...rest }) => rest)
      expect(claimed).toEqual(sorted)
    })

    it('has a long input beside its text, so that lists do not load it', async () => {
      const { ledger } = open()
      const input = JSON.stringify('x'.repeat(5_000))
      await ledger.commit([enqueue(alone('long', { input })), enqueue(alone('short'))])
      expect((await admin.hget(KEY('items'), 'long'))?.length).toBeLessThan(200)
      expect(await ledger.inspect!.input('long')).toBe(input)

      const items = await claim(ledger)
      expect(items.map(({ envelope: { input } }) => input)).toEqual([input, 'null'])
      await ledger.commit(items.map((item) => end(item)))
      expect(await ledger.inspect!.input('long')).toBe(input)
    })

    it('notifies the inbox that it was enqueued with', async () => {
      const { ledger } = open()
      const heard: unknown[] = []
      const leave = ['one', 'two'].map((inbox) => ledger.onInbox(inbox, (what) => heard.push([inbox, what])))
      await ledger.commit(
        ['a', 'b', 'c', 'd', 'e'].map((id, i) => enqueue(alone(id, i === 1 ? {} : { waiter: i < 3 ? 'one' : 'two' }))),
      )
      expect([await isLight('a'), await isLight('d')]).toEqual([true, true])
      const items = await claim(ledger)
      // A second item in the group of one that waits, and in that of one that runs.
      await ledger.commit([enqueue(alone('child', { groupId: 'e' }))])
      const results = await ledger.commit(items.map((item) => end(item)))
      expect(results.map((result) => result.kind === 'applied' && result.closed)).toEqual([
        [{ groupId: 'a', watched: true }],
        [{ groupId: 'b' }],
        [{ groupId: 'c', watched: true }],
        [{ groupId: 'd', watched: true }],
        [],
      ])
      const [child] = await claim(ledger)
      expect(await ledger.commit([finish(child!)])).toEqual([
        { kind: 'applied', closed: [{ groupId: 'e', watched: true }] },
      ])
      while (heard.length < 4) await new Promise((resolve) => setImmediate(resolve))
      expect(heard).toEqual([
        ['one', { itemIds: ['a', 'c'], groupIds: ['a', 'c'] }],
        ['two', { itemIds: ['d'], groupIds: ['d'] }],
        ['two', { itemIds: ['e'], groupIds: [] }],
        ['two', { itemIds: [], groupIds: ['e'] }],
      ])
      for (const one of leave) one()
    })

    it('ends once, by the lease that it was claimed with', async () => {
      const { ledger } = open()
      await push(ledger, 'a', 'b')
      const [a, b] = await claim(ledger)
      const kinds = async (...batch: readonly Settlement[]) => (await ledger.commit(batch)).map(({ kind }) => kind)
      const forged = {
        ...a!,
        lease: Object.assign(Object.create(Object.getPrototypeOf(a!.lease)), a!.lease) as ClaimedItem['lease'],
      }
      Object.assign(forged.lease, {
        token: 'guessed',
        claim: { ...(a!.lease as unknown as { claim: object }).claim, key: 'guessed' },
      })

      expect(await kinds(end(forged), end(b!))).toEqual(['stale', 'applied'])
      expect(await kinds(end(a!), end(b!))).toEqual(['applied', 'repeated'])
      expect(await kinds(end(forged))).toEqual(['stale'])
    })
  })

  it('ends in its place in its batch where another settlement names it', async () => {
    const { ledger } = open()
    await push(ledger, 'redriven', 'cancelled', 'valued', 'waited for')
    const [redriven, cancelled, valued, waitedFor] = await claim(ledger)
    const again: Effect[] = [
      { do: 'joinGroup', groupId: 'redriven', count: 1 },
      { do: 'redrive', id: 'redriven', delayMs: 0 },
    ]
    const value: Effect = { do: 'setGroupValue', groupId: 'valued', value: '1', final: false }
    const gate: Effect = { do: 'openGate', key: 'g', heldId: 'gate', members: ['waited for'], need: 1, of: 'done' }
    const kinds = async (...batch: readonly Settlement[]) => (await ledger.commit(batch)).map(({ kind }) => kind)

    const ended = end(redriven!)
    const back = { guard: { by: 'status', id: 'redriven', in: ['completed'] }, effects: again } as const
    expect(await kinds(ended, back, ended)).toEqual(['applied', 'applied', 'repeated'])
    const cancel: Effect = { do: 'requestCancel', id: 'cancelled', reason: 'r' }
    const asked = { guard: { by: 'status', id: 'cancelled', in: ['running'] }, effects: [cancel] } as const
    expect(await kinds(asked, end(cancelled!))).toEqual(['applied', 'applied'])
    expect(await ledger.commit([{ guard: { by: 'none' }, effects: [value] }, end(valued!)])).toMatchObject([
      { closed: [] },
      { closed: [{ groupId: 'valued', value: '1' }] },
    ])
    const hold = { delayMs: Number.POSITIVE_INFINITY, hold: { by: 'gate', key: 'g' } } as const
    expect(await kinds(end(waitedFor!), enqueue(alone('gate'), hold, [gate]))).toEqual(['applied', 'applied'])
    expect((await inOrder(ledger)).toSorted()).toEqual(['gate', 'redriven'])
  })

  describe('an item becomes a whole record', () => {
    it('when its lease lapses, and comes back in its place', async () => {
      const { clock, ledger } = open()
      await push(ledger, 'a', 'b')
      const [first] = await claim(ledger, 1)
      await push(ledger, 'c')
      await clock.advance(30_000)

      const items = await claim(ledger)
      expect(items.map(({ lease, lapses, crashes }) => [lease.id, lapses, crashes])).toEqual([
        ['a', 1, 0],
        ['b', 0, 0],
        ['c', 0, 0],
      ])
      expect(items[0]!.lease.fence).toBeGreaterThan(first!.lease.fence)
      expect(await ledger.commit([end(first!)])).toEqual([{ kind: 'stale' }])
      expect((await ledger.commit(items.map((item) => end(item)))).map(({ kind }) => kind)).toEqual([
        'applied',
        'applied',
        'applied',
      ])
    })

    it('with its first heartbeat, while the others of its claim lapse', async () => {
      const { clock, ledger } = open()
      await push(ledger, 'a', 'b')
      const [a] = await claim(ledger)
      await clock.advance(20_000)
      expect(await ledger.extend([{ lease: a!.lease, running: true }], 30_000, me)).toEqual(['held'])
      expect(await ledger.read(['a', 'b'])).toMatchObject([
        { running: true, leaseUntil: clock.now() + 30_000 },
        { running: false },
      ])
      await clock.advance(10_000)
      expect(await inOrder(ledger)).toEqual(['b'])
      expect(await ledger.commit([end(a!, '1')])).toMatchObject([{ kind: 'applied' }])
      expect(await ledger.read(['a'])).toMatchObject([{ status: 'completed', result: '1' }])
    })

    const related: [string, Settlement | ((ledger: Ledger) => Promise<unknown>)][] = [
      ['a second item in its group', enqueue(alone('child', { groupId: 'a' }))],
      [
        'a gate that waits for it',
        enqueue(alone('gate'), { delayMs: Number.POSITIVE_INFINITY, hold: { by: 'gate', key: 'g' } }, [
          { do: 'openGate', key: 'g', heldId: 'gate', members: ['a'], need: 1, of: 'done' } satisfies Effect,
        ]),
      ],
      ['a caller that waits for it', (ledger) => ledger.watch('inbox', { itemIds: ['a'], groupIds: [] })],
      ['a caller that waits for its group', (ledger) => ledger.watch('inbox', { itemIds: [], groupIds: ['a'] })],
    ]
    it.each(related)('with %s, waiting or running', async (_, meet) => {
      for (const isRunning of [false, true]) {
        const { ledger } = open()
        await push(ledger, 'a')
        const early = isRunning ? await claim(ledger) : []
        if (typeof meet === 'function') await meet(ledger)
        else await ledger.commit([meet])
        expect(await isLight('a')).toBe(false)
        const heard: unknown[] = []
        const leave = ledger.onInbox('inbox', (what) => heard.push(what))
        await ledger.paused!({ queues: [], types: [] })

        const [a] = isRunning ? early : (await claim(ledger, 1)).filter(({ lease }) => lease.id === 'a')
        const [result] = await ledger.commit([end(a!)])
        expect(result?.kind).toBe('applied')
        if (typeof meet === 'function') while (heard.length === 0) await ledger.schedules!(['none'])
        leave()
        const open_ = await ledger.groups(['a'])
        if (typeof meet !== 'function') {
          const isChild = meet.guard.by === 'absent' && meet.guard.id === 'child'
          expect(open_).toMatchObject([{ open: isChild ? 1 : 0 }])
          expect(await inOrder(ledger)).toEqual([isChild ? 'child' : 'gate'])
        }
        for (const close of closing.splice(0)) await close()
        await server.flush()
      }
    })

    it('when it is known to a gate before it is enqueued', async () => {
      const { ledger } = open()
      await ledger.commit([
        enqueue(alone('gate'), { delayMs: Number.POSITIVE_INFINITY, hold: { by: 'gate', key: 'g' } }, [
          { do: 'openGate', key: 'g', heldId: 'gate', members: ['a'], need: 1, of: 'done' },
        ]),
      ])
      await push(ledger, 'a', 'b')
      expect([await isLight('a'), await isLight('b')]).toEqual([false, true])
      await ledger.commit((await claim(ledger)).map((item) => end(item)))
      expect(await inOrder(ledger)).toEqual(['gate'])
    })

    it('when it is redriven or dies, with its history', async () => {
      const { clock, ledger } = open()
      await push(ledger, 'a', 'b')
      const [a, b] = await claim(ledger)
      await ledger.commit([end(a!, '1'), deadLetter(b!)])
      expect(await isLight('a')).toBe(true)
      const guard = { by: 'status', id: 'a', in: ['completed'] } as const
      await ledger.commit([
        {
          guard,
          effects: [
            { do: 'joinGroup', groupId: 'a', count: 1 },
            { do: 'redrive', id: 'a', delayMs: 0 },
          ],
        },
      ])
      expect(await ledger.groups(['a'])).toMatchObject([{ open: 1 }])
      const [again] = await claim(ledger)
      expect(again?.envelope).toMatchObject({ id: 'a', redrives: 1, attempt: 1, input: 'null' })
      expect(await ledger.inspect!.attempts('a')).toHaveLength(1)
      // What its first end left behind does not end it a second time.
      await clock.advance(DAY)
      await claim(ledger, 0)
      expect(await ledger.read(['a', 'b'])).toMatchObject([{ status: 'pending', lapses: 1 }, undefined])
    })
  })

  describe('lists of light items', () => {
    it('show them in every state, page by page, beside whole ones', async () => {
      const { clock, ledger } = open()
      for (let n = 0; n < 9; n += 1) {
        await ledger.commit([enqueue(n % 3 === 0 ? envelope(`i${n}`) : alone(`i${n}`, { priority: n % 2 }))])
        await clock.advance(1)
      }
      const list = async (state: 'waiting' | 'active' | 'completed') => {
        const found: string[] = []
        let cursor: string | undefined
        do {
          const page = await ledger.inspect!.list({ state, limit: 2, ...(cursor === undefined ? {} : { cursor }) })
          found.push(...page.items.map((item) => item.envelope.id))
          cursor = page.next
        } while (cursor !== undefined)
        return found
      }
      const all = Array.from({ length: 9 }, (_, n) => `i${n}`)
      expect(await list('waiting')).toEqual(all.toReversed())
      expect(await ledger.inspect!.throughput(1_000)).toMatchObject([{ type: 't', oldestDueAt: clock.now() - 9 }])
      const items = await claim(ledger)
      expect((await list('active')).toSorted()).toEqual(all)
      for (const item of items) {
        await ledger.commit([finish(item)])
        await clock.advance(1)
      }
      expect(await list('completed')).toEqual(ids(items).toReversed())
      expect(await ledger.inspect!.counts()).toEqual([{ queue: 'default', type: 't', counts: { completed: 9 } }])
      expect((await ledger.inspect!.idsStartingWith!('i', 20)).ids.toSorted()).toEqual(all)
    })
  })
})

describe('a light item that has ended', () => {
  it('leaves nothing of its input in memory, also where no other has its trace', async () => {
    setFlagsFromString('--expose-gc')
    const gc = runInNewContext('gc') as () => void
    const { ledger } = open()
    const input = JSON.stringify('x'.repeat(100_000))
    const round = async (n: number) => {
      const names = Array.from({ length: 100 }, (_, i) => `${n}-${i}`)
      await ledger.commit(names.map((id) => enqueue(alone(id, { input, trace: { traceparent: `00-${id}` } }))))
      const items = await claimWithRoom(ledger)
      expect(items.map(({ envelope }) => envelope.trace?.traceparent)).toEqual(names.map((id) => `00-${id}`))
      await ledger.commit(items.map((item) => end(item)))
    }
    await round(0)
    gc()
    const before = process.memoryUsage().heapUsed
    for (let n = 1; n <= 5; n += 1) await round(n)
    gc()
    // Of fifty megabytes.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000)
  })
})

describe('a light item on a server that is full', () => {
  it('is refused before anything of it is written, and claimed and ended if it is there', async () => {
    const { ledger } = open()
    await push(ledger, 'before')
    await admin.config('SET', 'maxmemory', '1mb')
    try {
      await expect(push(ledger, 'after')).rejects.toMatchObject({ code: 'REDIS_FULL' })
      const items = await claimWithRoom(ledger)
      expect(ids(items)).toEqual(['before'])
      expect(await ledger.commit(items.map((item) => end(item, '1')))).toMatchObject([{ kind: 'applied' }])
    } finally {
      await admin.config('SET', 'maxmemory', '0')
    }
    expect(await ledger.read(['before', 'after'])).toMatchObject([{ result: '1' }, undefined])
  })
})

describe('a light item that has lost its place', () => {
  it.each([
    ['a ready one', 'ready:0:7:defaultt', 'pending'],
    ['one whose priority is unknown', 'priorities:7:defaultt', 'pending'],
    ['a running one', 'claim-ends:default', 'running'],
  ] as const)('is reported as stuck, and is freed by a release: %s', async (_, lost, status) => {
    const { ledger } = open()
    await push(ledger, 'done', 'a')
    await ledger.commit((await claimAny(ledger, 1)).map((item) => end(item)))
    if (status === 'running') await claimAny(ledger)
    expect(await ledger.inspect!.stuckItems!({ limit: 9 })).toEqual({ items: [] })

    await admin.del(KEY(lost))
    expect(await ledger.inspect!.stuckItems!({ limit: 9 })).toMatchObject({
      items: [{ status, envelope: { id: 'a' } }],
    })

    const guard = { by: 'status', id: 'a', in: [status] } as const
    await ledger.commit([{ guard, effects: [{ do: 'release', id: 'a', delayMs: 0 }] }])
    expect(await ledger.inspect!.stuckItems!({ limit: 9 })).toEqual({ items: [] })
    expect(ids(await claimAny(ledger))).toEqual(['a'])
  })
})

it('are claimed together with whole ones, in the order of all, by a worker with rooms', async () => {
  const { ledger } = open()
  for (const [i, type] of ['t', 't', 'u', 't', 'v', 'u'].entries())
    await ledger.commit([enqueue(i === 3 ? envelope(`i${i}`, { type }) : alone(`i${i}`, { type }))])
  const room = (max: number) => ({ types: ['t', 'u'], max })
  const take = async (max: number) =>
    ledger.claim({ queues: [{ queue: 'default', max: 9 }], rooms: [room(max)], leaseMs: 30_000, worker: 'w1' })
  const first = await take(2)
  expect([ids(first.items), first.more]).toEqual([['i0', 'i1'], true])
  const none = await take(0)
  expect([ids(none.items), none.more]).toEqual([[], false])
  const rest = await take(9)
  expect([ids(rest.items), rest.more]).toEqual([['i2', 'i3', 'i5'], false])
  expect(new Set([...first.items, ...rest.items].map(({ lease }) => lease.token)).size).toBe(3)
})
