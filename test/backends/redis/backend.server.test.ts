import { Redis } from 'ioredis'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { type RedisBackend, type RedisBackendOptions, redisBackend } from '../../../src/backends/redis/index.js'
import { HOSTILE_TEXTS } from '../../../src/testing/conformance/hostile-texts.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { startRedis } from '../../servers/index.js'
import { ledgerOn } from '../ledger-on.js'
import { anybody, claim, enqueue, envelope, finish, ran } from '../native.js'
import { watchedClient } from './watched-client.js'

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

function open(options: Partial<RedisBackendOptions> = {}): RedisBackend {
  const backend = redisBackend({ url: server.url, ...options } as RedisBackendOptions)
  closing.push(() => backend.close())
  return backend
}

function openWatched(options: Partial<RedisBackendOptions> = {}) {
  const watched = watchedClient(server.url)
  closing.push(() => watched.close())
  const { url: _, ...rest } = { url: '', ...options }
  const backend = redisBackend({ client: watched.client, ...rest })
  closing.unshift(() => backend.close())
  return { backend, watched }
}

const many = (n: number, name = 'i') => Array.from({ length: n }, (_, i) => `${name}${i}`)

describe('scripts on Redis', () => {
  it('settles a hundred items with one call', async () => {
    const { backend, watched } = openWatched()
    const ledger = ledgerOn(backend)
    await ledger.commit(many(100).map((id) => enqueue(envelope(id))))
    const items = await claim(ledger)
    await ledger.commit([anybody()])
    watched.sent.length = 0

    const results = await ledger.commit(items.map((item) => finish(item)))

    expect(results.map(({ kind }) => kind)).toEqual(many(100).map(() => 'applied'))
    expect(watched.sent.map(({ name }) => name)).toEqual(['evalsha'])
  })

  it('are sent whole once, and again when the server has forgotten them', async () => {
    const { backend, watched } = openWatched()
    const ledger = ledgerOn(backend)
    await admin.script('FLUSH')
    await ledger.commit([enqueue(envelope('a'))])
    await ledger.commit([enqueue(envelope('b'))])
    await admin.script('FLUSH')
    await ledger.commit([enqueue(envelope('c'))])
    await ledger.commit([enqueue(envelope('d'))])

    expect((await claim(ledger)).map(({ lease }) => lease.id)).toEqual(['a', 'b', 'c', 'd'])
    // mode.lua and claim.lua once, commit.lua once before the flush and once after it.
    expect(watched.sent.filter(({ name }) => name === 'eval')).toHaveLength(4)
  })

  it('answer "repeated" when a reply was lost and the same is sent again', async () => {
    const { backend, watched } = openWatched()
    const ledger = ledgerOn(backend)
    const evalsha = watched.client.evalsha.bind(watched.client)
    await ledger.commit([enqueue(envelope('first'))])
    let isLost = true
    watched.client.evalsha = async (...words: Parameters<typeof evalsha>) => {
      const reply = await evalsha(...words)
      if (!isLost) return reply
      isLost = false
      throw new Error('Connection is closed.')
    }

    await expect(ledger.commit([enqueue(envelope('a'))])).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect(await ledger.commit([enqueue(envelope('a'))])).toEqual([{ kind: 'repeated', id: 'a' }])
    const items = await claim(ledger)
    isLost = true
    await expect(ledger.commit(items.map((item) => finish(item)))).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect((await ledger.commit(items.map((item) => finish(item)))).map(({ kind }) => kind)).toEqual([
      'repeated',
      'repeated',
    ])
    expect((await ledger.groups(['g-a']))[0]?.open).toBe(0)
  })

  it('take the time of the server where no clock was given', async () => {
    const { now } = await ledgerOn(open()).claim({ queues: [], leaseMs: 1_000, worker: 'w' })

    const [seconds] = (await admin.time()) as unknown as [string, string]
    expect(Math.abs(now - Number(seconds) * 1_000)).toBeLessThan(5_000)
  })
})

