import { Redis } from 'ioredis'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { redisBackend } from '../../../src/backends/redis/index.js'
import type { Inspect, ItemQuery } from '../../../src/ports/inspect.js'
import type { ClaimedItem, ItemStatus } from '../../../src/ports/item.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import type { Effect, Settlement } from '../../../src/ports/settlement.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { startRedis } from '../../servers/index.js'
import { ledgerOn } from '../ledger-on.js'
import { claim, enqueue, envelope, finish } from '../native.js'
import { wrongIn } from './true-lists.js'

const server = await startRedis()
const admin = new Redis(server.url)
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
  await server.flush()
})
afterAll(async () => {
  admin.disconnect()
  await server.stop()
})

const KEY = (name: string) => `{millrace}:${name}`
const many = (n: number, name = 'i') => Array.from({ length: n }, (_, i) => `${name}${String(i).padStart(5, '0')}`)

function open(clock = new FakeClock()): { ledger: Ledger; inspect: Required<Inspect>; clock: FakeClock } {
  const backend = redisBackend({ url: server.url, clock })
  closing.push(() => backend.close())
  const ledger = ledgerOn(backend)
  return { ledger, inspect: ledger.inspect as Required<Inspect>, clock }
}

async function enqueued(ledger: Ledger, settlements: readonly Settlement[]): Promise<void> {
  const results = await ledger.commit(settlements)
  expect(results.every(({ kind }) => kind === 'applied')).toBe(true)
}

function failed({ lease, envelope: { id, attempt } }: ClaimedItem, at: number, fingerprint: string): Effect {
  const was = { attempt, startedAt: at, endedAt: at, worker: 'w1', class: 'retryable', rule: 'default' } as const
  return { do: 'recordAttempt', id: lease.id, was: { ...was, error: `Error: ${id}`, fingerprint } }
}

function died(claimed: ClaimedItem, at: number, fingerprint: string): Settlement {
  const { id, groupId } = claimed.envelope
  return {
    guard: { by: 'lease', lease: claimed.lease },
    effects: [
      failed(claimed, at, fingerprint),
      { do: 'deadLetter', id, ending: 'exhausted', class: 'retryable', error: `Error: ${id}`, keepMs: 86_400_000 },
      { do: 'leaveGroup', groupId, count: 1 },
    ],
  }
}

const free = (id: string, status: ItemStatus = 'pending'): Settlement => ({
  guard: { by: 'status', id, in: [status] },
  effects: [{ do: 'release', id, delayMs: 0 }],
})

async function pages(inspect: Inspect, query: Omit<ItemQuery, 'cursor'>): Promise<readonly (readonly string[])[]> {
  const found: string[][] = []
  let cursor: string | undefined
  do {
    const { items, next } = await inspect.list({ ...query, ...(cursor === undefined ? {} : { cursor }) })
    found.push(items.map(({ envelope: { id } }) => id))
    cursor = next
  } while (cursor !== undefined)
  return found
}

