import { describe, expect, it } from 'vitest'
import { memoryBackend } from '../../../src/backends/memory/index.js'
import { ownedBy } from '../../../src/ports/native.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { ledgerOn } from '../ledger-on.js'
import { anybody, claim, DAY, enqueue, envelope, finish, ids, park } from '../native.js'

function opened(options: Parameters<typeof memoryBackend>[0] = {}) {
  const clock = new FakeClock()
  const backend = memoryBackend({ clock, ...options })
  return { clock, backend, ledger: ledgerOn(backend), ...backend }
}
const parsed = (text: string | undefined) => (text === undefined ? undefined : (JSON.parse(text) as unknown))

describe('a memory backend', () => {
  it('shows a spread nothing but the three ports', () => {
    const backend = memoryBackend()
    expect(Object.keys(backend)).toEqual(['queue', 'pubsub', 'store'])
    expect(ownedBy({ ...backend, store: { ...backend.store } }, [])).toEqual({ foreign: 'store' })
    expect(ownedBy({ ...backend, queue: { ...backend.queue } }, [])).toEqual({ foreign: 'queue' })
    expect(ownedBy({ ...backend, pubsub: memoryBackend().pubsub }, [])).toEqual({ foreign: 'pubsub' })
    expect(ownedBy(backend, [memoryBackend().named('bulk')])).toEqual({ foreign: 'a per-type queue' })
    expect(ownedBy({ ...backend }, [backend.named('bulk')])).toHaveProperty('open')
  })

  it('gives one queue for one name', () => {
    const backend = memoryBackend({ named: ['bulk'] })
    expect(backend.named('bulk')).toBe(backend.named('bulk'))
    expect(backend.named('default')).toBe(backend.queue)
    expect(() => backend.named('')).toThrow(/named\(queue\) must be a non-empty string/)
  })

  it('can be closed, and disposed of', async () => {
    const backend = memoryBackend()
    await backend.close()
    await backend[Symbol.asyncDispose]()
  })

  it('checks its options by name', () => {
    expect(() => memoryBackend({ file: 'x' } as never)).toThrow(/"file" is not an option of memoryBackend/)
    expect(() => memoryBackend({ queue: { maxDaed: 1 } as never })).toThrow(/Did you mean "maxDead"/)
    expect(() => memoryBackend({ maxItemBytes: 5 })).toThrow(
      /memoryBackend.maxItemBytes must be an integer >= 1024, got 5/,
    )
    expect(() => memoryBackend({ named: 'bulk' as never })).toThrow(/memoryBackend.named must be a list of queue names/)
    expect(() => memoryBackend({ clock: {} as never })).toThrow(/memoryBackend.clock must be a function or a Clock/)
  })
})

