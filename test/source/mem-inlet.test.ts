import { describe, expect, it } from 'vitest'
import { ack, inProgress, manual, nak, nakAfter, skip, term } from '../../src/core/stream/result.js'
import { MemInlet, type MemInletOptions } from '../../src/source/inlets/memory/mem-inlet.js'
import { memDelivery } from '../../src/source/inlets/memory/mem-message.js'
import type { Subscription } from '../../src/source/inlets/subscription.js'
import { Headers } from '../../src/source/message/headers.js'
import { vendorToken } from '../../src/source/message/message.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { counting, textOf } from './hopper/support.js'

const boom = new Error('boom')
const never = { signal: new AbortController().signal }

async function opened(options: MemInletOptions = {}) {
  const clock = new FakeClock()
  const inlet = new MemInlet({ clock, nextId: counting(), ...options })
  const sub = await inlet.subscribe()
  const settle = (...args: Parameters<Subscription['settle']> extends [infer M, infer R, unknown] ? [M, R] : never) =>
    sub.settle(...args, never)
  return { clock, inlet, sub, settle, next: () => sub.next(never) }
}

describe('a message of a memory inlet', () => {
  it('has defaults for whatever its spec leaves out', async () => {
    const { next, clock } = await opened({ messages: [{}] })
    const message = await next()
    expect(message).toMatchObject({
      key: null,
      value: new Uint8Array(),
      subject: 'memsource',
      partitionKey: '',
      deliveryCount: 1,
      timestampMs: clock.now(),
    })
    expect(message.headers.size).toBe(0)
    expect(message.cursor.toString()).toBe('1')
  })

  it('takes the key as its partition unless it has one', async () => {
    const { next } = await opened({
      messages: [{ key: 'k' }, { key: 'k', partitionKey: 'p' }, { key: 'k', partitionKey: '' }],
    })
    expect([(await next()).partitionKey, (await next()).partitionKey, (await next()).partitionKey]).toEqual([
      'k',
      'p',
      'k',
    ])
  })

  it('is a copy of what was queued', async () => {
    const key = new TextEncoder().encode('k1')
    const value = new TextEncoder().encode('payload')
    const { next } = await opened({ messages: [{ key, value, headers: new Headers([['h', 'v']]) }] })
    key[0] = 0
    value.fill(0)
    const message = await next()
    expect([new TextDecoder().decode(message.key!), textOf(message), message.headers.get('h')]).toEqual([
      'k1',
      'payload',
      'v',
    ])
  })

  it('gives its vendor value to the holder of the token', async () => {
    const { next } = await opened({ messages: [{}] })
    const message = await next()
    expect(message.as(memDelivery)).toMatchObject({ id: '1' })
    expect(message.as(vendorToken('mem delivery'))).toBeUndefined()
  })

  it('has an id from nextId, also when it was queued from the beginning', async () => {
    let n = 0
    const { inlet, next } = await opened({ nextId: () => `id-${++n}`, messages: [{}] })
    expect(inlet.queue({}, {})).toEqual(['id-2', 'id-3'])
    expect((await next()).cursor.toString()).toBe('id-1')
  })

  it('never shares an id with another', () => {
    expect(() => new MemInlet({ nextId: () => 'same', messages: [{}, {}] })).toThrow('never returns the same id twice')
    expect(() => new MemInlet({ nextId: () => '', messages: [{}] })).toThrow('memInlet.nextId must return')
  })
})

describe('the ledger', () => {
  it('keeps every settlement in order, and hands out copies', async () => {
    const { inlet, clock, next, settle } = await opened({ messages: [{}, {}, {}, {}, {}, {}] })
    const results = [ack(), skip(), nak(boom), term(boom), inProgress(), manual()]
    for (const result of results) {
      await clock.advance(10)
      await settle(await next(), result)
    }
    const { ledger } = inlet
    expect(ledger.length).toBe(6)
    expect(ledger.ids()).toEqual(['1', '2', '3', '4', '5', '6'])
    expect(ledger.counts()).toEqual({ acked: 1, dropped: 1, nak: 1, term: 1, inProgress: 1, manual: 1 })
    expect(ledger.entries()[2]).toEqual({ id: '3', result: results[2], atMs: clock.now() - 30, attempt: 1 })
    ledger.entries().length = 0
    ledger.ids().length = 0
    expect(ledger.length).toBe(6)
  })
})

