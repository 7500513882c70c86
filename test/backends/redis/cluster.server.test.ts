import { Cluster, Redis } from 'ioredis'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { type RedisBackend, redisBackend } from '../../../src/backends/redis/index.js'
import type { Clock } from '../../../src/core/time/clock.js'
import { type RedisAddress, RedisSubscriptions } from '../../../src/drivers/redis/index.js'
import { makeClient } from '../../../src/drivers/redis/make-client.js'
import { createWork, defineWork } from '../../../src/index.js'
import type { Inspect } from '../../../src/ports/inspect.js'
import { describeLedger } from '../../../src/testing/conformance/describe-ledger.js'
import { describePubSub, describeQueue, describeStore } from '../../../src/testing/conformance/describe-ports.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { startRedisCluster } from '../../servers/index.js'
import { ledgerOn } from '../ledger-on.js'
import { anybody, claim, deadLetter, enqueue, envelope, finish } from '../native.js'

const cluster = await startRedisCluster()
afterAll(() => cluster.stop())
const nodes = cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }))

let made = 0
const opened: RedisBackend[] = []
const open = (clock?: Clock): RedisBackend => {
  made += 1
  // The prefix is the tag: the namespaces are spread over all three nodes.
  const backend = redisBackend({ cluster: { nodes }, prefix: `clause ${made}`, ...(clock && { clock }) })
  opened.push(backend)
  return backend
}
afterEach(async () => {
  for (const backend of opened.splice(0)) await backend.close()
})

const test = { describe, it }
const quietMs = 20

describeQueue({ name: 'redis cluster', test, quietMs, open: (clock) => open(clock).queue })
describeStore({ name: 'redis cluster', test, quietMs, open: (clock) => open(clock).store })
describePubSub({ name: 'redis cluster', test, quietMs, open: (clock) => open(clock).pubsub })
describeLedger({
  name: 'redis cluster (native)',
  test,
  quietMs,
  without: ['crash points'],
  open: (clock) => {
    const backend = open(clock)
    backend.named('conformance')
    return {
      ledger: ledgerOn(backend),
      queue: 'default',
      other: 'conformance',
      again: () => ledgerOn(backend),
      pushRaw: (body) => backend.queue.push(body),
    }
  },
})

/** The keys that a command of a script touches, as MONITOR shows it. */
function keysOf([name = '', ...words]: readonly string[]): readonly string[] {
  switch (name.toLowerCase()) {
    case 'time':
    case 'publish':
      return []
    case 'del':
    case 'exists':
    case 'unlink':
      return words
    case 'mget':
    case 'mset':
      throw new Error(`${name} has keys that this test does not see`)
    default:
      return words.slice(0, 1)
  }
}