describe('the keys of the native ledger', () => {
  it('read as a plain system would have written them', async () => {
    const { ledger, store, clock } = opened()
    const now = clock.now()
    const item = envelope('a', { groupId: 'g', queueAt: now, startAt: now, priority: 2, group: 'tenant' })
    await ledger.commit([enqueue(item)])
    expect(parsed(store.get('work:state:a'))).toMatchObject({
      ...{
        id: 'a',
        type: 't',
        status: 'pending',
        attempt: 1,
        queueAt: now,
        startAt: now,
        priority: 2,
        group: 'tenant',
      },
    })
    expect(store.get('work:group:g:open')).toBe('1')
    expect([store.get('work:group:g:done'), store.get('work:hb:a'), store.get('work:result:a')]).toEqual([
      undefined,
      undefined,
      undefined,
    ])

    const [a] = await claim(ledger)
    await clock.advance(100)
    await ledger.extend([{ lease: a!.lease, running: true, progress: '"half"' }], 30_000, worker)
    expect(parsed(store.get('work:state:a'))).toMatchObject({ status: 'running', runAt: now })
    expect([store.get('work:hb:a'), store.get('work:progress:a')]).toEqual([String(now + 100), '"half"'])

    await ledger.commit([finish(a!, '42', [{ do: 'contribute', groupId: 'g', value: '"v"', final: true }])])
    expect(parsed(store.get('work:state:a'))).toMatchObject({ status: 'success', endAt: now + 100 })
    expect(parsed(store.get('work:state:a'))).not.toHaveProperty('result')
    expect(store.getMany(['work:result:a', 'work:group:g:open', 'work:group:g:done', 'work:group:g:result'])).toEqual([
      ...['42', '0', '1', '"v"'],
    ])
    expect(store.get('work:group:g:final')).toBe('1')
    expect([store.get('work:hb:a'), store.get('work:item:a:error')]).toEqual([undefined, undefined])
  })

  it('show the error of a parked item, and expire with it', async () => {
    const { ledger, store, clock } = opened()
    await ledger.commit([enqueue(envelope('a'))])
    const [a] = await claim(ledger)
    await ledger.commit([park(a!, 'Error: boom', 1000)])
    expect([store.get('work:item:a:error'), parsed(store.get('work:state:a'))]).toMatchObject([
      'Error: boom',
      { status: 'dead', error: 'Error: boom' },
    ])
    await clock.advance(1000)
    expect([store.get('work:item:a:error'), store.get('work:state:a')]).toEqual([undefined, undefined])
    expect(store.get('work:group:g-a:done')).toBeUndefined()
  })

  it('are under the prefix of their ledger, and of no other', async () => {
    const { backend, store } = opened()
    const [one, two] = [ledgerOn(backend, 'one:'), ledgerOn(backend, 'two:')]
    await one.commit([enqueue(envelope('a')), anybody({ do: 'pause', what: 'type', name: 'other' })])

    expect([store.get('one:group:g-a:open'), store.get('two:group:g-a:open')]).toEqual(['1', undefined])
    expect([store.get('one:pause:type:other'), store.get('two:pause:type:other')]).toEqual(['1', undefined])
    expect((await two.read(['a']))[0]).toBeUndefined()
    // The queue is one: who claims runs it, under its own keys.
    const [a] = await claim(two)
    await two.commit([finish(a!, '1')])
    expect([store.get('two:result:a'), store.get('one:result:a')]).toEqual(['1', undefined])
    expect((await two.read(['a']))[0]?.status).toBe('success')
  })

  it('may overlap in their prefixes', async () => {
    const { backend, store } = opened()
    const [outer, inner] = [ledgerOn(backend, 'w:'), ledgerOn(backend, 'w:in:')]
    await outer.commit([enqueue(envelope('a', { groupId: 'g' }))])
    await inner.commit([enqueue(envelope('b', { groupId: 'g' }))])

    expect([store.get('w:group:g:open'), store.get('w:in:group:g:open')]).toEqual(['1', '1'])
    expect(store.get('w:in:state:a')).toBeUndefined()
  })

  it('leave all other keys alone', async () => {
    const { ledger, store } = opened()
    await ledger.commit([enqueue(envelope('a'))])
    for (const key of ['work:mine', 'work:state', 'work:group:g-a:other', 'work:item:a', 'state:a', 'work:pause:a']) {
      expect(store.get(key)).toBeUndefined()
      store.set(key, 'x')
      expect(store.get(key)).toBe('x')
    }
    expect((await ledger.read(['a']))[0]?.status).toBe('pending')
  })
})

