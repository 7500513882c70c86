import { Redis } from 'ioredis'
import {
  ack,
  dlq,
  type Handler,
  Hopper,
  type HopperOptions,
  inProgress,
  type Message,
  nak,
  nakAfter,
  PoisonError,
  reject,
  retry,
  term,
} from 'millrace/source'
import {
  RedisStreamInlet,
  type RedisStreamInletOptions,
  RedisStreamOutlet,
  redisEntry,
  streamFields,
} from 'millrace/source/redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startRedis } from '../../servers/index.js'

let server: Awaited<ReturnType<typeof startRedis>>
let redis: Redis
const inlets: RedisStreamInlet[] = []

beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.url)
})
afterAll(async () => {
  await Promise.all(inlets.map((inlet) => inlet.close()))
  redis.disconnect()
  await server.stop()
})

let streams = 0
const freshStream = () => {
  streams += 1
  return `orders ${streams}`
}
const open = (stream: string, options: Partial<RedisStreamInletOptions> = {}): RedisStreamInlet => {
  const inlet = new RedisStreamInlet({ url: server.url, stream, group: 'shipping', ...options })
  inlets.push(inlet)
  return inlet
}
const publish = async (stream: string, ...values: string[]): Promise<string[]> => {
  const ids: string[] = []
  for (const value of values) ids.push((await redis.xadd(stream, '*', ...streamFields(value)))!)
  return ids
}
const signal = new AbortController().signal
const textOf = (message: Message) => new TextDecoder().decode(message.value)
const pendingOf = async (stream: string) =>
  (await redis.xpending(stream, 'shipping', '-', '+', 100)) as [string, string, number, number][]
const fieldsOf = (words: readonly string[]) =>
  Object.fromEntries(words.flatMap((word, i) => (i % 2 === 0 ? [[word, words[i + 1]]] : [])))

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 20_000; !(await isTrue()); ) {
    if (Date.now() > end) throw new Error('it did not come true within 20 s')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Consumes until `isOver`. */
async function consume(
  inlet: RedisStreamInlet,
  options: HopperOptions,
  handler: Handler,
  isOver: () => boolean | Promise<boolean>,
) {
  const hopper = new Hopper({ lagIntervalMs: 0, ...options })
  const running = hopper.receive(inlet, { topics: [] }, handler)
  await Promise.race([until(isOver), running])
  await hopper.close()
  return running
}

describe('a message of a Redis stream', () => {
  it('has its bytes, key, headers, id and time', async () => {
    const stream = freshStream()
    const bytes = new Uint8Array([0, 255, 128, 10])
    const fields = streamFields(bytes, { key: 'customer-7', id: 'o-1', headers: { 'content-type': 'image/png' } })
    const id = await redis.xadd(stream, '*', ...fields)
    const sub = await open(stream).subscribe()
    const message = await sub.next({ signal })
    expect(message.value).toEqual(Buffer.from(bytes))
    expect(new TextDecoder().decode(message.key!)).toBe('customer-7')
    expect(message.headers.entries()).toEqual([
      { key: 'message-id', value: 'o-1' },
      { key: 'content-type', value: 'image/png' },
    ])
    expect([message.subject, message.partitionKey, message.cursor.toString()]).toEqual([stream, '', id])
    expect(message.timestampMs).toBe(Number(id!.split('-')[0]))
    expect(message.as(redisEntry)?.fields.map(([name]) => name)).toEqual([
      'value',
      'crucible-key',
      'message-id',
      'content-type',
    ])
  })

  it('is read from the fields that its producers use', async () => {
    const stream = freshStream()
    await redis.xadd(stream, '*', 'payload', '{"id":1}', 'customer', 'c-7', 'shop', 'north')
    const sub = await open(stream, { valueField: 'payload', keyField: 'customer' }).subscribe()
    const message = await sub.next({ signal })
    expect([textOf(message), new TextDecoder().decode(message.key!), message.headers.get('shop')]).toEqual([
      '{"id":1}',
      'c-7',
      'north',
    ])
    await redis.xadd(stream, '*', 'shop', 'south')
    const bare = await sub.next({ signal })
    expect([bare.value.length, bare.key, bare.headers.get('shop')]).toEqual([0, null, 'south'])
  })

  it('keeps the order of its key, whatever runs beside it', async () => {
    const stream = freshStream()
    for (let i = 0; i < 60; i += 1) await redis.xadd(stream, '*', ...streamFields(String(i), { key: `k${i % 3}` }))
    const seen: Record<string, number[]> = {}
    await consume(
      open(stream),
      { concurrency: 8 },
      async (_, message) => {
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 3))
        const key = new TextDecoder().decode(message.key!)
        seen[key] = [...(seen[key] ?? []), Number(textOf(message))]
        return ack()
      },
      async () => Object.values(seen).flat().length === 60 && (await pendingOf(stream)).length === 0,
    )
    for (const key of [0, 1, 2]) expect(seen[`k${key}`]).toEqual(Array.from({ length: 20 }, (_, i) => 3 * i + key))
  })
})