describe('names on Redis', () => {
  const hostile = [...HOSTILE_TEXTS, 'nul \u0000 inside', '{', '}', '{}', '{a}{b}', '%7b', '\n']

  it('may be any text, as prefix and as queue, and none collides with another', async () => {
    for (const prefix of hostile) {
      const backend = open({ prefix })
      const ledger = ledgerOn(backend)
      // Once the namespace is used natively, no such body is accepted any more.
      for (const queue of hostile) await backend.named(queue).push(`text of ${prefix} ${queue}`)
      for (const queue of hostile) await ledger.commit([enqueue(envelope(`in ${queue}`), { queue })])
    }
    for (const prefix of hostile) {
      const backend = open({ prefix })
      const ledger = ledgerOn(backend)
      for (const queue of hostile) {
        const reply = await ledger.claim({ queues: [{ queue, max: 5 }], leaseMs: 1_000, worker: 'w' })
        expect(reply.items.map(({ lease }) => [lease.id, lease.queue])).toEqual([[`in ${queue}`, queue]])
        expect(reply.unreadable).toEqual([{ queue, body: `text of ${prefix} ${queue}` }])
      }
      await backend.close()
    }
    const tags = new Set((await admin.keys('*')).map((key) => key.slice(0, key.indexOf('}') + 1)))
    expect(tags.size).toBe(hostile.length)
  })

  it.each(['', 'half \ud800 a pair', 'x'.repeat(1_025), 7, null])(
    'are refused when they cannot be stored: %#',
    (name) => {
      expect(() => redisBackend({ url: server.url, prefix: name as string })).toThrow(/redisBackend\.prefix/)
      expect(() => open().named(name as string)).toThrow(/named\(queue\)/)
    },
  )

  it('and texts with half of a surrogate pair are refused, and nothing else of the batch', async () => {
    const ledger = ledgerOn(open())
    const results = await ledger.commit([
      enqueue(envelope('half \udc00')),
      enqueue(envelope('whole', { input: '"half \ud800 in the input"' })),
    ])
    expect(results).toMatchObject([{ kind: 'refused', code: 'BAD_NAME' }, { kind: 'applied' }])
    const [whole] = await claim(ledger)
    expect(whole?.envelope.input).toBe('"half \ud800 in the input"')
    expect(await ledger.commit([finish(whole!, 'half \ud800')])).toMatchObject([{ kind: 'refused', code: 'BAD_TEXT' }])
  })
})

describe('messages on Redis', () => {
  it('reach a subscriber of the same process whose subscription is still on its way', async () => {
    const { pubsub } = open()
    // The sending connection is up; the listening one has yet to be made, and would lose the race.
    await pubsub.publish('nobody listens')
    const received: string[] = []
    pubsub.subscribe((message) => void received.push(message))

    await pubsub.publish('hello')

    await expect.poll(() => received).toEqual(['hello'])
  })
})

describe('options of redisBackend', () => {
  it.each([
    [{}, /redisBackend\.url is required/],
    [{ url: 'http://x' }, /redisBackend\.url must be/],
    [{ url: 'redis://x', client: admin }, /redisBackend\.client must be/],
    [{ client: {} }, /redisBackend\.client must be/],
    [{ cluster: { nodes: [] } }, /redisBackend\.cluster\.nodes must be/],
    [{ url: 'redis://x', prefx: 'a' }, /Did you mean "prefix"/],
    [{ url: 'redis://x', now: Date.now, clock: new FakeClock() }, /redisBackend\.now must be/],
    [{ url: 'redis://x', maxItemBytes: 1 }, /maxItemBytes/],
    [{ url: 'redis://x', commandTimeoutMs: 0 }, /commandTimeoutMs/],
  ])('are refused by name: %#', (options, message) => {
    expect(() => redisBackend(options as RedisBackendOptions)).toThrow(message)
  })

  it('does not connect until it is used, and can be closed twice', async () => {
    const backend = redisBackend({ url: 'redis://127.0.0.1:1' })
    await backend.close()
    await backend.close()
    await expect(backend.store.get('x')).rejects.toMatchObject({ code: 'REDIS_CLOSED' })
  })

  it('reports a server that is not there, and goes on trying', async () => {
    const errors: Error[] = []
    const backend = open({ url: 'redis://127.0.0.1:1', commandTimeoutMs: 300, onError: (error) => errors.push(error) })
    await expect(backend.store.get('x')).rejects.toMatchObject({ code: 'REDIS_UNREACHABLE' })
    expect(errors.length).toBeGreaterThan(0)
  })

  it('leaves a client that it was given as it is', async () => {
    const client = new Redis(server.url)
    closing.push(() => client.disconnect())
    await client.ping()
    const listeners = () => ['ready', 'close', 'end', 'error'].map((event) => client.listenerCount(event))
    const before = listeners()
    const backend = redisBackend({ client, onError: () => undefined })
    await backend.store.set('a', '1')
    await backend.close()
    expect(await client.ping()).toBe('PONG')
    expect(listeners()).toEqual(before)
  })

  it.each([
    [{}, ['REDIS_SENDS_TWICE']],
    [{ autoResendUnfulfilledCommands: false }, []],
    [{ maxRetriesPerRequest: 0 }, []],
  ])('warns of a client that sends again what was not answered: %j', async (options, codes) => {
    const client = new Redis(server.url, options)
    closing.push(() => client.disconnect())
    const errors: Error[] = []
    const backend = redisBackend({ client, onError: (error) => errors.push(error) })
    await backend.store.set('a', '1')
    await backend.store.set('b', '1')
    await backend.close()
    expect(errors.map((error) => (error as { code?: unknown }).code)).toEqual(codes)
  })
})

