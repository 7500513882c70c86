import { describe, expect, it } from 'vitest'
import { memoryBackend } from '../../../src/backends/memory/index.js'
import { overPlainPorts } from '../../../src/backends/plain/over-plain-ports.js'
import { ownedBy } from '../../../src/ports/find-ledger.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { ledgerOn } from '../ledger-on.js'
import { anybody, claim, DAY, deadLetter, enqueue, envelope, finish, ids } from '../native.js'

function opened(options: Parameters<typeof memoryBackend>[0] = {}) {
  const clock = new FakeClock()
  const backend = memoryBackend({ clock, ...options })
  return { clock, backend, ledger: ledgerOn(backend), ...backend }
}

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

describe('one memory backend is used in one mode', () => {
  const refusal = { code: 'WRONG_MODE', facts: { where: 'This memory backend', is: 'native', wanted: 'plain' } }

  it('refuses to pop from any of its queues once a ledger has written', async () => {
    const { ledger, backend } = opened()
    await ledger.commit([enqueue(envelope('a'))])
    expect(() => backend.queue.pop(1, 100)).toThrow(expect.objectContaining(refusal))
    expect(() => backend.named('events').pop(1, 100)).toThrow(/This memory backend is worked on natively/)
    expect(ids(await claim(ledger))).toEqual(['a'])
  })

  it('refuses a ledger once a body was popped', async () => {
    const { ledger, queue } = opened()
    queue.push(JSON.stringify(envelope('a')))
    expect(queue.pop(1, 100)).toHaveLength(1)
    await expect(claim(ledger)).rejects.toMatchObject({ code: 'WRONG_MODE', facts: { is: 'plain', wanted: 'native' } })
    await expect(ledger.commit([enqueue(envelope('b'))])).rejects.toMatchObject({ code: 'WRONG_MODE' })
    // A claim from no queue only asks for the time.
    expect((await ledger.claim({ queues: [], leaseMs: 1, worker: 'w' })).items).toEqual([])
  })

  it('refuses a system that wraps a port of it, and a native system beside a wrapped one', async () => {
    const native = opened()
    const wrapped = (backend: ReturnType<typeof memoryBackend>) =>
      overPlainPorts({ ...backend, store: { ...backend.store } }, [], { clock: native.clock }).ledger
    await native.ledger.commit([enqueue(envelope('a'))])
    const reply = await wrapped(native.backend).claim({
      queues: [{ queue: 'default', max: 1 }],
      leaseMs: 1,
      worker: 'w',
    })
    expect(reply.failedQueues).toMatchObject([{ queue: 'default', error: refusal }])

    const plain = opened()
    await claim(wrapped(plain.backend))
    await expect(claim(plain.ledger)).rejects.toMatchObject({ code: 'WRONG_MODE' })
  })

  it('keeps the items of the ledger out of the store, and the keys of the store out of the ledger', async () => {
    const { ledger, store } = opened()
    store.set('work:state:a', JSON.stringify({ id: 'a', type: 't', status: 'dead', attempt: 2 }))
    await ledger.commit([enqueue(envelope('a')), enqueue(envelope('b'))])
    expect((await ledger.read(['a']))[0]?.status).toBe('pending')
    expect(store.getMany(['work:state:b', 'work:group:g-b:open'])).toEqual([undefined, undefined])
  })

  it('serves systems of different prefixes as one', async () => {
    const { backend } = opened()
    const [one, two] = [ledgerOn(backend, 'one:'), ledgerOn(backend, 'two:')]
    await one.commit([enqueue(envelope('a'))])
    expect((await two.read(['a']))[0]?.status).toBe('pending')
  })
})

