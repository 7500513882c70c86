import { describe, expect, it } from 'vitest'
import { messagesFor, readMessage } from '../../../src/backends/plain/notify.js'
import { overPlainPorts } from '../../../src/backends/plain/over-plain-ports.js'
import { complete, defer, enqueue, item, release, retry } from './settlements.js'
import { world } from './world.js'

const parsed = (messages: readonly string[]) => messages.map((message) => JSON.parse(message) as unknown)

describe('messages on the channel', () => {
  it('are those of the seed for single notices, and one batch for many', () => {
    const one = { kind: 'done', id: 'a', groupId: 'g', error: 'x' } as const
    const group = { kind: 'group-done', groupId: 'g' } as const
    expect(parsed(messagesFor([one]))).toEqual([one])
    expect(parsed(messagesFor([one, group]))).toEqual([one, group])
    const many = messagesFor([one, { kind: 'done', id: 'b' }, group, { kind: 'cancel', id: 'c' }])
    expect(parsed(many)).toEqual([
      { kind: 'done-batch', ids: ['a', 'b'], groups: ['g'] },
      { kind: 'cancel', id: 'c' },
    ])
  })

  it('are read back, and garbage is nothing', () => {
    expect(readMessage('{"kind":"done","id":"a","groupId":"g"}')).toEqual({ itemIds: ['a'], groupIds: [] })
    expect(readMessage('{"kind":"group-done","groupId":"g"}')).toEqual({ itemIds: [], groupIds: ['g'] })
    expect(readMessage('{"kind":"done-batch","ids":["a",1],"groups":["g"]}')).toEqual({
      itemIds: ['a'],
      groupIds: ['g'],
    })
    const garbage = [
      '',
      'x',
      'null',
      '1',
      '[]',
      '{}',
      '{"kind":"done"}',
      '{"kind":"other","id":"a"}',
      '{"kind":"done","id":7}',
    ]
    for (const message of garbage) expect(readMessage(message)).toBeUndefined()
  })

  // S121
  it('of others on the channel are ignored', async () => {
    const { ledger, ports } = world()
    const received: unknown[] = []
    ledger.onInbox('me', (what) => void received.push(what))
    for (const message of ['garbage', '{}', '{"kind":"done","id":"a"}']) await ports.pubsub.publish(message)
    expect(received).toEqual([{ itemIds: ['a'], groupIds: [] }])
  })

  it('share one subscription, which ends with the last listener; one that throws stops no other', async () => {
    const made = world()
    let subscriptions = 0
    const { subscribe } = made.ports.pubsub
    const pubsub = {
      ...made.ports.pubsub,
      subscribe: (listener: (message: string) => void) => {
        subscriptions += 1
        const leave = subscribe(listener)
        return () => {
          subscriptions -= 1
          leave()
        }
      },
    }
    const errors: unknown[] = []
    const { ledger } = overPlainPorts({ ...made.ports, pubsub }, [], {
      clock: made.clock,
      onError: (e) => void errors.push(e),
    })
    const received: string[] = []
    const listener = (what: { itemIds: readonly string[] }) => void received.push(...what.itemIds)
    const leaves = [
      ledger.onInbox('a', () => {
        throw new Error('mine')
      }),
      ledger.onInbox('b', listener),
      ledger.onInbox('b', listener),
    ]
    expect(subscriptions).toBe(1)
    await made.ports.pubsub.publish('{"kind":"done","id":"x"}')
    expect([received, errors.length]).toEqual([['x', 'x'], 1])
    for (const leave of [...leaves, ...leaves]) leave()
    expect(subscriptions).toBe(0)
  })

  it('of a hundred ends in one batch are few', async () => {
    const { ledger, claim, ports, clock } = world('all')
    await ledger.commit(Array.from({ length: 100 }, (_, i) => enqueue(item(`i${i}`, { waiter: 'me' }))))
    const items = await claim({ max: 100 })
    const received = new Set<string>()
    ledger.onInbox('me', ({ itemIds, groupIds }) => {
      for (const id of [...itemIds, ...groupIds]) received.add(id)
    })
    ports.calls.length = 0
    await ledger.commit(items.map((one) => complete(one)))
    await clock.settle()
    expect(received.size).toBe(200)
    expect(ports.calls.filter(({ name }) => name === 'publish').length).toBeLessThanOrEqual(3)
  })
})

describe('wake-ups', () => {
  it('come from pushes of this process, with their due time; never from put-backs', async () => {
    const { ledger, commit, claim, clock } = world()
    const received: (readonly [string, number | undefined])[] = []
    const leave = ledger.onReady((queue, dueAt) => void received.push([queue, dueAt]))
    const since = () => received.splice(0)
    await commit(enqueue(item('a')))
    expect(since()).toEqual([['default', undefined]])
    await commit(enqueue(item('b', { startAt: clock.now() + 500 }), 500))
    expect(since()).toEqual([['default', clock.now() + 500]])
    const [a] = await claim()
    await commit(release(a!, 100))
    expect(since()).toEqual([])
    await clock.advance(100)
    const [again] = await claim()
    await commit(retry(again!, 0))
    expect(since()).toEqual([['default', undefined]])
    const [third] = await claim()
    await commit(defer(third!, 70))
    expect(since()).toEqual([['default', clock.now() + 70]])
    leave()
    await commit(enqueue(item('c')))
    expect(since()).toEqual([])
  })

  it('of delayed pushes are remembered: every claim answers the next due time', async () => {
    const { ledger, commit, clock } = world()
    const ask = { queues: [{ queue: 'default', max: 5 }], leaseMs: 1000, worker: 'w' }
    const now = clock.now()
    await commit(enqueue(item('a', { startAt: now + 300 }), 300))
    await commit(enqueue(item('b', { startAt: now + 100 }), 100))
    expect((await ledger.claim(ask)).nextDueAt).toBe(now + 100)
    await clock.advance(100)
    const reply = await ledger.claim(ask)
    expect([reply.items.map(({ lease }) => lease.id), reply.nextDueAt]).toEqual([['b'], now + 300])
    await clock.advance(200)
    expect((await ledger.claim(ask)).nextDueAt).toBeUndefined()
  })

  it('a listener that throws is reported, and the push succeeds', async () => {
    const { ledger, commit, errors } = world()
    ledger.onReady(() => {
      throw new Error('mine')
    })
    expect(await commit(enqueue(item('a')))).toMatchObject({ kind: 'applied' })
    expect(errors).toMatchObject([{ phase: 'queue', error: { message: 'mine' } }])
  })
})

describe('a wait that begins late', () => {
  it('is written under wait:<gid>, for an hour from its last renewal', async () => {
    const { ledger, clock, get } = world()
    await ledger.watch('me', { itemIds: ['a'], groupIds: ['g'] })
    await clock.advance(3_000_000)
    await ledger.watch('me', { itemIds: [], groupIds: ['g'] })
    await clock.advance(3_000_000)
    expect(await get('wait:g')).toBe('1')
    await clock.advance(600_000)
    expect(await get('wait:g')).toBeUndefined()
  })
})