describe('one namespace', () => {
  it('is native or plain as a whole', async () => {
    const native = open({ prefix: 'native' })
    await ledgerOn(native).commit([enqueue(envelope('a'))])
    await expect(open({ prefix: 'native' }).queue.pop(1, 1_000)).rejects.toMatchObject({ code: 'WRONG_MODE' })

    await open({ prefix: 'plain' }).queue.pop(1, 1_000)
    await expect(claim(ledgerOn(open({ prefix: 'plain' })))).rejects.toMatchObject({ code: 'WRONG_MODE' })
  })
})

describe('texts that were pushed by hand', () => {
  it.each(['"priority":NaN', '"priority":Infinity', '"attempt":-Infinity', '"startAt":NaN', '"retry":{"max":NaN}'])(
    'are reported, and only those, when a number in them is none: %s',
    async (field) => {
      const backend = open()
      const ledger = ledgerOn(backend)
      await ledger.commit([anybody()])
      const bad = `{"id":"bad","type":"t","groupId":"g","input":"1",${field}}`
      await backend.queue.push(JSON.stringify(envelope('a')))
      await backend.queue.push(bad)
      await backend.queue.push(JSON.stringify(envelope('b')))

      const from = [{ queue: 'default', max: 10 }]
      const reply = await ledger.claim({ queues: from, leaseMs: 1_000, worker: 'w' })

      expect(reply.items.map(({ lease }) => lease.id)).toEqual(['a', 'b'])
      expect(reply.unreadable).toEqual([{ queue: 'default', body: bad }])
      expect(await backend.queue.size()).toBe(2)
    },
  )
})