describe('what is written under the keys of a record', () => {
  it('is read back to the letter, and seen by the ledger', async () => {
    const { ledger, store } = opened()
    await ledger.commit([enqueue(envelope('a'))])
    const text = JSON.stringify({
      id: 'a',
      type: 't',
      status: 'running',
      attempt: 3,
      queueAt: 1,
      startAt: 2,
      mine: true,
    })
    store.set('work:state:a', text)

    expect(store.get('work:state:a')).toBe(text)
    expect((await ledger.read(['a']))[0]).toMatchObject({ status: 'running', envelope: { attempt: 3, groupId: 'g-a' } })
    expect(store.compareAndSet('work:state:a', text, 'x')).toBe(true)
  })

  it('counts groups together with the ledger, whoever counts', async () => {
    const { ledger, store } = opened()
    expect(store.increment('work:group:g:open', 1, DAY)).toBe(1)
    await ledger.commit([enqueue(envelope('a', { groupId: 'g' }))])
    expect(store.increment('work:group:g:open', 1)).toBe(3)
    expect((await ledger.groups(['g']))[0]?.open).toBe(3)
    expect(store.incrementOnce('work:group:g:open', 'work:settled:x:0', -1)).toEqual({ value: 2, applied: true })
    expect(store.incrementOnce('work:group:g:open', 'work:settled:x:0', -1)).toEqual({ value: 2, applied: false })
    const [a] = await claim(ledger)
    expect(await ledger.commit([finish(a!)])).toEqual([{ kind: 'applied', closed: [] }])
    expect(store.get('work:group:g:open')).toBe('1')
    store.delete('work:group:g:open')
    expect(store.get('work:group:g:open')).toBeUndefined()
  })

  it('is a value, a lock and an end of the group', async () => {
    const { ledger, store } = opened()
    const heard: string[] = []
    ledger.onInbox('me', ({ groups }) => heard.push(...groups))
    await ledger.commit([enqueue(envelope('a', { groupId: 'g' }))])
    await ledger.watch('me', { ids: [], groups: ['g'] })
    store.set('work:group:g:result', '"theirs"')
    expect((await ledger.groups(['g']))[0]).toEqual({ open: 1, value: '"theirs"', final: false, version: 1 })
    expect(store.setIfNotExists('work:group:g:final', '1')).toBe(true)
    expect(store.setIfNotExists('work:group:g:final', '1')).toBe(false)
    const [a] = await claim(ledger)
    await ledger.commit([finish(a!, '1', [{ do: 'contribute', groupId: 'g', value: '"late"', final: false }])])
    expect(store.get('work:group:g:result')).toBe('"theirs"')
    expect(heard).toEqual(['g'])
    store.delete('work:group:g:final')
    store.set('work:group:g:done', 'again')
    expect(store.get('work:group:g:done')).toBe('again')
  })

  it('ends an item for those who wait for it, once its result is there', async () => {
    const { ledger, store } = opened()
    const heard: string[] = []
    ledger.onInbox('me', ({ ids: ended }) => heard.push(...ended))
    await ledger.commit([enqueue(envelope('a', { waiter: 'me' }))])
    await ledger.commit([
      enqueue(envelope('gate'), { delayMs: Number.POSITIVE_INFINITY, hold: { by: 'gate', key: 'k' } }, [
        { do: 'openGate', key: 'k', holds: 'gate', members: ['a', 'unknown'], need: 1, of: 'success' },
      ]),
    ])
    store.set('work:state:a', JSON.stringify({ id: 'a', type: 't', status: 'success', attempt: 1 }))
    expect([heard, (await ledger.read(['a']))[0]?.status]).toEqual([[], 'running'])
    // Whoever hears of it can read it at once.
    let read: Promise<unknown> | undefined
    ledger.onInbox('me', ({ ids: ended }) => {
      read = ledger.read(ended)
    })
    store.set('work:result:a', '7', DAY)
    expect(await read).toMatchObject([{ status: 'success', result: '7' }])
    expect([heard, (await ledger.read(['a']))[0]]).toMatchObject([['a'], { status: 'success', result: '7' }])
    const [gate] = await claim(ledger)
    expect([gate?.lease.id, gate?.gate]).toEqual(['gate', { met: true }])
  })

  it('that makes no sense hides the record until the ledger writes again', async () => {
    const { ledger, store } = opened()
    await ledger.commit([enqueue(envelope('a'))])
    store.set('work:state:a', 'corrupt')
    expect(store.get('work:state:a')).toBe('corrupt')
    expect((await ledger.read(['a']))[0]?.status).toBe('pending')
    const [a] = await claim(ledger)
    expect(parsed(store.get('work:state:a'))).toMatchObject({ status: 'running' })
    await ledger.commit([finish(a!)])
    store.set('work:state:nobody', 'corrupt')
    expect((await ledger.read(['nobody']))[0]).toBeUndefined()
    expect((await ledger.commit([enqueue(envelope('nobody'))]))[0]?.kind).toBe('applied')
  })

  it('expires when it says so', async () => {
    const { ledger, store, clock } = opened()
    await ledger.commit([enqueue(envelope('a'))])
    store.set('work:result:a', '1', 100)
    store.set('work:item:a:error', 'x', 100)
    await clock.advance(100)
    expect(store.getMany(['work:result:a', 'work:item:a:error'])).toEqual([undefined, undefined])
  })

  it('may be deleted: the item then runs as one that was written by hand', async () => {
    const { ledger, store } = opened()
    await ledger.commit([enqueue(envelope('a')), enqueue(envelope('done'))])
    const items = await claim(ledger)
    await ledger.commit([finish(items[1]!, '5')])
    store.delete('work:state:done')
    expect([store.get('work:state:done'), store.get('work:result:done')]).toEqual([undefined, '5'])
    await ledger.commit([{ guard: { by: 'lease', lease: items[0]!.lease }, effects: [{ do: 'release', id: 'a' }] }])
    store.delete('work:state:a')
    expect(store.get('work:state:a')).toBeUndefined()
    expect(ids(await claim(ledger))).toEqual(['a'])
  })

  it('cancels and pauses', async () => {
    const { ledger, store } = opened()
    await ledger.commit([enqueue(envelope('a')), enqueue(envelope('b'))])
    const [a] = await claim(ledger, 1)
    store.set('work:cancel:a', 'enough')
    expect(await ledger.extend([{ lease: a!.lease, running: true }], 1000, worker)).toEqual(['cancelled'])
    store.set('work:pause:queue:default', '1')
    expect(ids(await claim(ledger))).toEqual([])
    store.delete('work:pause:queue:default')
    expect(ids(await claim(ledger))).toEqual(['b'])
  })

  it('before a ledger is opened counts afterwards', async () => {
    const backend = memoryBackend()
    backend.store.increment('work:group:g:open', 2)
    backend.store.set('work:state:a', JSON.stringify({ id: 'a', type: 't', status: 'dead', attempt: 2, error: 'x' }))
    const ledger = ledgerOn(backend)

    expect((await ledger.groups(['g']))[0]?.open).toBe(2)
    expect((await ledger.read(['a']))[0]).toMatchObject({ status: 'dead', error: 'x' })
    expect(await ledger.commit([enqueue(envelope('a'))])).toEqual([{ kind: 'repeated', id: 'a' }])
  })
})