describe('what people ask of Redis', () => {
  it('never loads an input', async () => {
    const { ledger, inspect, clock } = open()
    const input = JSON.stringify('secret'.repeat(1_000))
    await enqueued(
      ledger,
      many(6).map((id) => enqueue(envelope(id, { input, tags: ['x'] }))),
    )
    const [one, two] = await claim(ledger, 2)
    await enqueued(ledger, [died(one!, clock.now(), 'f'), finish(two!)])
    const shown: string[][] = []
    const client = new Redis(server.url)
    const monitor = await client.monitor()
    client.disconnect()
    let isOver = false
    monitor.on('monitor', (_time: string, words: string[]) => {
      if (words[1] === 'that was all') isOver = true
      else shown.push(words)
    })

    expect((await inspect.list({ limit: 10 })).items).toHaveLength(6)
    expect((await inspect.list({ tag: 'x', before: clock.now() + 1, limit: 10 })).items).toHaveLength(6)
    expect(await inspect.count({ tag: 'x', type: 't', before: clock.now() + 1 })).toBe(6)
    await inspect.throughput(1_000)
    await inspect.failures(10)
    await inspect.stuckItems({ limit: 10 })
    await ledger.read(many(6))
    await admin.echo('that was all')
    await expect.poll(() => isOver).toBe(true)
    monitor.disconnect()

    expect(shown.filter((words) => words[1] === KEY('items')).length).toBeGreaterThan(0)
    expect(shown.filter((words) => words[1] === KEY('inputs'))).toEqual([])
    expect(JSON.stringify(shown)).not.toContain('secret')
    expect(await inspect.input(many(6)[0]!)).toBe(input)
  })

  it('pages through thousands of one instant, each once, also while they are taken away', async () => {
    const { ledger, inspect } = open()
    const ids = many(4_500)
    for (let from = 0; from < ids.length; from += 500)
      await enqueued(
        ledger,
        ids.slice(from, from + 500).map((id, i) => enqueue(envelope(id, { type: i % 2 === 0 ? 'even' : 'odd' }))),
      )
    const all = await pages(inspect, { state: 'waiting', limit: 450 })
    expect(all.map((page) => page.length)).toEqual(all.map(() => 450))
    expect(all.flat().toSorted()).toEqual(ids)

    const first = await inspect.list({ state: 'waiting', limit: 1 })
    // Of one place within the millisecond there are three: the cursor is in the middle of them.
    for (let gone = first, left = 3; left > 0; left -= 1) {
      const { id } = gone.items[0]!.envelope
      await ledger.commit([{ guard: { by: 'none' }, effects: [{ do: 'delete', id }] }])
      gone = await inspect.list({ state: 'waiting', limit: 1, cursor: gone.next! })
      expect(gone.items[0]!.envelope.id).not.toBe(id)
    }
    expect(await inspect.count({ state: 'waiting' })).toBe(4_497)
    expect(await inspect.count({ state: 'waiting', type: 'odd', before: 1 })).toBe(
      (await pages(inspect, { state: 'waiting', type: 'odd', before: 1, limit: 500 })).flat().length,
    )
  })

  it('reports the oldest of each type, whatever it went through before it waited', async () => {
    const { ledger, inspect, clock } = open()
    const oldest = async () =>
      Object.fromEntries((await inspect.throughput(1_000)).map(({ type, oldestDueAt }) => [type, oldestDueAt]))
    const t0 = clock.now()
    await enqueued(ledger, [
      enqueue(envelope('a1', { type: 'a' })),
      enqueue(envelope('b1', { type: 'b', priority: 9 }), { delayMs: 5 }),
      enqueue(envelope('c1', { type: 'c' }), { delayMs: 100 }),
    ])
    const [a1] = await claim(ledger, 1)
    await clock.advance(10)
    await enqueued(ledger, [enqueue(envelope('a2', { type: 'a' })), enqueue(envelope('b2', { type: 'b' }))])
    expect(await oldest()).toEqual({ a: t0 + 10, b: t0 + 5 })

    // Put back: it keeps its due time, and is the oldest again.
    await enqueued(ledger, [{ guard: { by: 'lease', lease: a1!.lease }, effects: [{ do: 'release', id: 'a1' }] }])
    expect(await oldest()).toEqual({ a: t0, b: t0 + 5 })
    await enqueued(ledger, [free('a1')])
    expect(await oldest()).toEqual({ a: t0 + 10, b: t0 + 5 })
    await ledger.commit([{ guard: { by: 'none' }, effects: [{ do: 'pause', what: 'type', name: 'b' }] }])
    expect(await oldest()).toEqual({ a: t0 + 10 })
    expect(await wrongIn(admin, 'millrace')).toEqual([])
  })

  it('reports settings without a limit as infinite', async () => {
    const { ledger, inspect } = open()
    const retry = { attempts: Number.POSITIVE_INFINITY, base: 1, factor: 2, max: 3, jitter: 1 }
    const settings = {
      leaseMs: 1_000,
      keepMs: { completed: Number.POSITIVE_INFINITY, dead: 5 },
      types: { $infinity: { retry }, Infinity: { retry } },
    }
    const me = {
      id: 'Infinity',
      host: 'half \ud800',
      version: '1',
      types: ['Infinity'],
      queues: ['$infinity'],
      settings,
    }
    await ledger.extend([], 1_000, me)
    expect(await inspect.workers()).toMatchObject([me])
  })

  it('forgets a group of failures with the last of its items, however they go', async () => {
    const { ledger, inspect, clock } = open()
    const ids = ['redriven', 'erased', 'expired', 'retried']
    await enqueued(
      ledger,
      ids.map((id) => enqueue(envelope(id, { groupId: id }))),
    )
    const [redriven, erased, expired, retried] = await claim(ledger)
    const at = clock.now()
    await enqueued(ledger, [
      died(redriven!, at, 'f1'),
      died(erased!, at, 'f2'),
      died(expired!, at, 'f3'),
      {
        guard: { by: 'lease', lease: retried!.lease },
        effects: [failed(retried!, at, 'f4'), { do: 'retry', id: 'retried', attempt: 2, delayMs: 10, reason: 'retry' }],
      },
    ])
    const prints = async () => (await inspect.failures(10)).map(({ fingerprint }) => fingerprint).toSorted()
    expect(await prints()).toEqual(['f1', 'f2', 'f3', 'f4'])
    expect(await inspect.failures(0)).toEqual([])
    await clock.advance(10)
    expect(await prints()).toEqual(['f1', 'f2', 'f3'])
    await ledger.commit([
      {
        guard: { by: 'status', id: 'redriven', in: ['dead'] },
        effects: [{ do: 'redrive', id: 'redriven', delayMs: 0 }],
      },
      { guard: { by: 'status', id: 'erased', in: ['dead'] }, effects: [{ do: 'delete', id: 'erased' }] },
    ])
    expect(await prints()).toEqual(['f3'])
    await clock.advance(86_400_000)
    expect(await prints()).toEqual([])
    expect((await admin.keys('*')).filter((key) => key.includes(':fail'))).toEqual([])
  })
})

