import { describe, expect, it } from 'vitest'
import { overPlainPorts } from '../../../src/backends/plain/over-plain-ports.js'
import { complete, enqueue, item } from './settlements.js'
import { world } from './world.js'

const me = { id: 'w1', host: 'h', version: '1', types: ['t'], queues: ['default'] }
const names = ['a', 'b', 'c']

async function three(powers: 'all' | 'documented' | 'minimal' = 'documented') {
  const made = world(powers)
  await made.ledger.commit(names.map((id) => enqueue(item(id))))
  const items = await made.claim({ leaseMs: 1000 })
  const held = items.map(({ lease }) => ({ lease, running: true }))
  made.ports.calls.length = 0
  return { ...made, items, held }
}

describe('a heartbeat', () => {
  it('renews the lease of the queue, the token of the run and the sign of life', async () => {
    const { ledger, held, clock, get, claim, again } = await three()
    await clock.advance(900)
    expect(await ledger.extend(held, 1000, me)).toEqual(['held', 'held', 'held'])
    expect([await get('hb:a'), await get('run:a')]).toEqual([String(clock.now()), held[0]!.lease.token])
    await clock.advance(900)
    expect(await claim({ ledger: again() })).toEqual([])
    expect(await get('run:a')).toBe(held[0]!.lease.token)
    await clock.advance(100)
    expect(await get('run:a')).toBeUndefined()
    expect(await claim({ ledger: again() })).toHaveLength(3)
  })

  it('is one call of the queue for all leases where it can, and one each otherwise', async () => {
    const bulk = await three('all')
    await bulk.ledger.extend(bulk.held, 1000, me)
    expect(bulk.ports.calls.filter(({ port }) => port === 'queue').map(({ name }) => name)).toEqual(['heartbeatMany'])
    expect(bulk.ports.calls.filter(({ port }) => port === 'store').map(({ name }) => name)).toEqual([
      'getMany',
      'setMany',
    ])
    const each = await three('documented')
    await each.ledger.extend(each.held, 1000, me)
    expect(each.ports.calls.filter(({ name }) => name === 'heartbeat')).toHaveLength(3)
  })

  // S84
  it('that fails for one lease is reported, fails for no other, and loses nothing yet', async () => {
    const { ledger, held, ports, errors, clock, commit, items } = await three()
    ports.fault = ({ name, given }) =>
      name === 'heartbeat' && (given[0] as { body: string }).body.includes('"id":"b"') ? 'before' : undefined
    await clock.advance(600)
    expect(await ledger.extend(held, 1000, me)).toEqual(['held', 'held', 'held'])
    expect(errors).toMatchObject([{ phase: 'queue', error: { message: 'heartbeat failed' } }])
    await clock.advance(400)
    expect(await ledger.extend(held, 1000, me)).toEqual(['held', 'lost', 'held'])
    expect(await ledger.extend(held, 1000, me)).toEqual(['held', 'lost', 'held'])
    expect(await commit(complete(items[1]!))).toEqual({ kind: 'stale' })
    expect(await commit(complete(items[0]!))).toMatchObject({ kind: 'applied' })
  })

  it('that the queue answers with false, or whose token has moved on, is lost', async () => {
    const { ledger, held, clock, claim, again, ports } = await three('documented')
    await clock.advance(1000)
    const taken = await claim({ ledger: again(), max: 1 })
    expect(taken.map(({ lease }) => lease.id)).toEqual(['a'])
    expect(await ledger.extend(held.slice(0, 1), 1000, me)).toEqual(['lost'])
    // A queue that never says so: the token of the next holder does.
    const silent = await three('minimal')
    await silent.clock.advance(1000)
    await silent.claim({ ledger: silent.again() })
    expect(await silent.ledger.extend(silent.held, 1000, me)).toEqual(['lost', 'lost', 'lost'])
    expect(ports.calls.length).toBeGreaterThan(0)
  })

  it('that hangs is lost when the lease would have run out, and keeps no other lease waiting longer', async () => {
    const made = world('documented')
    let hangs = false
    const heartbeat: typeof made.ports.queue.heartbeat = (...given) =>
      hangs ? new Promise<boolean>(() => undefined) : made.ports.queue.heartbeat(...given)
    const errors: unknown[] = []
    const { ledger } = overPlainPorts({ ...made.ports, queue: { ...made.ports.queue, heartbeat } }, [], {
      clock: made.clock,
      onError: (error) => void errors.push(error),
    })
    await ledger.commit([enqueue(item('a'))])
    const [a] = (await ledger.claim({ queues: [{ queue: 'default', max: 1 }], leaseMs: 1000, worker: 'w' })).items
    hangs = true
    const answer = ledger.extend([{ lease: a!.lease, running: true }], 1000, me)
    await made.clock.advance(1000)
    expect(await answer).toEqual(['lost'])
    expect(errors).toMatchObject([{ code: 'HEARTBEAT_UNANSWERED' }])
  })

  it('that the store fails to note is reported, and the lease is kept', async () => {
    const { ledger, held, ports, errors } = await three('documented')
    ports.fault = ({ port }) => (port === 'store' ? 'before' : undefined)
    expect(await ledger.extend(held, 1000, me)).toEqual(['held', 'held', 'held'])
    expect(errors.every(({ phase }) => phase === 'queue')).toBe(true)
    expect(errors.length).toBeGreaterThan(0)
  })

  it('notifies the holder that its item was cancelled, and stays held', async () => {
    const { ledger, held, again, commit, items } = await three('documented')
    const cancel = { do: 'requestCancel', id: 'b', reason: 'no' } as const
    await again().commit([{ guard: { by: 'status', id: 'b', in: ['running'] }, effects: [cancel] }])
    expect(await ledger.extend(held, 1000, me)).toEqual(['held', 'cancelled', 'held'])
    expect(await commit(complete(items[1]!))).toMatchObject({ kind: 'applied' })
  })

  it('of nothing is nothing', async () => {
    const { ledger, ports } = world()
    expect(await ledger.extend([], 1000, me)).toEqual([])
    expect(ports.calls).toEqual([])
  })
})