describe('bodies and items in one queue', () => {
  it('are popped as text, whoever pushed them', async () => {
    const { ledger, queue } = opened()
    await ledger.commit([enqueue(envelope('a', { input: '"x"', priority: 1 }))])
    queue.push('anything')
    expect(queue.pop(9, 100).map(({ body }) => body)).toEqual([
      JSON.stringify(envelope('a', { input: '"x"', priority: 1 })),
      'anything',
    ])
    expect((await ledger.read(['a']))[0]?.status).toBe('pending')
  })

  it('nudge the native side when they are pushed by the plain one', async () => {
    const { ledger, queue, clock } = opened()
    const heard: unknown[] = []
    ledger.onReady((name, dueAt) => heard.push([name, dueAt]))
    queue.push('a')
    queue.push('b', { delay: 500 })
    expect(heard).toEqual([
      ['default', undefined],
      ['default', clock.now() + 500],
    ])
  })

  it('tell the plain side on the channel what the native one ended', async () => {
    const { ledger, pubsub } = opened()
    const heard: unknown[] = []
    pubsub.subscribe((message) => heard.push(JSON.parse(message)))
    await ledger.commit([enqueue(envelope('a')), enqueue(envelope('b'))])
    await ledger.commit((await claim(ledger)).map((item) => finish(item)))
    expect(heard).toEqual([{ kind: 'done-batch', ids: ['a', 'b'], groups: ['g-a', 'g-b'] }])
  })

  it('are known to the ledger before they are claimed', async () => {
    const { ledger, queue } = opened()
    queue.push(JSON.stringify(envelope('hand', { type: 'mail', tags: ['x'] })), { delay: 1000 })
    queue.push('not an envelope')
    expect((await ledger.read(['hand']))[0]).toMatchObject({ status: 'pending', queue: 'default' })
    expect((await ledger.inspect?.list({ tag: 'x', limit: 9 }))?.items.length).toBe(1)
    const guard = { by: 'status', id: 'hand', in: ['pending'] } as const
    await ledger.commit([{ guard, effects: [{ do: 'release', id: 'hand', delayMs: 0 }] }])
    const reply = await ledger.claim({ from: [{ queue: 'default', max: 9 }], leaseMs: 1, worker: 'w' })
    expect([ids(reply.items), reply.unreadable]).toEqual([['hand'], [{ queue: 'default', body: 'not an envelope' }]])
  })

  it('that a plain consumer acked leave nothing behind', async () => {
    const { ledger, queue } = opened()
    queue.push(JSON.stringify(envelope('hand')))
    expect((await ledger.read(['hand']))[0]?.status).toBe('pending')
    queue.ack(queue.pop(1, 100)[0]!)
    expect((await ledger.read(['hand']))[0]).toBeUndefined()
    expect(await ledger.inspect?.counts()).toEqual([])
  })

  it('of one id run once, also when it was pushed twice', async () => {
    const { ledger, queue, clock } = opened()
    const body = JSON.stringify(envelope('twin', { groupId: 'g' }))
    queue.push(body)
    queue.push(body)
    const [first, ...none] = await claim(ledger)
    expect(none).toEqual([])
    await clock.advance(1000)
    expect(ids(await claim(ledger))).toEqual([])
    await ledger.commit([finish(first!)])
    await clock.advance(1000)
    expect(ids(await claim(ledger))).toEqual([])
    expect(queue.size()).toBe(0)
  })
})