// W36
describe('redelivery', () => {
  it('brings a nak back after its delay, counted', async () => {
    const { clock, next, settle } = await opened({ messages: [{ value: 'a' }] })
    await settle(await next(), nakAfter(500, boom))
    let again: number | undefined
    const waiting = next().then((message) => {
      again = clock.monotonic()
      return message
    })
    await clock.advance(10_000)
    expect((await waiting).deliveryCount).toBe(2)
    expect(again).toBe(500)
  })

  it('brings back what is not settled when its lease has lapsed, and refuses the late settlement', async () => {
    const { clock, inlet, next, settle } = await opened({ messages: [{ value: 'a' }], leaseMs: 1_000 })
    const first = await next()
    const waiting = next()
    await clock.advance(999)
    await expect(Promise.race([waiting, Promise.resolve('nothing yet')])).resolves.toBe('nothing yet')
    await clock.advance(1)
    const second = await waiting
    expect(second.deliveryCount).toBe(2)
    await expect(settle(first, ack())).rejects.toMatchObject({ code: 'LEASE_LOST' })
    expect(inlet.ledger.length).toBe(0)
    await settle(second, ack())
    expect(inlet.ledger.entries()).toMatchObject([{ attempt: 2 }])
    expect(clock.pending).toBe(0)
  })

  it('delivers in the order of due time: a nak goes behind what waited before it', async () => {
    const { clock, next, settle } = await opened({ messages: [{ value: 'a' }, { value: 'b' }] })
    const a = await next()
    await clock.advance(1)
    await settle(a, nak(boom))
    expect([textOf(await next()), textOf(await next())]).toEqual(['b', 'a'])
  })

  it('is only recorded when that is asked for', async () => {
    const { clock, inlet, sub, next, settle } = await opened({ messages: [{}, {}], redeliver: false, leaseMs: 10 })
    await settle(await next(), nak(boom))
    const second = await next()
    await clock.advance(60_000)
    await settle(second, ack())
    expect(inlet.ledger.counts()).toMatchObject({ nak: 1, acked: 1 })
    expect(sub.capability('leaseExtender')).toBeUndefined()
    expect(sub.capability('nakSupport')).toBe('none')
    await sub.close()
    await expect(next()).rejects.toMatchObject({ code: 'DRAINED' })
  })

  it('is refused after close unless drainRedeliveries is set', async () => {
    const { sub, next, settle } = await opened({ messages: [{ value: 'a' }, { value: 'b' }] })
    await settle(await next(), nak(boom))
    await sub.close()
    expect(textOf(await next())).toBe('b')
    await expect(next()).rejects.toMatchObject({ code: 'DRAINED' })
  })

  it('is waited for after close with drainRedeliveries, until nothing can come back', async () => {
    const { clock, sub, next, settle } = await opened({ messages: [{ value: 'a' }], drainRedeliveries: true })
    await settle(await next(), nakAfter(1_000, boom))
    await sub.close()
    const waiting = next()
    await clock.advance(1_000)
    const again = await waiting
    const drained = next()
    await clock.settle()
    await settle(again, ack())
    await expect(drained).rejects.toMatchObject({ code: 'DRAINED' })
  })
})

describe('several subscriptions', () => {
  it('share the queue and the ledger, and each message goes to one of them', async () => {
    const { inlet, next, sub } = await opened()
    const other = await inlet.subscribe()
    const both = Promise.all([next(), other.next(never)])
    inlet.queue({ value: 'a' }, { value: 'b' })
    const messages = await both
    expect(messages.map(textOf).toSorted()).toEqual(['a', 'b'])
    // Settling is not bound to the subscription that delivered.
    await sub.settle(messages[1]!, ack(), never)
    await other.settle(messages[0]!, ack(), never)
    expect(inlet.ledger.length).toBe(2)
  })

  it('see what another gives back by lapse', async () => {
    const { clock, inlet, next } = await opened({ messages: [{}], leaseMs: 100 })
    const other = await inlet.subscribe()
    const waiting = other.next(never)
    await clock.settle()
    await clock.advance(100)
    // The first to ask gets it first; both wait for the one message.
    expect((await Promise.race([waiting, next()])).deliveryCount).toBeGreaterThanOrEqual(1)
    await inlet.close()
    await Promise.allSettled([waiting])
  })
})