describe('an item that has lost its place on Redis', () => {
  it.each([
    ['a ready one', () => admin.del(KEY('ready:0:7:defaultt')), 'pending'],
    ['one whose priority is unknown', () => admin.del(KEY('priorities:7:defaultt')), 'pending'],
    ['a scheduled one', () => admin.del(KEY('delayed:default')), 'pending'],
    ['a running one', () => admin.del(KEY('leases:default')), 'running'],
  ] as const)('is reported as stuck, and is freed by a release: %s', async (what, lose, status) => {
    const { ledger, inspect } = open()
    const how = what === 'a scheduled one' ? { delayMs: 1_000 } : {}
    await enqueued(ledger, [enqueue(envelope('a'), how)])
    const held = status === 'running' ? await claim(ledger) : []
    expect((await inspect.stuckItems({ limit: 5 })).items).toEqual([])
    await lose()
    expect(await claim(ledger)).toEqual([])

    const { items, next } = await inspect.stuckItems({ limit: 5 })
    expect([items.map(({ envelope: { id } }) => id), next]).toEqual([['a'], undefined])
    // In the same millisecond: its due time does not change.
    await enqueued(ledger, [free('a', status)])

    expect((await inspect.stuckItems({ limit: 5 })).items).toEqual([])
    expect((await claim(ledger)).map(({ lease }) => lease.fence)).toEqual([held.length + 1])
    expect(await wrongIn(admin, 'millrace')).toEqual([])
  })

  it('is found among thousands that have not, in bounded steps', async () => {
    const { ledger, inspect } = open()
    const ids = many(3_000)
    for (let from = 0; from < ids.length; from += 500)
      await enqueued(
        ledger,
        ids.slice(from, from + 500).map((id) => enqueue(envelope(id))),
      )
    const lost = await admin.zrange(KEY('ready:0:7:defaultt'), '1000', '1040')
    await admin.zrem(KEY('ready:0:7:defaultt'), ...lost)
    const found: string[] = []
    let cursor: string | undefined
    do {
      const page = await inspect.stuckItems({ limit: 7, ...(cursor === undefined ? {} : { cursor }) })
      expect(page.items.length).toBeLessThanOrEqual(7)
      found.push(...page.items.map(({ envelope: { id } }) => id))
      // As `audit` does: what was found is not there any more when the next page is asked for.
      await enqueued(
        ledger,
        found.slice(-page.items.length || found.length).map((id) => free(id)),
      )
      cursor = page.next
    } while (cursor !== undefined)

    expect(found.toSorted()).toEqual(lost.map((member) => member.slice(12)).toSorted())
    await expect(inspect.stuckItems({ limit: 1, cursor: 'x' })).rejects.toMatchObject({ code: 'BAD_CURSOR' })
  })
})

describe('a namespace', () => {
  it('written by a newer version that this code cannot read is refused', async () => {
    await admin.set(KEY('mode'), 'native')
    await admin.hset(KEY('storage'), 'version', 4, 'minReader', 3)
    await expect(open().ledger.commit([enqueue(envelope('a'))])).rejects.toMatchObject({ code: 'SCHEMA_TOO_NEW' })
  })
})
