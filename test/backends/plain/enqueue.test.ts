import { describe, expect, it } from 'vitest'
import { byLease, complete, deadLetter, enqueue, item, retry } from './settlements.js'
import { world, written } from './world.js'

const opens = (calls: readonly { name: string; given: readonly unknown[] }[]) =>
  calls
    .filter(({ name, given }) => name === 'increment' && String(given[0]).endsWith(':open'))
    .map(({ given }) => given[1])

describe('an enqueue on plain ports', () => {
  it('counts, writes the state, then pushes with its id as dedupe key', async () => {
    const { ports, commit, get } = world()
    expect(await commit(enqueue(item('a', { priority: 3, tags: ['red'] }), 5000))).toEqual({
      kind: 'applied',
      closed: [],
    })
    const order = ports.calls.filter(({ name }) => ['increment', 'set', 'push'].includes(name)).map(({ name }) => name)
    expect(order).toEqual(['increment', 'set', 'push'])
    expect(ports.calls.at(-1)?.given[1]).toEqual({ delay: 5000, dedupeKey: 'a', priority: 3 })
    expect(await get('group:g-a:open')).toBe('1')
    const state = JSON.parse((await get('state:a'))!)
    expect(state).toMatchObject({
      id: 'a',
      type: 't',
      status: 'pending',
      attempt: 1,
      queueAt: 0,
      startAt: 0,
      priority: 3,
    })
    expect(state).not.toHaveProperty('result')
    expect(state).not.toHaveProperty('input')
  })

  // S95
  it('that fails at the push takes its count back and answers the original error', async () => {
    const { ports, commit, get, errors } = world()
    ports.fault = ({ name }) => (name === 'push' ? 'before' : undefined)
    expect(await commit(enqueue(item('a')))).toMatchObject({ kind: 'failed', error: { message: 'push failed' } })
    expect(opens(ports.calls)).toEqual([1, -1])
    expect(await get('state:a')).toBeUndefined()
    expect(errors).toEqual([])
  })

  // S95
  it('that fails at the state takes its count back too, and pushes nothing', async () => {
    const { ports, commit } = world()
    ports.fault = ({ name, given }) => (name === 'set' && String(given[0]).includes('state:') ? 'before' : undefined)
    expect(await commit(enqueue(item('a')))).toMatchObject({ kind: 'failed', error: { message: 'set failed' } })
    expect(opens(ports.calls)).toEqual([1, -1])
    expect(ports.calls.some(({ name }) => name === 'push')).toBe(false)
  })

  // S95
  it('whose roll-back fails as well still answers the original error, and reports the other as commit', async () => {
    const { ports, commit, errors } = world()
    ports.fault = ({ name, given }) =>
      name === 'push' || (name === 'increment' && given[1] === -1) ? 'before' : undefined
    expect(await commit(enqueue(item('a')))).toMatchObject({ kind: 'failed', error: { message: 'push failed' } })
    expect(errors).toMatchObject([{ phase: 'commit', error: { message: 'increment failed' } }])
  })

  // S95
  it('fails without its neighbours in the batch, which are applied', async () => {
    for (const powers of ['all', 'documented', 'minimal'] as const) {
      const { ports, ledger } = world(powers)
      const hit = (body: unknown) => JSON.stringify(body).includes('bad')
      ports.fault = ({ name, given }) => (name.startsWith('push') && hit(given[0]) ? 'before' : undefined)
      const kinds = (await ledger.commit(['a', 'bad', 'c'].map((id) => enqueue(item(id))))).map(({ kind }) => kind)
      expect(kinds).toEqual(['applied', 'failed', 'applied'])
    }
  })

  it('may be repeated after it failed, and then counts once', async () => {
    for (const powers of ['all', 'documented', 'minimal'] as const)
      for (const when of ['before', 'after'] as const)
        for (const name of ['set', 'setMany', 'push', 'pushMany', 'increment', 'incrementOnce']) {
          const { ports, commit, claim, get } = world(powers)
          let failures = 1
          ports.fault = (call) => (call.name === name && failures-- > 0 ? when : undefined)
          const first = await commit(enqueue(item('a')))
          const second = await commit(enqueue(item('a')))
          const where = `${powers} ${when} ${name}: ${first.kind} ${second.kind}`
          expect([second.kind, where]).toEqual([expect.stringMatching(/applied|repeated/), where])
          const items = await claim()
          expect([items.map(({ lease }) => lease.id), where]).toEqual([['a'], where])
          expect([await commit(complete(items[0]!)), where]).toEqual([
            { kind: 'applied', closed: [{ groupId: 'g-a' }] },
            where,
          ])
          expect([await get('group:g-a:open'), where]).toEqual(['0', where])
        }
  })

  it('of an item enqueued twice is one item: by the store where it can, by reading first otherwise', async () => {
    for (const powers of ['all', 'documented', 'minimal'] as const) {
      const { ledger, commit, claim, again } = world(powers)
      const twice = await ledger.commit([enqueue(item('a')), enqueue(item('a'))])
      expect(twice.map(({ kind }) => kind)).toEqual(['applied', 'repeated'])
      expect((await again().commit([enqueue(item('a'))]))[0]).toEqual({ kind: 'repeated', id: 'a' })
      const [a, ...rest] = await claim()
      expect(rest).toEqual([])
      await commit(complete(a!, '1'))
      expect(await commit(enqueue(item('a')))).toEqual({ kind: 'repeated', id: 'a' })
      expect(await claim()).toEqual([])
    }
  })

  it.each(['documented', 'all'] as const)(
    'of one id three times together, the first of which fails, is one item (%s powers)',
    async (powers) => {
      const { ports, ledger, get } = world(powers)
      let pushes = 0
      ports.fault = ({ name }) => {
        if (name.startsWith('push')) pushes += 1
        return name.startsWith('push') && pushes === 1 ? 'before' : undefined
      }
      const results = await ledger.commit([enqueue(item('a')), enqueue(item('a')), enqueue(item('a'))])
      expect(results.map(({ kind }) => kind)).toEqual(['failed', 'applied', 'repeated'])
      expect(await get('group:g-a:open')).toBe('1')
    },
  )

  it('of a redriven item begins a new life: its old error and the closing of its group are cleared', async () => {
    for (const powers of ['all', 'documented', 'minimal'] as const) {
      const { commit, claim, get, ledger, clock } = world(powers)
      await commit(enqueue(item('a')))
      await commit(deadLetter((await claim())[0]!))
      expect(await get('item:a:error')).toBe('Error: boom')
      expect(await get('group:g-a:done')).toBeDefined()
      const redriven = item('a', { redrives: 1 })
      expect(await commit(enqueue(redriven))).toEqual({ kind: 'applied', closed: [] })
      // A store without `delete` forgets a key by letting it expire.
      await clock.advance(2)
      expect((await ledger.read(['a']))[0]).toMatchObject({ status: 'pending' })
      expect((await ledger.groups(['g-a']))[0]).toMatchObject({ open: 1 })
      const [again] = await claim()
      expect(again).toMatchObject({ envelope: { redrives: 1 }, crashes: 0 })
      expect(await commit(complete(again!, '2'))).toEqual({ kind: 'applied', closed: [{ groupId: 'g-a' }] })
      expect((await ledger.read(['a']))[0]).toMatchObject({ status: 'completed', result: '2' })
    }
  })

  it('of a redriven item is not swallowed by its last copy, when that has not been acked yet', async () => {
    const { ports, ledger, commit, claim, clock } = world('all')
    await commit(enqueue(item('a')))
    const [a] = await claim()
    ports.fault = ({ name }) => (name.startsWith('ack') ? 'before' : undefined)
    expect(await commit(deadLetter(a!))).toMatchObject({ kind: 'failed' })
    ports.fault = () => undefined
    expect(await commit(enqueue(item('a', { redrives: 1 })))).toMatchObject({ kind: 'applied' })
    expect(await commit(deadLetter(a!))).toMatchObject({ kind: 'applied' })
    await clock.advance(1)
    expect((await claim()).map(({ envelope }) => envelope.redrives)).toEqual([1])
    expect((await ledger.groups(['g-a']))[0]?.open).toBe(1)
  })

  it('into a queue that does not exist is refused, and leaves nothing', async () => {
    const { commit, ports } = world()
    const lost = enqueue(item('a'))
    const effects = lost.effects.map((effect) => (effect.do === 'enqueue' ? { ...effect, queue: 'q7' } : effect))
    expect(await commit({ ...lost, effects })).toMatchObject({
      kind: 'refused',
      code: 'BAD_NAME',
      message: expect.stringContaining('"q7"'),
    })
    expect(written(ports.calls)).toEqual([])
  })

  it('of an item that a caller waits for is noted under wait:<gid>', async () => {
    const { commit, get } = world()
    await commit(enqueue(item('a', { waiter: 'me' })))
    await commit(enqueue(item('b')))
    expect([await get('wait:g-a'), await get('wait:g-b')]).toEqual(['1', undefined])
  })
})