describe('bodies that are pushed beside items', () => {
  it('wake the listeners of the ledger', async () => {
    const { ledger, queue, clock } = opened()
    const received: unknown[] = []
    ledger.onReady((name, dueAt) => received.push([name, dueAt]))
    queue.push('a')
    queue.push('b', { delay: 500 })
    expect(received).toEqual([
      ['default', undefined],
      ['default', clock.now() + 500],
    ])
  })

  it('are known to the ledger before they are claimed', async () => {
    const { ledger, queue } = opened()
    queue.push(JSON.stringify(envelope('hand', { type: 'mail', tags: ['x'] })), { delay: 1000 })
    queue.push('not an envelope')
    expect((await ledger.read(['hand']))[0]).toMatchObject({ status: 'pending', queue: 'default' })
    expect((await ledger.inspect?.list({ tag: 'x', limit: 9 }))?.items.length).toBe(1)
    const guard = { by: 'status', id: 'hand', in: ['pending'] } as const
    await ledger.commit([{ guard, effects: [{ do: 'release', id: 'hand', delayMs: 0 }] }])
    const reply = await ledger.claim({ queues: [{ queue: 'default', max: 9 }], leaseMs: 1, worker: 'w' })
    expect([ids(reply.items), reply.unreadable]).toEqual([['hand'], [{ queue: 'default', body: 'not an envelope' }]])
  })

  it('leave nothing behind when they are popped and acked', async () => {
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

describe('a dead item', () => {
  it('is shown in the dead letters of its queue as body and error, but not what a person cancelled', async () => {
    const { ledger, queue, backend } = opened()
    await ledger.commit([enqueue(envelope('a')), enqueue(envelope('b'), { queue: 'bulk' }), enqueue(envelope('c'))])
    const [a, c] = await claim(ledger)
    const [b] = await claim(ledger, 1, 'bulk')
    const cancelled = {
      do: 'deadLetter',
      id: 'c',
      ending: 'cancelled',
      class: 'unclassified',
      error: 'no',
      keepMs: DAY,
    } as const
    await ledger.commit([
      deadLetter(a!, 'Error: 1'),
      deadLetter(b!, 'Error: 2'),
      { guard: { by: 'lease', lease: c!.lease }, effects: [cancelled] },
    ])

    expect(queue.dead).toEqual([{ body: JSON.stringify(envelope('a')), error: 'Error: 1' }])
    expect(backend.named('bulk').dead.map(({ error }) => error)).toEqual(['Error: 2'])
  })

  it('cannot be redriven without its input', async () => {
    const { ledger } = opened()
    await ledger.commit([enqueue(envelope('a', { input: JSON.stringify('x'.repeat(5000)) }))])
    await ledger.commit([finish((await claim(ledger))[0]!)])
    const guard = { by: 'status', id: 'a', in: ['completed'] } as const
    expect(await ledger.commit([{ guard, effects: [{ do: 'redrive', id: 'a', delayMs: 0 }] }])).toEqual([
      { kind: 'stale' },
    ])
  })

  it('is redriven as if enqueued now, without a deadline that has passed', async () => {
    const { ledger, clock } = opened()
    const deadline = clock.now() + 50
    await ledger.commit([enqueue(envelope('a', { deadline, attempt: 4 }))])
    await ledger.commit([deadLetter((await claim(ledger))[0]!)])
    await clock.advance(100)
    const guard = { by: 'status', id: 'a', in: ['dead'] } as const
    await ledger.commit([{ guard, effects: [{ do: 'redrive', id: 'a', delayMs: 0 }] }])
    const now = clock.now()
    expect((await claim(ledger))[0]?.envelope).toEqual(envelope('a', { queueAt: now, startAt: now, redrives: 1 }))
  })
})

describe('the open count', () => {
  it('is the number of items that have not ended', async () => {
    const { ledger } = opened()
    expect(ledger.openCount?.()).toBe(0)
    await ledger.commit([enqueue(envelope('a')), enqueue(envelope('b'), { delayMs: 1000 })])
    expect(ledger.openCount?.()).toBe(2)
    const [a] = await claim(ledger)
    expect(ledger.openCount?.()).toBe(2)
    await ledger.commit([finish(a!)])
    expect(ledger.openCount?.()).toBe(1)
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
    await ledger.commit([deadLetter(a!, 'x', 30 * DAY), ...rest.map((item) => finish(item))])
    const kept = (await ledger.read(['a', 'b', 'c', 'd', 'e'])).flatMap((view) => view?.envelope.id ?? [])
    expect(kept).toEqual(['a', 'd', 'e'])
  })

  it('does not keep a large input once it has completed', async () => {
    const { ledger } = opened()
    await ledger.commit([enqueue(envelope('a', { input: JSON.stringify('x'.repeat(5000)) }))])
    await ledger.commit([finish((await claim(ledger))[0]!, '1')])
    expect(await ledger.inspect?.input('a')).toBeUndefined()
    expect((await ledger.read(['a']))[0]?.result).toBe('1')
  })
})

describe('the action log', () => {
  it('is bounded', async () => {
    const { ledger, clock } = opened()
    await ledger.commit([anybody({ do: 'log', who: 'ann', why: 'full disk', what: 'pause queue default' })])
    expect(await ledger.inspect?.log(9)).toEqual([
      { at: clock.now(), who: 'ann', why: 'full disk', what: 'pause queue default' },
    ])
    await ledger.commit(
      Array.from({ length: 1500 }, (_, n) => anybody({ do: 'log', who: 'bob', why: '', what: String(n) })),
    )
    expect((await ledger.inspect?.log(9_999))?.length).toBe(1000)
  })
})

describe('a settlement that makes no sense', () => {
  it('fails without the others of its batch', async () => {
    const { ledger } = opened()
    const nonsense = { guard: { by: 'none' }, effects: [{ do: 'enqueue' }] } as never
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
      finish(a!, '1', [{ do: 'setGroupValue', groupId: 'g', value: large, final: false }]),
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