describe('memory on Redis', () => {
  it('is given back when retention is over, in bounded steps and to the last key', async () => {
    const clock = new FakeClock()
    const { backend, watched } = openWatched({ clock })
    const ledger = ledgerOn(backend)
    const tags = ['red']
    for (let round = 0; round < 3; round += 1)
      await ledger.commit(many(400, `r${round}-`).map((id) => enqueue(envelope(id, { tags }))))
    for (let items = await claim(ledger, 400); items.length > 0; items = await claim(ledger, 400))
      await ledger.commit(items.map((item) => finish(item, '"done"', [ran(item)], 1_000)))
    expect(await admin.hlen('{millrace}:items')).toBe(1_200)
    await clock.advance(1_001)
    watched.sent.length = 0

    // One claim notices, and the rest follows without anybody asking.
    let { removed = 0 } = await ledger.claim({ queues: [], leaseMs: 1_000, worker: 'w' })
    for (let i = 0; i < 200 && (await admin.exists('{millrace}:items')) === 1; i += 1)
      await new Promise((resolve) => setTimeout(resolve, 10))
    removed += (await ledger.claim({ queues: [], leaseMs: 1_000, worker: 'w' })).removed ?? 0

    expect(removed).toBe(1_200)
    expect(watched.sent.length).toBeGreaterThan(3)
    expect((await admin.keys('*')).toSorted()).toEqual(['{millrace}:mode', '{millrace}:seq', '{millrace}:storage'])
  })

  it('is kept forever where that was asked for, groups included, until it is deleted', async () => {
    const clock = new FakeClock()
    const ledger = ledgerOn(open({ clock }))
    // One is the root of its group, the other is not.
    await ledger.commit([enqueue(envelope('root', { groupId: 'root' })), enqueue(envelope('a'))])
    const items = await claim(ledger)
    await ledger.commit(items.map((item) => finish(item, '1', [ran(item)], Number.POSITIVE_INFINITY)))
    await clock.advance(400 * 86_400_000)
    await ledger.claim({ queues: [], leaseMs: 1_000, worker: 'w' })
    expect(await ledger.groups(['root', 'g-a'])).toMatchObject([{ open: 0 }, { open: 0 }])
    expect(await ledger.read(['root', 'a'])).toMatchObject([{ status: 'completed' }, { status: 'completed' }])

    await ledger.commit([
      { guard: { by: 'status', id: 'root', in: ['completed'] }, effects: [{ do: 'delete', id: 'root' }] },
    ])
    await clock.advance(86_400_001)
    await ledger.claim({ queues: [], leaseMs: 1_000, worker: 'w' })
    expect(await ledger.groups(['root', 'g-a'])).toMatchObject([undefined, { open: 0 }])
    expect(await admin.hkeys('{millrace}:groups')).toEqual(['g-a'])
  })

  it('is refused, not taken from others, when the server is full', async () => {
    const ledger = ledgerOn(open())
    await ledger.commit([enqueue(envelope('before'))])
    await admin.config('SET', 'maxmemory', '1mb')
    try {
      await expect(ledger.commit([enqueue(envelope('after'))])).rejects.toMatchObject({ code: 'REDIS_FULL' })
      // A server that has forgotten the script, and is sent it whole, says it in the same way.
      await admin.script('FLUSH')
      await expect(ledger.commit([enqueue(envelope('after'))])).rejects.toMatchObject({ code: 'REDIS_FULL' })
      // What is there can still be worked off, so that the server gets room again.
      const items = await claim(ledger)
      expect(items.map(({ lease }) => lease.id)).toEqual(['before'])
      expect(await ledger.commit(items.map((item) => finish(item)))).toMatchObject([{ kind: 'applied' }])
    } finally {
      await admin.config('SET', 'maxmemory', '0')
    }
    expect(await ledger.read(['after'])).toEqual([undefined])
  })

  it('that is full still lets workers hold, give back and take over what was accepted', async () => {
    const clock = new FakeClock()
    const ledger = ledgerOn(open({ clock }))
    const me = { id: 'w1', host: 'h', version: '1', types: ['t'], queues: ['default'] }
    const from = [{ queue: 'default', max: 1 }]
    await ledger.commit(['held', 'lapsed'].map((id) => enqueue(envelope(id))))
    const [held] = await claim(ledger, 1)
    await ledger.claim({ queues: from, leaseMs: 1_000, worker: 'dead' })
    // Another priority than any before: its list has to be made.
    await ledger.commit([enqueue(envelope('due', { priority: 5 }), { delayMs: 500 })])
    await clock.advance(2_000)
    await admin.config('SET', 'maxmemory', '1mb')
    try {
      await expect(ledger.commit([enqueue(envelope('after'))])).rejects.toMatchObject({ code: 'REDIS_FULL' })
      expect(await ledger.extend([{ lease: held!.lease, running: true, progress: '1' }], 60_000, me)).toEqual(['held'])
      await clock.advance(40_000)
      expect(await ledger.inspect!.counts()).toMatchObject([{ counts: { active: 2, waiting: 1 } }])
      expect((await claim(ledger)).map(({ lease }) => lease.id)).toEqual(['due', 'lapsed'])
      const entry = { do: 'log', who: 'me', why: 'why', what: 'what' } as const
      const release = { do: 'release', id: 'held', delayMs: 10 } as const
      const given = { guard: { by: 'lease', lease: held!.lease }, effects: [entry, release] } as const
      expect(await ledger.commit([given])).toMatchObject([{ kind: 'applied' }])
      // A lease that is not held opens no door for others.
      await expect(ledger.commit([given, enqueue(envelope('after'))])).rejects.toMatchObject({ code: 'REDIS_FULL' })
    } finally {
      await admin.config('SET', 'maxmemory', '0')
    }
    expect(await ledger.read(['after'])).toEqual([undefined])
  })

  it('that is full still allows the leases of a plain queue', async () => {
    const { queue } = open({ prefix: 'plain' })
    await queue.push('body')
    const [pulled] = await queue.pop(1, 1_000)
    await admin.config('SET', 'maxmemory', '1mb')
    try {
      expect(await queue.heartbeat(pulled!, 60_000)).toBe(true)
      await queue.fail(pulled!)
      expect(await queue.pop(1, 1_000)).toMatchObject([{ body: 'body', attempt: 2 }])
    } finally {
      await admin.config('SET', 'maxmemory', '0')
    }
  })

  it('that may be evicted causes one warning', async () => {
    await admin.config('SET', 'maxmemory-policy', 'allkeys-lru')
    try {
      const errors: Error[] = []
      const backend = open({ onError: (error) => errors.push(error) })
      await backend.store.set('a', '1')
      await backend.store.set('b', '1')
      for (let i = 0; i < 100 && errors.length === 0; i += 1) await new Promise((resolve) => setTimeout(resolve, 5))
      expect(errors).toMatchObject([{ code: 'EVICTION_POLICY' }])
    } finally {
      await admin.config('SET', 'maxmemory-policy', 'noeviction')
    }
  })

  it('takes less than a kilobyte for a pending item of a hundred bytes', async () => {
    const ledger = ledgerOn(open())
    const memory = async () => Number(/used_memory:(\d+)/.exec(await admin.info('memory'))?.[1])
    await ledger.commit([enqueue(envelope('first'))])
    const before = await memory()
    const input = JSON.stringify({ to: 'x'.repeat(91) })
    for (let round = 0; round < 20; round += 1) {
      const ids = many(500).map(
        (id) => `0199d2f0-3c1a-7000-8000-${String(round).padStart(4, '0')}${id.padStart(8, '0')}`,
      )
      await ledger.commit(ids.map((id) => enqueue(envelope(id, { groupId: id, input }))))
    }
    const each = ((await memory()) - before) / 10_000
    expect(each).toBeGreaterThan(300)
    expect(each).toBeLessThan(1_024)
  })
})