describe('every key that a script touches', () => {
  it('is in the slot of its namespace', async () => {
    const shown: string[][] = []
    const monitors = await Promise.all(
      nodes.map(async ({ port }) => {
        const client = new Redis(port, '127.0.0.1')
        const monitor = await client.monitor()
        client.disconnect()
        monitor.on('monitor', (_time: string, words: string[], source: string) => {
          if (source === 'lua') shown.push(words)
        })
        return monitor
      }),
    )
    const backend = redisBackend({ cluster: { nodes }, prefix: 'all of it {x} }' })
    opened.push(backend)
    const ledger = ledgerOn(backend)
    const more = { tags: ['red', 'blue'], waiter: 'inbox' }
    await ledger.commit([
      ...['a', 'b', 'c', 'd', 'e'].map((id, i) => enqueue(envelope(id, { ...more, priority: i - 2 }))),
      enqueue(envelope('later'), { delayMs: 60_000, queue: 'other' }),
      enqueue(envelope('held'), { delayMs: Number.POSITIVE_INFINITY, hold: { by: 'gate', key: 'k' } }, [
        { do: 'openGate', key: 'k', heldId: 'held', members: ['a', 'b', 'nobody'], need: 2, of: 'done' },
      ]),
      enqueue(envelope('born'), { leasedTo: { worker: 'w', token: 'own', leaseMs: 10 } }),
      {
        guard: { by: 'schedule', name: 's', at: undefined },
        effects: [{ do: 'schedule', name: 's', spec: '*', nextAt: 1 }],
      },
      anybody({ do: 'pause', what: 'type', name: 't' }, { do: 'log', who: 'me', why: 'why', what: 'what' }),
    ])
    await claim(ledger)
    await ledger.commit([anybody({ do: 'resume', what: 'type', name: 't' })])
    await ledger.watch('inbox', { itemIds: ['later'], groupIds: ['g-later'] })
    const items = await claim(ledger)
    const me = { id: 'w1', host: 'h', version: '1', types: ['t'], queues: ['default'] }
    await ledger.extend(
      items.map(({ lease }) => ({ lease, running: true, progress: '1' })),
      30_000,
      me,
    )
    const [one, two, three, ...rest] = items
    const contribute = { do: 'setGroupValue', groupId: three!.envelope.groupId, value: '1', final: false } as const
    const run = { attempt: 1, startedAt: 1, endedAt: 2, worker: 'w1', error: 'Error: boom', fingerprint: 'f' }
    const failed = { do: 'recordAttempt', id: two!.lease.id, was: run } as const
    const retry = { do: 'retry', id: rest[0]!.lease.id, attempt: 2, delayMs: 10, reason: 'retry' } as const
    await ledger.commit([
      finish(one!),
      { ...deadLetter(two!), effects: [failed, ...deadLetter(two!).effects] },
      { ...finish(three!), effects: [...finish(three!).effects, contribute, { do: 'notify', inbox: 'x', ids: ['y'] }] },
      { guard: { by: 'lease', lease: rest[0]!.lease }, effects: [retry] },
      { guard: { by: 'lease', lease: rest[1]!.lease }, effects: [{ do: 'release', id: rest[1]!.lease.id }] },
      { guard: { by: 'status', id: 'later', in: ['pending'] }, effects: [{ do: 'delete', id: 'later' }] },
    ])
    const inspect = ledger.inspect as Required<Inspect>
    const [flow, failures, stuck, dead] = await Promise.all([
      inspect.throughput(60_000),
      inspect.failures(1),
      inspect.stuckItems({ limit: 10 }),
      inspect.count({ state: 'dead', fingerprint: 'f' }),
      inspect.count({ type: 't', tag: 'red' }),
    ])
    expect([flow.length, failures[0]?.dead, stuck.items, dead]).toEqual([1, 1, [], 1])
    await ledger.commit([
      {
        guard: { by: 'status', id: two!.lease.id, in: ['dead'] },
        effects: [{ do: 'redrive', id: two!.lease.id, delayMs: 0 }],
      },
    ])
    await ledger.read(['a', 'b', 'nobody'])
    await ledger.groups(['g-a'])
    await inspect.list({ limit: 10 })
    await inspect.list({ tag: 'red', state: 'completed', limit: 10 })
    await Promise.all([inspect.counts(), inspect.workers(), inspect.attempts('a'), inspect.log(5), inspect.gate('k')])
    await backend.named('bulk').push(JSON.stringify(envelope('pushed')), { dedupeKey: 'd', delay: 1 })
    await claim(ledger, 5, 'bulk')
    await backend.queue.deadLetter('body', 'error')
    await backend.store.set('key', 'value', 1_000)
    await backend.store.increment('n', 1)
    // What MONITOR shows comes on other connections: a last command that all of them show.
    const last = '{all of it %7bx%7d %7d}:store:n'
    for (let i = 0; i < 200 && !shown.some((words) => words[1] === last); i += 1)
      await new Promise((resolve) => setTimeout(resolve, 10))
    for (const monitor of monitors) monitor.disconnect()

    const seen = new Map(shown.flatMap((words) => keysOf(words).map((key) => [key, words.join(' ')] as const)))
    // A command with several keys is among them, so that all but the first are checked as well.
    expect(shown.filter(([name = '']) => name.toLowerCase() === 'exists').map(({ length }) => length)).toContain(4)
    const admin = new Redis(nodes[0]!)
    const slots = await Promise.all([...seen.keys()].map((key) => admin.cluster('KEYSLOT', key)))
    const slot = await admin.cluster('KEYSLOT', '{all of it %7bx%7d %7d}')
    admin.disconnect()
    expect(seen.size).toBeGreaterThan(40)
    expect([...seen.values()].filter((_, i) => slots[i] !== slot)).toEqual([])
  })
})