describe('what was parked', () => {
  it('is shown in the dead letters of its queue as body and error, but not what a person cancelled', async () => {
    const { ledger, queue, backend } = opened()
    await ledger.commit([enqueue(envelope('a')), enqueue(envelope('b'), { queue: 'bulk' }), enqueue(envelope('c'))])
    const [a, c] = await claim(ledger)
    const [b] = await claim(ledger, 1, 'bulk')
    const cancelled = {
      do: 'park',
      id: 'c',
      ending: 'cancelled',
      class: 'unclassified',
      error: 'no',
      keepMs: DAY,
    } as const
    await ledger.commit([
      park(a!, 'Error: 1'),
      park(b!, 'Error: 2'),
      { guard: { by: 'lease', lease: c!.lease }, effects: [cancelled] },
    ])

    expect(queue.dead).toEqual([{ body: JSON.stringify(envelope('a')), error: 'Error: 1' }])
    expect(backend.named('bulk').dead.map(({ error }) => error)).toEqual(['Error: 2'])
  })

  it('can be redriven by a plain system, which the ledger sees', async () => {
    const { ledger, queue, store } = opened()
    await ledger.commit([enqueue(envelope('a'))])
    await ledger.commit([park((await claim(ledger))[0]!)])
    const dlq = queue.deadQueue()
    const [dead] = await dlq.pop(1, 1000)
    store.set('work:state:a', JSON.stringify({ id: 'a', type: 't', status: 'pending', attempt: 1 }), DAY)
    queue.push(JSON.stringify({ ...JSON.parse(dead!.body), attempt: 1, redrives: 1 }))
    await dlq.ack(dead!)

    expect(queue.dead).toEqual([])
    const [again] = await claim(ledger)
    expect(again?.envelope.redrives).toBe(1)
    expect((await ledger.commit([finish(again!, '1')]))[0]?.kind).toBe('applied')
  })

  it('can be redriven by the ledger when a plain system parked it', async () => {
    const { ledger, queue, store } = opened()
    queue.deadLetter(JSON.stringify(envelope('a', { input: '"kept"' })), 'Error: x')
    store.set(
      'work:state:a',
      JSON.stringify({ id: 'a', type: 't', status: 'dead', attempt: 3, error: 'Error: x' }),
      DAY,
    )
    const guard = { by: 'status', id: 'a', in: ['dead'] } as const
    expect((await ledger.commit([{ guard, effects: [{ do: 'reopen', id: 'a', delayMs: 0 }] }]))[0]?.kind).toBe(
      'applied',
    )
    expect(queue.dead).toEqual([])
    expect((await claim(ledger))[0]?.envelope).toMatchObject({ input: '"kept"', attempt: 1, redrives: 1 })
  })

  it('cannot be redriven when nobody has its input', async () => {
    const { ledger, store } = opened()
    store.set('work:state:a', JSON.stringify({ id: 'a', type: 't', status: 'dead', attempt: 3 }), DAY)
    const guard = { by: 'status', id: 'a', in: ['dead'] } as const
    expect(await ledger.commit([{ guard, effects: [{ do: 'reopen', id: 'a', delayMs: 0 }] }])).toEqual([
      { kind: 'stale' },
    ])
  })

  it('is redriven as if enqueued now, without a deadline that has passed', async () => {
    const { ledger, clock } = opened()
    const deadline = clock.now() + 50
    await ledger.commit([enqueue(envelope('a', { deadline, attempt: 4 }))])
    await ledger.commit([park((await claim(ledger))[0]!)])
    await clock.advance(100)
    const guard = { by: 'status', id: 'a', in: ['dead'] } as const
    await ledger.commit([{ guard, effects: [{ do: 'reopen', id: 'a', delayMs: 0 }] }])
    const now = clock.now()
    expect((await claim(ledger))[0]?.envelope).toEqual(envelope('a', { queueAt: now, startAt: now, redrives: 1 }))
  })
})

describe('what a process owes', () => {
  it('is what has not ended', async () => {
    const { ledger } = opened()
    expect(ledger.unfinished?.()).toBe(0)
    await ledger.commit([enqueue(envelope('a')), enqueue(envelope('b'), { delayMs: 1000 })])
    expect(ledger.unfinished?.()).toBe(2)
    const [a] = await claim(ledger)
    expect(ledger.unfinished?.()).toBe(2)
    await ledger.commit([finish(a!)])
    expect(ledger.unfinished?.()).toBe(1)
  })
})