describe('what is terminated', () => {
  it('is moved to the stream of dead letters and acknowledged in one step', async () => {
    const stream = freshStream()
    const dead = `${stream}:dead`
    const sub = await open(stream, { deadLetters: dead }).subscribe()
    const ids = await publish(stream, 'a', 'b', 'c')
    const [a, b, c] = [await sub.next({ signal }), await sub.next({ signal }), await sub.next({ signal })]
    await sub.settle(a, term('bad data'), { signal })
    await sub.settle(b, nak(new Error('later')), { signal })
    await sub.settle(c, reject(new RangeError('too late')), { signal })
    const letters = (await redis.xrange(dead, '-', '+')).map(([, words]) => fieldsOf(words))
    expect(letters).toEqual([
      {
        value: 'a',
        'crucible-dlq-original-id': ids[0],
        'crucible-dlq-stream': stream,
        'crucible-dlq-class': 'poison',
        'crucible-dlq-error': 'bad data',
        'crucible-dlq-error-name': '',
        'crucible-dlq-attempts': '1',
        'crucible-dlq-group': 'shipping',
      },
      expect.objectContaining({
        'crucible-dlq-original-id': ids[2],
        'crucible-dlq-class': 'invalid_for_state',
        'crucible-dlq-error-name': 'RangeError',
      }),
    ])
    expect((await pendingOf(stream)).map(([id]) => id)).toEqual([ids[1]])
  })

  it('is only acknowledged where no stream is named for it', async () => {
    const stream = freshStream()
    const inlet = open(stream)
    const sub = await inlet.subscribe()
    await publish(stream, 'a')
    await sub.settle(await sub.next({ signal }), term('bad data'), { signal })
    expect(await pendingOf(stream)).toEqual([])
    expect(() => inlet.letters).toThrow(/redisStreamInlet.deadLetters/)
  })

  it('stays unsettled while its letter cannot be written, and nothing beside it is held up', async () => {
    const stream = freshStream()
    const dead = `${stream}:dead`
    await redis.set(dead, 'no stream')
    const sub = await open(stream, { deadLetters: dead }).subscribe()
    await publish(stream, 'bad', 'good')
    const [bad, good] = [await sub.next({ signal }), await sub.next({ signal })]
    const settled = await Promise.allSettled([
      sub.settle(bad, term(new Error('no')), { signal }),
      sub.settle(good, ack(), { signal }),
    ])
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
    expect((settled[0] as PromiseRejectedResult).reason).toMatchObject({ code: 'LETTER_NOT_WRITTEN' })
    await redis.del(dead)
    await sub.settle(bad, term(new Error('no')), { signal })
    expect(await redis.xlen(dead)).toBe(1)
  })

  it('says with dlq which hopper gave it up, once, and goes back with its headers', async () => {
    const stream = freshStream()
    const inlet = open(stream, { deadLetters: `${stream}:dead` })
    await redis.xadd(stream, '*', ...streamFields('bad', { key: 'k', headers: { 'x-trace': 'abc' } }))
    const options = { name: 'billing', middleware: [dlq(inlet.letters), retry({ maxAttempts: 2, backoff: () => 1 })] }
    await consume(
      inlet,
      options,
      () => nak(new Error('no such article')),
      async () => (await redis.xlen(`${stream}:dead`)) === 1,
    )
    const letters = await inlet.letters.list()
    expect(letters).toEqual([
      expect.objectContaining({ class: 'retryable', error: 'no such article', errorName: 'Error', attempts: 2 }),
    ])
    expect(letters[0]?.headers.entries()).toEqual([{ key: 'x-trace', value: 'abc' }])
    expect(await inlet.explain()).toMatchObject({
      waiting: 0,
      unsettled: 0,
      letters: { count: 1, reasons: { 'retryable: Error': 1 } },
      because: ['1 were given up (1 retryable: Error): fix the cause, then redrive them.'],
    })
    expect(await inlet.letters.redrive([letters[0]!.id, letters[0]!.id])).toBe(1)
    const seen: unknown[] = []
    // The consumer that was closed is gone for good, so another inlet reads on.
    await consume(
      open(stream),
      {},
      (_, message) => {
        seen.push([textOf(message), new TextDecoder().decode(message.key!), message.headers.entries()])
        return ack()
      },
      () => seen.length === 1,
    )
    expect(seen).toEqual([['bad', 'k', [{ key: 'x-trace', value: 'abc' }]]])
    expect(await inlet.letters.count()).toBe(0)
  })

  it('can be discarded, and letters of other streams are kept as well', async () => {
    const stream = freshStream()
    const inlet = open(stream, { deadLetters: `${stream}:dead` })
    const other = freshStream()
    await publish(other, 'bad')
    await consume(
      open(other),
      { middleware: [dlq(inlet.letters)] },
      () => {
        throw new PoisonError('broken')
      },
      async () => (await inlet.letters.count()) === 1,
    )
    const [letter] = await inlet.letters.list()
    expect(letter).toMatchObject({ class: 'poison', subject: other, error: 'broken' })
    expect(await inlet.letters.discard([letter!.id])).toBe(1)
    expect(await inlet.letters.discard([letter!.id])).toBe(0)
  })
})