describe('a script on Redis', () => {
  /** The commands of scripts while something is done. */
  const commandsOf = async (what: () => Promise<unknown>): Promise<string[][]> => {
    const client = new Redis(server.url)
    const monitor = await client.monitor()
    client.disconnect()
    const shown: string[][] = []
    let isOver = false
    monitor.on('monitor', (_time: string, words: string[], source: string) => {
      if (source === 'lua') shown.push(words)
      else if (words[1] === 'that was all') isOver = true
    })
    await what()
    await admin.echo('that was all')
    for (let i = 0; i < 200 && !isOver; i += 1) await new Promise((resolve) => setTimeout(resolve, 5))
    monitor.disconnect()
    return shown
  }

  it('reads no more of a list than a page needs, or its share of what may be scanned', async () => {
    const ledger = ledgerOn(open())
    const types = many(20, 'type')
    await ledger.commit(types.map((type) => enqueue(envelope(`of ${type}`, { type }))))
    const inspect = ledger.inspect!
    const read = (commands: string[][]) =>
      commands.filter(([name]) => name === 'ZREVRANGEBYSCORE').map((words) => Number(words.at(-1)))

    expect(read(await commandsOf(() => inspect.list({ limit: 5 })))).toEqual(types.map(() => 6))
    expect(read(await commandsOf(() => inspect.list({ limit: 5, groupId: 'g' })))).toEqual(types.map(() => 55))
  })

  it('touches no input, result, progress or group value for a list', async () => {
    const ledger = ledgerOn(open())
    await ledger.commit([enqueue(envelope('a')), enqueue(envelope('b'))])
    const [first] = await claim(ledger)
    const value = { do: 'setGroupValue', groupId: 'g-a', value: '1', final: false } as const
    await ledger.commit([finish(first!, '1', [value])])
    const inspect = ledger.inspect!
    const touched = async (what: () => Promise<unknown>) =>
      (await commandsOf(what))
        .map(([, key = '']) => key.split(':').at(-1) ?? '')
        .filter((key) => ['bodies', 'results', 'progress', 'values'].includes(key))
    const queries = [{}, { state: 'completed' }, { groupId: 'g-a' }, { type: 't', before: 1e15 }, { after: 1 }] as const

    for (const query of queries) expect(await touched(() => inspect.list({ ...query, limit: 10 }))).toEqual([])
    expect(await touched(() => inspect.summaries(['a', 'b']))).toEqual([])
    expect(await touched(() => inspect.openCounts(['g-a', 'g-b']))).toEqual([])
    expect(await touched(() => inspect.stuckItems({ limit: 10 }))).toEqual([])
    expect(await touched(() => inspect.failures(10))).toEqual([])
    expect(await touched(() => ledger.read(['a']))).toEqual(['results', 'progress'])
  })

  it.each([
    ['first', '{"input":"%","id":"a","type":"t","groupId":"g","tags":["input"],"queueAt":1,"startAt":1}'],
    ['last', '{"id":"a","type":"t","groupId":"g","deep":{"input":"of another"},"queueAt":1,"startAt":1,"input":"%"}'],
    ['between, with room', '{ "id" : "a", "type" : "input", "input" : "%" , "groupId" : "g" }'],
    ['in the only way that it stays whole', '{"id":"a","type":"t","groupId":"g","inp\\u0075t":"%"}'],
  ])('keeps the input of an envelope that was pushed as text apart from the rest: %s', async (where, form) => {
    const input = '{"deep":"\\ and {\u20ac}"} \\"input\\": "x"'
    const text = form.replace('%', () => JSON.stringify(input).slice(1, -1))
    const backend = open()
    await backend.queue.push(text)
    const ledger = ledgerOn(backend)
    const [taken] = await claim(ledger)
    const { input: _, ...head } = JSON.parse(text) as Record<string, unknown>

    expect(taken?.envelope).toMatchObject({ ...head, input })
    expect(await ledger.inspect!.input('a')).toBe(input)
    const listed = await commandsOf(() => ledger.inspect!.list({ limit: 10 }))
    const isRead = listed.some(([, key = '']) => key.endsWith(':inputs'))
    expect(isRead).toBe(where.includes('whole'))
    expect((await ledger.inspect!.list({ limit: 10 })).items[0]?.envelope).toMatchObject(head)
  })

  it('finds on later pages what it did not scan, in order', async () => {
    const ledger = ledgerOn(open())
    const group = { groupId: 'wanted' }
    const fill = (name: string, type: string) => many(400, name).map((id) => enqueue(envelope(id, { type })))
    await ledger.commit([enqueue(envelope('first', { ...group, type: 'b' })), enqueue(envelope('second', group))])
    for (let round = 0; round < 3; round += 1) await ledger.commit(fill(`t${round}-`, 't'))
    await ledger.commit([enqueue(envelope('third', { ...group, type: 'b' })), enqueue(envelope('fourth', group))])
    for (const query of [{ ...group, limit: 3 }, { limit: 150 }]) {
      const found: string[] = []
      let cursor: string | undefined
      do {
        const page = await ledger.inspect!.list({ ...query, ...(cursor === undefined ? undefined : { cursor }) })
        found.push(...page.items.map(({ envelope: { id } }) => id))
        cursor = page.next
      } while (cursor !== undefined)
      expect(found.filter((id) => !id.startsWith('t') || id === 'third')).toEqual([
        'fourth',
        'third',
        'second',
        'first',
      ])
      if (!('groupId' in query)) expect(new Set(found).size).toBe(1_204)
    }
  })

  it('reads no more priorities than it hands out of, and one more', async () => {
    const ledger = ledgerOn(open())
    await ledger.commit(many(300).map((id, i) => enqueue(envelope(id, { priority: i }))))
    let items: readonly { readonly lease: { readonly id: string } }[] = []
    const commands = await commandsOf(async () => {
      items = await claim(ledger, 3)
    })
    expect(items.map(({ lease }) => lease.id)).toEqual(['i299', 'i298', 'i297'])
    const reads = commands.filter(([name, key]) => name === 'ZRANGE' && key?.includes(':ready:'))
    expect(reads.length).toBeLessThanOrEqual(4)
    expect((await claim(ledger, 500)).map(({ lease }) => lease.id)).toEqual(many(297).toReversed())
  })

  it('never reads items of a type that it has no room for', async () => {
    const ledger = ledgerOn(open())
    for (let round = 0; round < 4; round += 1)
      await ledger.commit(
        many(500, `u${round}-`).map((id, i) => enqueue(envelope(id, { type: 'u', priority: i % 50 }))),
      )
    await ledger.commit([enqueue(envelope('last', { type: 't', priority: -1 }))])
    const rooms = [
      { types: ['t', 'other'], max: 5 },
      { types: ['u'], max: 0 },
    ]
    let items: readonly { readonly lease: { readonly id: string } }[] = []
    const commands = await commandsOf(async () => {
      const reply = await ledger.claim({ queues: [{ queue: 'default', max: 5 }], rooms, leaseMs: 1_000, worker: 'w' })
      items = reply.items
    })
    expect(items.map(({ lease }) => lease.id)).toEqual(['last'])
    const ready = commands.filter(([, key]) => key?.includes(':ready:')).map(([, key]) => key!.split(':ready:')[1])
    expect(new Set(ready)).toEqual(new Set(['-1:7:defaultt']))
    expect(commands.length).toBeLessThan(40)
  })

  it('says that there is more behind lists that others have emptied', async () => {
    const ledger = ledgerOn(open())
    await ledger.commit(many(120).map((id, i) => enqueue(envelope(id, { priority: i }))))
    const gone = many(120).slice(5, 119)
    await ledger.commit(
      gone.map((id) => ({ guard: { by: 'status', id, in: ['pending'] }, effects: [{ do: 'delete', id }] })),
    )
    const from = [{ queue: 'default', max: 1 }]
    const ids: string[] = []
    for (let more = true; more; ) {
      const reply = await ledger.claim({ queues: from, leaseMs: 1_000, worker: 'w' })
      ids.push(...reply.items.map(({ lease }) => lease.id))
      more = reply.more
    }
    expect(ids).toEqual(['i119', 'i4', 'i3', 'i2', 'i1', 'i0'])
  })

  it('holds expired items that are paused, and neither says that there is more behind them nor leaves one that is not', async () => {
    const clock = new FakeClock()
    const ledger = ledgerOn(open({ clock }))
    const ask = async (max: number) => {
      const { items, more } = await ledger.claim({
        queues: [{ queue: 'default', max }],
        rooms: [],
        leaseMs: 9,
        worker: 'w',
      })
      return [items.map(({ lease }) => lease.id), more]
    }
    const deadline = clock.now() + 5
    const push = (type: string, ...names: readonly string[]) =>
      ledger.commit(names.map((id) => enqueue(envelope(id, { type, deadline }))))
    await ledger.commit([{ guard: { by: 'none' }, effects: [{ do: 'pause', what: 'type', name: 'paused' }] }])

    await push('paused', 'a')
    await clock.advance(10)
    expect(await ask(1)).toEqual([[], false])
    await push('paused', 'b', 'c')
    await push('t', 'd')
    await push('paused', 'e')
    expect(await ask(2)).toEqual([['d'], false])
  })

  it('hands out and extends no more than five hundred leases', async () => {
    const { backend, watched } = openWatched()
    const ledger = ledgerOn(backend)
    await ledger.commit(many(1_100).map((id) => enqueue(envelope(id))))
    const from = [{ queue: 'default', max: 5_000 }]
    const items: Awaited<ReturnType<typeof claim>>[number][] = []
    const counts: number[] = []
    for (let more = true; more; ) {
      const reply = await ledger.claim({ queues: from, leaseMs: 30_000, worker: 'w' })
      counts.push(reply.items.length)
      items.push(...reply.items)
      more = reply.more
    }
    expect(counts).toEqual([500, 500, 100])
    watched.sent.length = 0
    const me = { id: 'w', host: 'h', version: '1', types: ['t'], queues: ['default'] }
    const held = items.map(({ lease }, i) => ({ lease: i === 700 ? { ...lease, token: 'x' } : lease, running: true }))
    const answers = await ledger.extend(held, 30_000, me)
    expect(answers).toEqual(items.map((_, i) => (i === 700 ? 'lost' : 'held')))
    expect(watched.sent.filter(({ name }) => name === 'evalsha')).toHaveLength(3)
    expect(await ledger.extend([], 30_000, { ...me, id: 'idle' })).toEqual([])
    expect((await ledger.inspect!.workers()).map(({ id }) => id).toSorted()).toEqual(['idle', 'w'])
  })
})

describe('the log on Redis', () => {
  it('keeps the last thousand actions, the newest first', async () => {
    const clock = new FakeClock()
    const { backend } = openWatched({ clock })
    const ledger = ledgerOn(backend)
    const acts = many(1_100).map((what) => anybody({ do: 'log', who: 'me', why: 'because', what }))
    await ledger.commit(acts)
    expect(await ledger.inspect!.log(2)).toEqual([
      { at: clock.now(), who: 'me', why: 'because', what: 'i1099' },
      { at: clock.now(), who: 'me', why: 'because', what: 'i1098' },
    ])
    expect(await ledger.inspect!.log(5_000)).toHaveLength(1_000)
  })
})
