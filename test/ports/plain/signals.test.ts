import { describe, expect, it } from 'vitest'
import { readMessage } from '../../../src/ports/plain/inbox.js'
import { overPlainPorts } from '../../../src/ports/plain/index.js'
import { messagesFor } from '../../../src/ports/plain/outbox.js'
import { defer, enqueue, finish, item, release, retryAt } from './settlements.js'
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
    expect(readMessage('{"kind":"done","id":"a","groupId":"g"}')).toEqual({ ids: ['a'], groups: [] })
    expect(readMessage('{"kind":"group-done","groupId":"g"}')).toEqual({ ids: [], groups: ['g'] })
    expect(readMessage('{"kind":"done-batch","ids":["a",1],"groups":["g"]}')).toEqual({ ids: ['a'], groups: ['g'] })
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

  it('S121 of others on the channel are ignored', async () => {
    const { ledger, ports } = world()
    const heard: unknown[] = []
    ledger.onInbox('me', (what) => void heard.push(what))
    for (const message of ['garbage', '{}', '{"kind":"done","id":"a"}']) await ports.pubsub.publish(message)
    expect(heard).toEqual([{ ids: ['a'], groups: [] }])
  })

  it('share one subscription, which ends with the last listener; one that throws stops nobody', async () => {
    const made = world()
    let subscriptions = 0
    const { subscribe } = made.ports.pubsub
    const pubsub = {
      ...made.ports.pubsub,
      subscribe: (hear: (message: string) => void) => {
        subscriptions += 1
        const leave = subscribe(hear)
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
    const heard: string[] = []
    const hear = (what: { ids: readonly string[] }) => void heard.push(...what.ids)
    const leaves = [
      ledger.onInbox('a', () => {
        throw new Error('mine')
      }),
      ledger.onInbox('b', hear),
      ledger.onInbox('b', hear),
    ]
    expect(subscriptions).toBe(1)
    await made.ports.pubsub.publish('{"kind":"done","id":"x"}')
    expect([heard, errors.length]).toEqual([['x', 'x'], 1])
    for (const leave of [...leaves, ...leaves]) leave()
    expect(subscriptions).toBe(0)
  })

  it('of a hundred ends in one batch are few', async () => {
    const { ledger, claim, ports, clock } = world('all')
    await ledger.commit(Array.from({ length: 100 }, (_, i) => enqueue(item(`i${i}`, { waiter: 'me' }))))
    const items = await claim({ max: 100 })
    const heard = new Set<string>()
    ledger.onInbox('me', ({ ids, groups }) => {
      for (const id of [...ids, ...groups]) heard.add(id)
    })
    ports.calls.length = 0
    await ledger.commit(items.map((one) => finish(one)))
    await clock.settle()
    expect(heard.size).toBe(200)
    expect(ports.calls.filter(({ name }) => name === 'publish').length).toBeLessThanOrEqual(3)
  })
})

describe('nudges', () => {
  it('come from pushes of this process, with their due time; never from put-backs', async () => {
    const { ledger, commit, claim, clock } = world()
    const heard: (readonly [string, number | undefined])[] = []
    const leave = ledger.onReady((queue, dueAt) => void heard.push([queue, dueAt]))
    const since = () => heard.splice(0)
    await commit(enqueue(item('a')))
    expect(since()).toEqual([['default', undefined]])
    await commit(enqueue(item('b', { startAt: clock.now() + 500 }), 500))
    expect(since()).toEqual([['default', clock.now() + 500]])
    const [a] = await claim()
    await commit(release(a!, 100))
    expect(since()).toEqual([])
    await clock.advance(100)
    const [again] = await claim()
    await commit(retryAt(again!, 0))
    expect(since()).toEqual([['default', undefined]])
    const [third] = await claim()
    await commit(defer(third!, 70))
    expect(since()).toEqual([['default', clock.now() + 70]])
    leave()
    await commit(enqueue(item('c')))
    expect(since()).toEqual([])
  })

  it('of delayed pushes are remembered: every claim tells the next due time', async () => {
    const { ledger, commit, clock } = world()
    const ask = { from: [{ queue: 'default', max: 5 }], leaseMs: 1000, worker: 'w' }
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

  it('a listener that throws is reported, and the push stands', async () => {
    const { ledger, commit, errors } = world()
    ledger.onReady(() => {
      throw new Error('mine')
    })
    expect(await commit(enqueue(item('a')))).toMatchObject({ kind: 'applied' })
    expect(errors).toMatchObject([{ phase: 'queue', error: { message: 'mine' } }])
  })
})

describe('a wait that begins late', () => {
  it('is written under wait:<gid>, for an hour from the last time it was said', async () => {
    const { ledger, clock, get } = world()
    await ledger.watch('me', { ids: ['a'], groups: ['g'] })
    await clock.advance(3_000_000)
    await ledger.watch('me', { ids: [], groups: ['g'] })
    await clock.advance(3_000_000)
    expect(await get('wait:g')).toBe('1')
    await clock.advance(600_000)
    expect(await get('wait:g')).toBeUndefined()
  })
})