describe('what a consumer leaves behind', () => {
  it('keeps its delay, and its note, at the next one', async () => {
    const stream = freshStream()
    const first = open(stream, { leaseMs: 300 })
    const sub = await first.subscribe()
    await publish(stream, 'a')
    const message = await sub.next({ signal })
    await sub.settle(message, nakAfter(1_200, new Error('busy'), { note: 'given up' }), { signal })
    const putBackAt = Date.now()
    await first.close()
    // Four leases long: it is put back, not lapsed.
    const second = await open(stream, { leaseMs: 300 }).subscribe()
    const again = await second.next({ signal })
    expect(Date.now() - putBackAt).toBeGreaterThanOrEqual(1_195)
    expect([textOf(again), again.deliveryCount, again.note]).toEqual(['a', 2, 'given up'])
    await second.settle(again, ack(), { signal })
    expect(await redis.keys(`{${stream}}*`)).toEqual([])
  })

  it('comes to another one when its lease lapses, not counted unless it began to run', async () => {
    const stream = freshStream()
    const dead = await open(stream, { leaseMs: 300 }).subscribe()
    await publish(stream, 'fetched', 'begun')
    const [, begun] = (await dead.capability('batched')!.nextBatch(2, { signal })) as [Message, Message]
    await dead.capability('starter')!.start([begun])
    await until(async () => (await pendingOf(stream)).some(([, , , starts]) => starts === 1))
    const alive = await open(stream, { leaseMs: 300 }).subscribe()
    const found = [await alive.next({ signal }), await alive.next({ signal })]
    expect(found.map((message) => [textOf(message), message.deliveryCount])).toEqual([
      ['fetched', 1],
      ['begun', 2],
    ])
    // The first one wakes up, and has no say any more.
    const late = dead.settle(begun, ack(), { signal })
    await expect(late).rejects.toMatchObject({ code: 'LEASE_LOST' })
    await expect(dead.settle(begun, inProgress(), { signal })).rejects.toMatchObject({ code: 'LEASE_LOST' })
    expect((await pendingOf(stream)).length).toBe(2)
  })

  it('is settled only where it is held, however many are settled together', async () => {
    const stream = freshStream()
    const held = await open(stream, { leaseMs: 60_000 }).subscribe()
    const values = Array.from({ length: 300 }, (_, i) => String(i))
    await publish(stream, ...values)
    const messages = await held.capability('batched')!.nextBatch(300, { signal })
    // A tenth goes to another consumer, a tenth is settled by hand; of the others some are settled, among many that stay.
    const idAt = (i: number) => messages[i]!.cursor.toString()
    const at = (rest: number) => values.map(Number).filter((i) => i % 10 === rest)
    await redis.xclaim(stream, 'shipping', 'another', 0, ...at(0).map(idAt), 'JUSTID')
    await redis.xack(stream, 'shipping', ...at(1).map(idAt))
    const rests = [0, 1, 2, 3, 9]
    const results = await Promise.allSettled(
      values.map((_, i) => (rests.includes(i % 10) ? held.settle(messages[i]!, ack(), { signal }) : undefined)),
    )
    const lost = results.flatMap((result, i) => (result.status === 'rejected' ? [i] : []))
    expect(lost).toEqual(values.map(Number).filter((i) => i % 10 <= 1))
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'LEASE_LOST' })
    const left = (await redis.xpending(stream, 'shipping', '-', '+', 400)) as [string, string][]
    expect(left.map(([id]) => id)).toEqual(
      values
        .map(Number)
        .filter((i) => ![1, 2, 3, 9].includes(i % 10))
        .map(idAt),
    )
    expect(left.filter(([, consumer]) => consumer === 'another').map(([id]) => id)).toEqual(at(0).map(idAt))
    // A few that lie far apart, with many between them.
    await Promise.all([4, 294].map((i) => held.settle(messages[i]!, ack(), { signal })))
    expect((await pendingOf(stream)).map(([id]) => id)).not.toContain(idAt(4))
    expect(await redis.xpending(stream, 'shipping', idAt(294), idAt(294), 1)).toEqual([])
  })

  it('is no consumer in the group: it leaves, or is removed when it has not been heard of', async () => {
    const stream = freshStream()
    const names = async () =>
      ((await redis.xinfo('CONSUMERS', stream, 'shipping')) as string[][]).map((row) => fieldsOf(row)['name'])
    const first = open(stream, { consumer: 'first', leaseMs: 20 })
    const sub = await first.subscribe()
    await publish(stream, 'a')
    await sub.settle(await sub.next({ signal }), ack(), { signal })
    expect(await names()).toEqual([expect.stringMatching(/^millrace:first:/)])
    // 400 ms without a word are twenty leases.
    await new Promise((resolve) => setTimeout(resolve, 500))
    const second = open(stream, { consumer: 'second', leaseMs: 20 })
    const next = await second.subscribe()
    expect(await names()).toEqual([])
    await publish(stream, 'b')
    await next.settle(await next.next({ signal }), ack(), { signal })
    await second.close()
    expect(await names()).toEqual([])
  })
})