describe('a closed inlet', () => {
  it('takes no more messages and no more subscribers', async () => {
    const { inlet, next } = await opened()
    const waiting = next()
    await inlet.close()
    await expect(waiting).rejects.toMatchObject({ code: 'DRAINED' })
    await expect(inlet.subscribe()).rejects.toMatchObject({ code: 'INLET_CLOSED' })
    expect(() => inlet.queue({})).toThrow('cannot queue messages any more')
  })
})

describe('capabilities of a memory inlet', () => {
  it('follow its options', () => {
    expect([...new MemInlet().capabilities].toSorted()).toEqual([
      'identity',
      'lagReporter',
      'leaseExtender',
      'nakSupport',
      'releaser',
      'seekable',
    ])
    const all = new MemInlet({ batched: true, ordered: true, pausable: true, consumerGroups: true })
    expect([...all.capabilities]).toEqual(
      expect.arrayContaining(['batched', 'orderedDelivery', 'pausable', 'consumerGroups']),
    )
  })

  it('hold back a partition, and deliver it in its place when it is let go', async () => {
    const { sub, next } = await opened({
      pausable: true,
      messages: ['a1', 'b1', 'a2', 'b2'].map((value) => ({ key: value[0]!, value })),
    })
    sub.capability('pausable')!.pause('a')
    expect([textOf(await next()), textOf(await next())]).toEqual(['b1', 'b2'])
    const waiting = next()
    sub.capability('pausable')!.resume('a')
    expect([textOf(await waiting), textOf(await next())]).toEqual(['a1', 'a2'])
  })

  it('seek by time', async () => {
    const { clock, inlet, sub, next } = await opened({ messages: [{ value: 'old' }] })
    await clock.advance(1_000)
    inlet.queue({ value: 'new' })
    await sub.capability('seekable')!.seekToTime(clock.now())
    expect(textOf(await next())).toBe('new')
    await sub.capability('seekable')!.seekToTime(clock.now() + 1)
    inlet.queue({ value: 'newer' })
    expect(textOf(await next())).toBe('newer')
  })

  it('resume behind a cursor that was stored as text', async () => {
    const { sub, next } = await opened({ messages: [{ value: 'a' }, { value: 'b' }] })
    const stored = String((await next()).cursor)
    await sub.capability('seekable')!.seekToCursor({ toString: () => stored })
    expect(textOf(await next())).toBe('b')
    await expect(sub.capability('seekable')!.seekToCursor({ toString: () => '99' })).rejects.toMatchObject({
      code: 'FOREIGN_CURSOR',
    })
  })

  it('count what is not settled as lag', async () => {
    const { sub, next, settle } = await opened({ messages: [{}, {}, {}] })
    const { lag } = sub.capability('lagReporter')!
    expect(await lag()).toBe(3)
    const first = await next()
    expect(await lag()).toBe(3)
    await settle(first, ack())
    expect(await lag()).toBe(2)
  })

  it('notify a group of partitions that come and go', async () => {
    const { inlet, sub, next } = await opened({ consumerGroups: true, messages: [{ key: 'a' }, { key: 'b' }] })
    const notified: string[] = []
    const group = sub.capability('consumerGroups')!
    group.onAssigned((keys) => void notified.push(`+${keys.join()}`))
    group.onRevoked(async (keys) => {
      await Promise.resolve()
      notified.push(`-${keys.join()}`)
    })
    await inlet.revoke('a')
    expect(notified).toEqual(['-a'])
    expect((await next()).partitionKey).toBe('b')
    await inlet.assign('a')
    expect(notified).toEqual(['-a', '+a'])
    expect((await next()).partitionKey).toBe('a')
  })
})

describe('options of a memory inlet', () => {
  it.each<[object, string]>([
    [{ leaseMs: 0 }, 'memInlet.leaseMs must be'],
    [{ redelivery: true }, 'Did you mean "redeliver"?'],
    [{ nextId: 'x' }, 'memInlet.nextId must be a function'],
    [{ clock: {} }, 'memInlet.clock must be a Clock'],
    [{ batched: 'yes' }, 'memInlet.batched must be true or false'],
  ])('are checked: %j', (options, message) => {
    expect(() => new MemInlet(options as MemInletOptions)).toThrow(message)
  })
})