describe('an item that is born leased on plain ports', () => {
  const born = (id: string) => {
    const { guard, effects } = enqueue(item(id))
    const leasedTo = { worker: 'w1', token: `token of ${id}`, leaseMs: 1000 }
    return { guard, effects: effects.map((effect) => (effect.do === 'enqueue' ? { ...effect, leasedTo } : effect)) }
  }
  const run = (id: string) => ({
    lease: { id, queue: 'default', token: `token of ${id}`, fence: 1, until: 0 },
    envelope: item(id),
    lapses: 0,
    crashes: 0,
    deliveries: 1,
  })

  it('is in no queue, needs no heartbeat of it, and settles by its token', async () => {
    const { ledger, commit, ports, get } = world()
    expect(await commit(born('a'))).toMatchObject({ kind: 'applied' })
    expect(ports.calls.some(({ port }) => port === 'queue')).toBe(false)
    expect(JSON.parse((await get('state:a'))!)).toMatchObject({ status: 'running' })
    const me = { id: 'w1', host: 'h', version: '1', types: [], queues: [] }
    expect(await ledger.extend([{ lease: run('a').lease, running: true }], 1000, me)).toEqual(['held'])
    expect(await commit(complete(run('a'), '1'))).toEqual({ kind: 'applied', closed: [{ groupId: 'g-a' }] })
    expect((await ledger.read(['a']))[0]).toMatchObject({ status: 'completed', result: '1' })
  })

  it('becomes durable with its first failure or put-back', async () => {
    const { commit, claim } = world()
    await commit(born('a'))
    await commit(born('b'))
    expect(await commit(retry(run('a'), 0))).toMatchObject({ kind: 'applied' })
    const back = byLease(run('b').lease, [{ do: 'release', id: 'b' }])
    expect(await commit(back)).toMatchObject({ kind: 'applied' })
    const items = await claim()
    expect(items.map(({ envelope: { id, attempt } }) => [id, attempt])).toEqual([
      ['a', 2],
      ['b', 1],
    ])
  })

  it('that dies reaches the dead-letter sink of its queue', async () => {
    const { commit, dead } = world()
    await commit(born('a'))
    await commit(deadLetter(run('a')))
    expect(dead).toMatchObject([{ error: 'Error: boom' }])
    expect(JSON.parse(dead[0]!.body)).toMatchObject({ id: 'a' })
  })
})