describe('a stream', () => {
  it('goes on when its group was removed, and when a message was deleted while it was out', async () => {
    const stream = freshStream()
    const sub = await open(stream, { leaseMs: 200 }).subscribe()
    const [deleted] = await publish(stream, 'deleted', 'kept')
    await sub.next({ signal })
    await redis.xdel(stream, deleted!)
    expect(textOf(await sub.next({ signal }))).toBe('kept')
    expect(textOf(await sub.next({ signal }))).toBe('kept')
    expect((await pendingOf(stream)).length).toBe(1)
    await redis.xgroup('DESTROY', stream, 'shipping')
    expect(textOf(await sub.next({ signal }))).toBe('kept')
  })

  it('begins with what comes next where it is asked to', async () => {
    const stream = freshStream()
    await publish(stream, 'old')
    const sub = await open(stream, { from: 'end' }).subscribe()
    await publish(stream, 'new')
    expect(textOf(await sub.next({ signal }))).toBe('new')
  })

  it('is sought by time, and what was put back is not delivered twice for it', async () => {
    const stream = freshStream()
    for (const [id, value] of [
      ['1000-0', 'a'],
      ['2000-0', 'b'],
      ['3000-0', 'c'],
    ] as const)
      await redis.xadd(stream, id, ...streamFields(value))
    const sub = await open(stream).subscribe()
    const first = await sub.next({ signal })
    await sub.settle(first, nakAfter(150), { signal })
    await sub.capability('seekable')!.seekToTime(1_000)
    const values: string[] = []
    for (let i = 0; i < 3; i += 1) {
      const message = await sub.next({ signal })
      values.push(textOf(message))
      await sub.settle(message, ack(), { signal })
    }
    expect(values).toEqual(['a', 'b', 'c'])
    const more = await Promise.race([sub.next({ signal: AbortSignal.timeout(400) }).catch(() => 'nothing')])
    expect(more).toBe('nothing')
    await sub.capability('seekable')!.seekToTime(2_000)
    expect(textOf(await sub.next({ signal }))).toBe('b')
  })

  it('is explained before anybody has read it', async () => {
    const stream = freshStream()
    expect(await open(stream).explain()).toMatchObject({ waiting: 0, unsettled: 0, because: [] })
    await publish(stream, 'a', 'b')
    expect(await open(stream).explain()).toMatchObject({
      waiting: 2,
      because: [`Nothing consumes "${stream}" as "shipping": start a hopper on it.`],
    })
    expect(await open(stream, { from: 'end' }).explain()).toMatchObject({ waiting: 0 })
  })

  it('is paused and explained', async () => {
    const stream = freshStream()
    const inlet = open(stream)
    const sub = await inlet.subscribe()
    await publish(stream, 'a', 'b')
    const a = await sub.next({ signal })
    await sub.settle(a, nakAfter(60_000), { signal })
    inlet.pause()
    expect(await inlet.explain()).toEqual({
      stream,
      group: 'shipping',
      waiting: 1,
      unsettled: 1,
      putBack: 1,
      consumers: 1,
      isPaused: true,
      letters: undefined,
      because: ['This inlet is paused: call resume().', '1 failed and wait to be delivered again.'],
    })
    const waiting = sub.next({ signal })
    let hasCome = false
    void waiting.then(() => {
      hasCome = true
    })
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(hasCome).toBe(false)
    inlet.resume()
    expect(textOf(await waiting)).toBe('b')
  })

  it('is read through a client of your own, which is left open', async () => {
    const stream = freshStream()
    const client = new Redis(server.url, { autoResendUnfulfilledCommands: false })
    const inlet = new RedisStreamInlet({ client, stream, group: 'shipping' })
    await publish(stream, 'a')
    const seen: string[] = []
    await consume(
      inlet,
      {},
      (_, message) => {
        seen.push(textOf(message))
        return ack()
      },
      () => seen.length === 1,
    )
    await inlet.close()
    expect(await client.ping()).toBe('PONG')
    client.disconnect()
  })

  it('refuses options that cannot work', () => {
    const base = { url: server.url, stream: 's', group: 'g' }
    expect(() => new RedisStreamInlet({ ...base, deadLetters: 's' })).toThrow(/another stream/)
    expect(() => new RedisStreamInlet({ ...base, url: 'http://x' })).toThrow(/redisStreamInlet.url/)
    expect(() => new RedisStreamInlet({ ...base, leasMs: 5 } as never)).toThrow(/Did you mean "leaseMs"/)
    expect(() => new RedisStreamInlet({ stream: 's', group: 'g', client: { evalsha() {} } as never })).toThrow(
      /evalBuffer/,
    )
  })

  it('refuses topics and groups that are not those of its inlet', async () => {
    const inlet = open(freshStream())
    await expect(inlet.subscribe({ topics: ['other'] })).rejects.toMatchObject({ code: 'BAD_OPTION' })
    await expect(inlet.subscribe({ topics: [], group: 'other' })).rejects.toMatchObject({ code: 'BAD_OPTION' })
  })
})

describe('an outlet on a Redis stream', () => {
  it('publishes once for each id, however often it is asked', async () => {
    const stream = freshStream()
    const outlet = new RedisStreamOutlet({ url: server.url, stream, maxLength: 1_000 })
    const bytes = new Uint8Array([0, 255, 128])
    await Promise.all([
      outlet.publish({ id: 'a', value: bytes, key: 'k', headers: { 'x-trace': 'abc' } }),
      outlet.publish({ id: 'a', value: bytes, key: 'k', headers: { 'x-trace': 'abc' } }),
      outlet.publish({ id: 'b', value: 'text' }),
    ])
    await outlet.publish({ id: 'a', value: 'another text' })
    await outlet.close()
    expect(await redis.xlen(stream)).toBe(2)
    const sub = await open(stream).subscribe()
    const message = await sub.next({ signal })
    expect(message.value).toEqual(Buffer.from(bytes))
    expect([message.headers.get('message-id'), message.headers.get('x-trace')]).toEqual(['a', 'abc'])
    expect(new TextDecoder().decode(message.key!)).toBe('k')
  })
})