describe('what has ended', () => {
  it('is really removed after its time, by the commits that follow', async () => {
    const { ledger, clock } = opened()
    const batch = Array.from({ length: 200 }, (_, n) => enqueue(envelope(`old${n}`)))
    await ledger.commit(batch)
    await ledger.commit((await claim(ledger, 200)).map((item) => finish(item)))
    await clock.advance(DAY)
    await ledger.commit(Array.from({ length: 100 }, (_, n) => enqueue(envelope(`new${n}`))))
    expect(await ledger.inspect?.counts()).toEqual([{ queue: 'default', type: 't', counts: { waiting: 100 } }])
    expect((await ledger.groups(['g-old1']))[0]).toBeUndefined()
  })

  it('makes room when there is too much of it, what would expire first leaving first', async () => {
    const { ledger } = opened({ maxEnded: 3 })
    await ledger.commit(['a', 'b', 'c', 'd', 'e'].map((id) => enqueue(envelope(id))))
    const [a, ...rest] = await claim(ledger)
    await ledger.commit([park(a!, 'x', 30 * DAY), ...rest.map((item) => finish(item))])
    const kept = (await ledger.read(['a', 'b', 'c', 'd', 'e'])).flatMap((view) => view?.envelope.id ?? [])
    expect(kept).toEqual(['a', 'd', 'e'])
  })

  it('does not keep a large input once it has succeeded', async () => {
    const { ledger, store } = opened()
    await ledger.commit([enqueue(envelope('a', { input: JSON.stringify('x'.repeat(5000)) }))])
    await ledger.commit([finish((await claim(ledger))[0]!, '1')])
    expect(store.get('work:state:a')!.length).toBeLessThan(500)
    expect(store.get('work:result:a')).toBe('1')
  })
})

describe('the audit log', () => {
  it('can be read under its key, and is bounded', async () => {
    const { ledger, store, clock } = opened()
    expect(store.get('work:log')).toBeUndefined()
    await ledger.commit([anybody({ do: 'log', who: 'ann', why: 'full disk', what: 'pause queue default' })])
    expect(parsed(store.get('work:log'))).toEqual([
      { at: clock.now(), who: 'ann', why: 'full disk', what: 'pause queue default' },
    ])
    await ledger.commit(
      Array.from({ length: 1500 }, (_, n) => anybody({ do: 'log', who: 'bob', why: '', what: String(n) })),
    )
    expect((parsed(store.get('work:log')) as unknown[]).length).toBe(1000)
  })
})

describe('a settlement that makes no sense', () => {
  it('fails alone', async () => {
    const { ledger } = opened()
    const nonsense = { guard: { by: 'none' }, effects: [{ do: 'push' }] } as never
    const unknown = { guard: { by: 'none' }, effects: [{ do: 'dance' }] } as never
    const results = await ledger.commit([enqueue(envelope('a')), nonsense, unknown, enqueue(envelope('b'))])
    expect(results.map(({ kind }) => kind)).toEqual(['applied', 'failed', 'failed', 'applied'])
    expect(ids(await claim(ledger))).toEqual(['a', 'b'])
  })
})

describe('limits', () => {
  it('are named in a refusal, for items, results and group values', async () => {
    const { ledger } = opened({ maxItemBytes: 2000 })
    const large = 'é'.repeat(1001)
    await ledger.commit([enqueue(envelope('a'))])
    const [a] = await claim(ledger)
    const results = await ledger.commit([
      enqueue(envelope('input', { input: large })),
      enqueue(envelope('tags', { tags: Array.from({ length: 300 }, (_, n) => `tag number ${n}`) })),
      finish(a!, large),
      finish(a!, '1', [{ do: 'contribute', groupId: 'g', value: large, final: false }]),
      enqueue(envelope('nowhere'), { queue: '' }),
    ])
    expect(results.map((result) => (result.kind === 'refused' ? [result.code, result.limit] : result.kind))).toEqual([
      ['TOO_LARGE', 2000],
      ['TOO_LARGE', 2000],
      ['TOO_LARGE', 2000],
      ['TOO_LARGE', 2000],
      ['BAD_NAME', undefined],
    ])
    expect(results[2]).toMatchObject({
      message: expect.stringContaining('The result of a takes 2002 bytes; the limit is 2000'),
    })
    expect((await ledger.commit([finish(a!, '1')]))[0]?.kind).toBe('applied')
  })
})

const worker = { id: 'w1', host: 'h', version: '1', types: [], queues: [] }