describe('a script whose answer is lost on a cluster', () => {
  it('is not sent again by the driver', async () => {
    const client = await makeClient({ cluster: { nodes } }, false)
    const { store } = redisBackend({ client, prefix: 'lost answer' })
    await store.increment('n', 1)
    // Every node has its next answer cut off.
    for (const { stream } of (client as unknown as Cluster).nodes('master')) {
      stream?.removeAllListeners('data')
      stream?.once('data', () => stream.destroy())
      stream?.resume()
    }

    await expect(store.increment('n', 1)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })

    // The lines are made anew; what finds none meanwhile is refused unsent.
    let value: string | undefined
    for (let tries = 0; tries < 100 && value === undefined; tries += 1) {
      value = await store.get('n').catch(() => undefined)
      if (value === undefined) await new Promise((resolve) => setTimeout(resolve, 20))
    }
    client.disconnect()
    expect(value).toBe('2')
  })
})

describe('a line to listen on in a cluster', () => {
  const until = async (is: () => boolean) => {
    for (let i = 0; i < 250 && !is(); i += 1) await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const listen = async (address: RedisAddress, clock?: Clock) => {
    const received: string[] = []
    const errors: Error[] = []
    let missed = 0
    const onMissed = () => {
      missed += 1
    }
    const onError = (error: Error) => errors.push(error)
    const subscriptions = new RedisSubscriptions({
      ...{ address, commandTimeoutMs: 2_000, onError, onMissed },
      ...(clock && { clock }),
    })
    opened.push(subscriptions as never)
    subscriptions.on('channel', (message) => received.push(message))
    await subscriptions.settled()
    return { received, errors, missed: () => missed }
  }
  const says = async (node: number, message: string) => {
    const admin = new Redis(nodes[node]!)
    await admin.publish('channel', message)
    admin.disconnect()
  }

  it.each(['nodes', 'client'])(
    'receives from every node, and reports that it may have missed something after a cut: %s',
    async (by) => {
      const client = new Cluster(nodes, { lazyConnect: true })
      const line = await listen(by === 'nodes' ? { cluster: { nodes } } : { client })
      for (const i of [0, 1, 2]) await says(i, `from ${i}`)
      await until(() => line.received.length === 3)
      expect(line.received.toSorted()).toEqual(['from 0', 'from 1', 'from 2'])
      expect(line.missed()).toBe(0)

      for (const node of nodes) {
        const admin = new Redis(node)
        await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
        admin.disconnect()
      }
      await until(() => line.missed() > 0)
      expect(line.missed()).toBe(1)
      await says(2, 'afterwards')
      await until(() => line.received.length === 4)
      expect(line.received[3]).toBe('afterwards')
      client.disconnect()
    },
  )

  it('is asked whether it is still there, and goes to another node when none answers', async () => {
    const clock = new FakeClock()
    const line = await listen({ cluster: { nodes: nodes.slice(0, 1) } }, clock)
    cluster.nodes[0]!.pause()
    try {
      await clock.advance(15_000)
      await clock.advance(2_000)
      await until(() => line.missed() > 0)
      expect(line.missed()).toBe(1)
      expect(line.errors).toMatchObject([{ code: 'REDIS_TIMEOUT' }, { code: 'REDIS_DISCONNECTED' }])
      await says(2, 'from elsewhere')
      await until(() => line.received.length === 1)
      expect(line.received).toEqual(['from elsewhere'])
    } finally {
      cluster.nodes[0]!.resume()
    }
  })
})

describe('a work system on a cluster', () => {
  it('runs what is enqueued', async () => {
    const backend = redisBackend({ cluster: { nodes }, prefix: 'system' })
    opened.push(backend)
    const double = defineWork('double', (n: number, ctx) => ctx.result(n * 2))
    const work = createWork({ backend, work: [double] as const })
    work.start()
    const handles = [1, 2, 3].map((n) => work.enqueue(double(n)))
    expect(await Promise.all(handles.map((handle) => handle.result()))).toEqual([2, 4, 6])
    await work.stop()
  })
})
