import { describe, expect, it } from 'vitest'
import type { ClaimedItem, Envelope } from '../../../src/ports/item.js'
import type { Powers } from './ports.js'
import {
  byLease,
  children,
  complete,
  DAY,
  deadLetter,
  defer,
  enqueue,
  item,
  release,
  retry,
  setGroupValue,
} from './settlements.js'
import { type World, world, written } from './world.js'

async function running(
  powers: Powers = 'documented',
  id = 'a',
  over: Partial<Envelope> = {},
): Promise<World & { readonly held: ClaimedItem }> {
  const made = world(powers)
  await made.commit(enqueue(item(id, over)))
  const [held] = await made.claim()
  made.ports.calls.length = 0
  return { ...made, held: held! }
}

/** A waiter is watching it, so its end is published. */
const awaited = () => running('documented', 'a', { waiter: 'me' })

const steps = ({ ports }: World) =>
  ports.calls
    .filter(({ name }) => !name.startsWith('get'))
    .map(({ port, name, given }) => (port === 'store' ? `${name} ${String(given[0]).replace('work:', '')}` : name))

describe('the order of a settlement', () => {
  it('of a leaf: value, state, result, settle, close, ack, publish, and no plan', async () => {
    const made = await awaited()
    const result = await made.commit(complete(made.held, '42', [setGroupValue('g-a', '42')]))
    expect(result).toEqual({ kind: 'applied', closed: [{ groupId: 'g-a', value: '42', watched: true }] })
    await made.clock.settle()
    expect(steps(made)).toEqual([
      'set group:g-a:result',
      'set state:a',
      'set result:a',
      'setIfNotExists settled:a:0',
      'increment group:g-a:open',
      'setIfNotExists group:g-a:done',
      'ack',
      'publish',
      'publish',
    ])
    expect(await made.get('result:a')).toBe('42')
    expect(await made.get('group:g-a:result')).toBe('42')
    expect(JSON.parse((await made.get('state:a'))!)).toMatchObject({ status: 'success', endAt: made.clock.now() })
  })

  it('of a leaf that no caller waits for: the same, and nothing is published', async () => {
    const made = await running()
    await made.commit(complete(made.held, '42'))
    await made.clock.settle()

    expect(steps(made)).toContain('ack')
    expect(steps(made)).not.toContain('publish')
  })

  it('of a parent: the plan first, then the hold, then each child: state before push', async () => {
    const made = await awaited()
    await made.commit(complete(made.held, '1', children(made.held, ['c1', 'c2'])))
    await made.clock.settle()
    const order = steps(made)
    expect(order.slice(0, 3)).toEqual(['setIfNotExists plan:a', 'setIfNotExists held:a', 'increment group:g-a:open'])
    expect(order.slice(3, 7).toSorted()).toEqual(['push', 'push', 'set state:c1', 'set state:c2'])
    expect(order.indexOf('set state:c1')).toBeLessThan(order.indexOf('push'))
    expect(order.slice(7)).toEqual([
      'set state:a',
      'set result:a',
      'setIfNotExists settled:a:0',
      'increment group:g-a:open',
      'ack',
      ...order.slice(12),
    ])
    expect(order.slice(12).toSorted()).toEqual(['publish', 'set plan:a'])
    const keys = made.ports.calls.filter(({ name }) => name === 'push').map(({ given }) => given[1])
    expect(keys).toEqual([{ dedupeKey: 'c1' }, { dedupeKey: 'c2' }])
  })

  it('of a death: error, state, dead letter, settle, ack, publish', async () => {
    const made = await awaited()
    await made.commit(deadLetter(made.held))
    await made.clock.settle()
    expect(steps(made)).toEqual([
      'set item:a:error',
      'set state:a',
      'deadLetter',
      'setIfNotExists settled:a:0',
      'increment group:g-a:open',
      'setIfNotExists group:g-a:done',
      'ack',
      'publish',
      'publish',
    ])
    expect(made.dead).toMatchObject([{ error: 'Error: boom' }])
    const message = made.ports.calls.find(({ name }) => name === 'publish')?.given[0]
    expect(JSON.parse(String(message))).toEqual({ kind: 'done', id: 'a', groupId: 'g-a', error: 'Error: boom' })
  })

  it('of a retry and a deferral: state, push, ack; the group is not touched', async () => {
    for (const settlement of [retry, defer]) {
      const made = await running()
      expect(await made.commit(settlement(made.held, 700))).toEqual({ kind: 'applied', closed: [] })
      expect(steps(made)).toEqual(['set state:a', 'push', 'ack'])
      const attempt = settlement === retry ? 2 : 1
      const startAt = made.clock.now() + 700
      expect(JSON.parse((await made.get('state:a'))!)).toMatchObject({ status: 'pending', attempt, startAt })
      const [body, options] = made.ports.calls.find(({ name }) => name === 'push')!.given
      expect(JSON.parse(String(body))).toMatchObject({ id: 'a', attempt, startAt, queueAt: 0 })
      expect(options).toMatchObject({ delay: 700 })
    }
  })

  it('of a put-back: only the lease ends', async () => {
    const made = world()
    await made.commit(enqueue(item('a')))
    const { items } = await made.ledger.claim({
      queues: [{ queue: 'default', max: 1 }],
      leaseMs: 1000,
      worker: 'w',
    })
    made.ports.calls.length = 0
    await made.commit(release(items[0]!, 50))
    expect(made.ports.calls.map(({ name, given }) => [name, given[1]])).toEqual([['fail', 50]])
  })

  it('of a put-back after the start: the state is pending again, and it does not count as a crash', async () => {
    const made = await running()
    await made.commit(release(made.held))
    expect(steps(made)).toEqual(['set state:a', 'fail'])
    expect((await made.claim())[0]).toMatchObject({ crashes: 0, deliveries: 2 })
  })

  it('keeps within three round trips of the store where it has its bulk powers', async () => {
    const made = world('all')
    const ids = Array.from({ length: 100 }, (_, i) => `i${i}`)
    await made.ledger.commit(ids.map((id) => enqueue(item(id))))
    const count = () => {
      const counts: Record<string, number> = {}
      for (const { name } of made.ports.calls.splice(0)) counts[name] = (counts[name] ?? 0) + 1
      return counts
    }
    expect(count()).toEqual({ incrementOnce: 100, setMany: 1, pushMany: 1 })
    const items = await made.claim({ max: 100 })
    // The pause of the queue, everything about the hundred items, one start; 500 keys make one batch.
    expect(count()).toEqual({ pop: 1, getMany: 3, setMany: 1 })
    await made.ledger.commit(items.map((one) => complete(one, '1')))
    await made.clock.settle()
    // One check, one write, one count each, the watching gates, one closing each with its value, one ack; no caller waits.
    expect(count()).toEqual({
      getMany: expect.toSatisfy((n: number) => n <= 4),
      setMany: 1,
      incrementOnce: 100,
      setIfNotExists: 100,
      ackMany: 1,
    })
  })
})

describe('a settlement whose port fails', () => {
  // S61
  it('a retry whose push fails loses nothing, and continues when the push works again', async () => {
    const made = await running()
    made.ports.fault = ({ name }) => (name === 'push' ? 'before' : undefined)
    for (let round = 0; round < 3; round += 1)
      expect(await made.commit(retry(made.held, 0))).toMatchObject({
        kind: 'failed',
        error: { message: 'push failed' },
      })
    expect(made.ports.calls.some(({ name }) => name === 'ack')).toBe(false)
    made.ports.fault = () => undefined
    expect(await made.commit(retry(made.held, 0))).toEqual({ kind: 'applied', closed: [] })
    expect((await made.claim()).map(({ envelope }) => envelope.attempt)).toEqual([2])
  })

  // S61
  it('a retry that was cut short before its push is pushed by the worker that gets the old copy', async () => {
    for (const powers of ['all', 'documented', 'minimal'] as const) {
      const made = await running(powers)
      made.ports.fault = ({ name }) => (name.startsWith('push') ? 'before' : undefined)
      expect(await made.commit(retry(made.held, 0))).toMatchObject({ kind: 'failed' })
      made.ports.fault = () => undefined
      await made.clock.advance(30_001)
      const other = made.again()
      expect(await made.claim({ ledger: other })).toEqual([])
      const [second] = await made.claim({ ledger: other })
      expect(second).toMatchObject({ envelope: { attempt: 2 }, crashes: 0 })
      expect((await other.commit([complete(second!, '1')]))[0]).toMatchObject({
        kind: 'applied',
        closed: [{ groupId: 'g-a' }],
      })
      expect(await made.claim({ ledger: other })).toEqual([])
    }
  })

  // S96
  it('publishing that always fails settles all the same, and is reported as commit', async () => {
    const made = await awaited()
    made.ports.fault = ({ name }) => (name === 'publish' ? 'before' : undefined)
    expect(await made.commit(complete(made.held, '1'))).toMatchObject({ kind: 'applied' })
    await made.clock.settle()
    expect(made.errors.length).toBeGreaterThan(0)
    expect(made.errors.every(({ phase }) => phase === 'commit')).toBe(true)
    expect((await made.ledger.read(['a']))[0]).toMatchObject({ status: 'completed', result: '1' })
  })

  // S97
  it('a result that cannot be written shows the item as running until it can', async () => {
    const made = await running()
    made.ports.fault = ({ name, given }) =>
      name === 'set' && String(given[0]).includes('result:') ? 'before' : undefined
    expect(await made.commit(complete(made.held, '1'))).toMatchObject({ kind: 'failed' })
    expect((await made.ledger.read(['a']))[0]).toMatchObject({ status: 'running' })
    const me = { id: 'w1', host: 'h', version: '1', types: [], queues: [] }
    for (let beat = 0; beat < 5; beat += 1) {
      await made.clock.advance(20_000)
      expect(await made.ledger.extend([{ lease: made.held.lease, running: true }], 30_000, me)).toEqual(['held'])
      expect(await made.claim({ ledger: made.again() })).toEqual([])
    }
    made.ports.fault = () => undefined
    expect(await made.commit(complete(made.held, '1'))).toMatchObject({ kind: 'applied', closed: [{ groupId: 'g-a' }] })
    expect((await made.ledger.read(['a']))[0]).toMatchObject({ status: 'completed', result: '1' })
  })

  // S97
  it('a stored result is never computed again: the next holder only completes', async () => {
    for (const powers of ['all', 'documented', 'minimal'] as const) {
      const made = await running(powers)
      made.ports.fault = ({ name, given }) =>
        name.startsWith('increment') || (name === 'setIfNotExists' && String(given[0]).includes('settled:'))
          ? 'before'
          : undefined
      expect(await made.commit(complete(made.held, '1'))).toMatchObject({ kind: 'failed' })
      expect(await made.commit(release(made.held))).toMatchObject({ kind: 'applied' })
      made.ports.fault = () => undefined
      const other = made.again()
      const reply = await other.claim({
        queues: [{ queue: 'default', max: 5 }],
        leaseMs: 1000,
        worker: 'w2',
      })
      expect(reply.items).toEqual([])
      expect(reply.closedGroups).toEqual([{ groupId: 'g-a' }])
      expect((await other.read(['a']))[0]).toMatchObject({ status: 'completed', result: '1' })
    }
  })

  // S98
  it('a child whose push fails once is queued once, and so are its siblings', async () => {
    for (const powers of ['all', 'documented', 'minimal'] as const) {
      const made = await running(powers)
      let failures = powers === 'all' ? 2 : 1
      made.ports.fault = ({ name, given }) =>
        name.startsWith('push') && JSON.stringify(given[0]).includes('c2') && failures-- > 0 ? 'before' : undefined
      const settlement = complete(made.held, '1', children(made.held, ['c1', 'c2', 'c3']))
      expect(await made.commit(settlement)).toMatchObject({ kind: 'failed' })
      const early = await made.claim()
      expect(early.map(({ lease }) => lease.id)).toEqual(['c1', 'c3'])
      expect(await made.commit(complete(early[0]!, '1'))).toEqual({ kind: 'applied', closed: [] })
      expect(await made.commit(settlement)).toEqual({ kind: 'applied', closed: [] })
      const late = await made.claim()
      expect(late.map(({ lease }) => lease.id)).toEqual(['c2'])
      const ends = await made.ledger.commit([...early.slice(1), ...late].map((one) => complete(one, '1')))
      expect(ends.flatMap((end) => (end.kind === 'applied' ? end.closed : []))).toEqual([{ groupId: 'g-a' }])
      expect(await made.claim()).toEqual([])
    }
  })

  // S98
  it('a plan that was written is carried out by the next holder, without a second run', async () => {
    for (const powers of ['all', 'documented', 'minimal'] as const) {
      const made = await running(powers)
      made.ports.fault = ({ name }) => (name.startsWith('push') ? 'before' : undefined)
      const plan = children(made.held, ['c1', 'c2'])
      expect(await made.commit(complete(made.held, '1', [...plan, setGroupValue('g-a', '"v"')]))).toMatchObject({
        kind: 'failed',
      })
      made.ports.fault = () => undefined
      await made.clock.advance(30_001)
      const other = made.again()
      expect(await made.claim({ ledger: other })).toEqual([])
      expect((await other.read(['a']))[0]).toMatchObject({ status: 'completed', result: '1' })
      const kids = await made.claim({ ledger: other })
      expect(kids.map(({ lease }) => lease.id).toSorted()).toEqual(['c1', 'c2'])
      const ends = await other.commit(kids.map((one) => complete(one)))
      expect(ends.flatMap((end) => (end.kind === 'applied' ? end.closed : []))).toEqual([
        { groupId: 'g-a', value: '"v"' },
      ])
      // The first holder was only slow: its commit comes too late, and changes nothing.
      expect(await made.commit(complete(made.held, '1', plan))).toEqual({ kind: 'stale' })
      expect((await other.groups(['g-a']))[0]).toMatchObject({ open: 0, value: '"v"' })
      expect(await made.claim({ ledger: other })).toEqual([])
    }
  })

  it('completes what is stored, whatever is asked later', async () => {
    const made = await running()
    made.ports.fault = ({ name }) => (name === 'ack' ? 'before' : undefined)
    expect(await made.commit(complete(made.held, '1'))).toMatchObject({ kind: 'failed' })
    expect(await made.commit(deadLetter(made.held))).toMatchObject({
      kind: 'failed',
      error: { code: 'BAD_SETTLEMENT' },
    })
    made.ports.fault = () => undefined
    expect(await made.commit(complete(made.held, '1'))).toMatchObject({ kind: 'applied' })
    expect(made.dead).toEqual([])
  })

  it('adds a dead letter once when a later step fails and the commit is repeated', async () => {
    const made = await running()
    let failures = 3
    made.ports.fault = ({ name }) => (name === 'ack' && failures-- > 0 ? 'before' : undefined)
    for (let round = 0; round < 3; round += 1)
      expect(await made.commit(deadLetter(made.held))).toMatchObject({ kind: 'failed' })
    expect(await made.commit(deadLetter(made.held))).toMatchObject({ kind: 'applied', closed: [{ groupId: 'g-a' }] })
    expect(made.dead).toHaveLength(1)
  })
})

describe('a deferral to the very same instant', () => {
  it('is not swallowed by the copy under lease, however often it happens', async () => {
    for (const powers of ['all', 'documented'] as const) {
      const made = await running(powers)
      let { held } = made
      for (let round = 0; round < 5; round += 1) {
        expect(await made.commit(defer(held, 0))).toMatchObject({ kind: 'applied' })
        ;[held] = (await made.claim()) as [ClaimedItem]
        expect(held?.envelope).toMatchObject({ id: 'a', attempt: 1 })
      }
    }
  })
})

describe('two runs of one item', () => {
  it('that both planned children: the first plan counts, and the other run is stale', async () => {
    const made = await running('minimal')
    await made.clock.advance(30_001)
    const other = made.again()
    const [second] = await made.claim({ ledger: other })
    expect(second).toMatchObject({ crashes: 1 })
    // The first run writes its plan after all: its token has gone, but suppose that it looked before the other began.
    const late = complete(made.held, '"late"', children(made.held, ['late']))
    expect(await made.commit(late)).toEqual({ kind: 'stale' })
    expect((await other.commit([complete(second!, '"second"', children(second!, ['c']))]))[0]).toMatchObject({
      kind: 'applied',
    })
    expect((await made.claim({ ledger: other })).map(({ lease }) => lease.id)).toEqual(['c'])
  })

  it('a terminal state is never overtaken by the start that was written alongside', async () => {
    const made = world('documented')
    await made.commit(enqueue(item('a')))
    let open: () => void = () => undefined
    const slow = new Promise<void>((resolve) => {
      open = resolve
    })
    const { set } = made.ports.store
    const ports = {
      ...made.ports,
      store: {
        ...made.ports.store,
        set: async (...given: Parameters<typeof set>) => {
          if (given[1].includes('"running"')) await slow
          return set(...given)
        },
      },
    }
    const { overPlainPorts } = await import('../../../src/backends/plain/over-plain-ports.js')
    const { ledger } = overPlainPorts(ports, [], { clock: made.clock })
    const { items } = await ledger.claim({
      queues: [{ queue: 'default', max: 1 }],
      leaseMs: 1000,
      worker: 'w',
    })
    const begun = ledger.markStarted?.([items[0]!.lease])
    const ended = ledger.commit([complete(items[0]!, '1')])
    await made.clock.settle()
    expect(JSON.parse((await made.get('state:a'))!)).toMatchObject({ status: 'pending' })
    open()
    await begun
    expect((await ended)[0]).toMatchObject({ kind: 'applied' })
    expect(JSON.parse((await made.get('state:a'))!)).toMatchObject({ status: 'success' })
  })

  it('a start that cannot be written is reported as commit, and the run continues', async () => {
    const made = world('documented')
    await made.commit(enqueue(item('a')))
    made.ports.fault = ({ name, given }) => (name === 'set' && String(given[0]).includes('run:') ? 'before' : undefined)
    const [held] = await made.claim()
    expect(made.errors).toMatchObject([{ phase: 'commit' }])
    expect(await made.commit(complete(held!, '1'))).toMatchObject({ kind: 'applied' })
  })
})

describe('what comes late to a plain store, which checks no fence', () => {
  /** Two processes; the first has lost its lease to the second and does not know. */
  async function overtaken(powers: Powers) {
    const made = await running(powers)
    await made.clock.advance(30_001)
    const other = made.again()
    const [second] = await made.claim({ ledger: other })
    return { ...made, other, second: second! }
  }

  it('a start is not believed once the item has left its group', async () => {
    for (const powers of ['all', 'documented', 'minimal'] as const) {
      const { other, second, ports, get } = await overtaken(powers)
      const started = await get('state:a')
      expect((await other.commit([complete(second, '1')]))[0]).toMatchObject({ kind: 'applied' })
      await ports.store.set('work:state:a', started!)
      expect((await other.read(['a']))[0]).toMatchObject({ status: 'completed', result: '1' })
    }
  })

  it('a plan is refused when another run of the item has carried out its own', async () => {
    for (const powers of ['all', 'documented', 'minimal'] as const) {
      const { other, second, commit, held, ports, claim } = await overtaken(powers)
      const plan = children(second, ['c'])
      expect((await other.commit([complete(second, '1', plan)]))[0]).toMatchObject({ kind: 'applied' })
      // Suppose the first asked before any of that happened, and gets the answer only now.
      const { get, getMany } = ports.store
      Object.assign(ports.store, {
        get: async (key: string) => (/run:|settled:|state:/.test(key) ? undefined : get(key)),
        ...(getMany === undefined
          ? {}
          : {
              getMany: async (keys: readonly string[]) =>
                (await getMany(keys)).map((text, i) => (/run:|settled:|state:/.test(keys[i]!) ? undefined : text)),
            }),
      })
      expect(await commit(complete(held, '"late"', children(held, ['late'])))).toEqual({ kind: 'stale' })
      Object.assign(ports.store, { get, ...(getMany === undefined ? {} : { getMany }) })
      expect((await claim({ ledger: other })).map(({ lease }) => lease.id)).toEqual(['c'])
    }
  })

  it('a check that took longer than the lease is not trusted, and is repeated', async () => {
    const { other, second, commit, held, ports, clock, dead } = await overtaken('documented')
    const { get } = ports.store
    let isSlow = true
    Object.assign(ports.store, {
      get: async (key: string) => {
        if (!isSlow) return get(key)
        isSlow = false
        await clock.sleep(20_000)
        return undefined
      },
    })
    const late = commit(deadLetter(held))
    await other.commit([complete(second, '1')])
    await clock.advance(20_000)
    expect(await late).toEqual({ kind: 'stale' })
    expect(dead).toEqual([])
    expect((await other.read(['a']))[0]).toMatchObject({ status: 'completed', result: '1' })
  })

  it('a call that hangs holds up no other', async () => {
    const made = world('all')
    await made.ledger.commit(['a', 'b'].map((id) => enqueue(item(id))))
    const [a, b] = await made.claim()
    const { setMany } = made.ports.store
    let hangs = true
    Object.assign(made.ports.store, {
      setMany: (...given: Parameters<NonNullable<typeof setMany>>) => {
        if (!hangs) return setMany?.(...given)
        hangs = false
        return new Promise<void>(() => undefined)
      },
    })
    void made.commit(complete(a!, '1'))
    await made.clock.settle()
    expect(await made.commit(complete(b!, '1'))).toMatchObject({ kind: 'applied' })
  })
})

describe('the keys of a plain system', () => {
  it('are those of the layout, and no new one looks like one that tests make fail', async () => {
    for (const powers of ['all', 'documented', 'minimal'] as const) {
      const made = await running(powers, 'x')
      const gate = { do: 'openGate', key: 'k', heldId: 'x2', members: ['x1'], need: 1, of: 'success' } as const
      await made.commit(
        complete(made.held, '1', [
          ...children(made.held, ['x1', 'x2']),
          gate,
          setGroupValue('g-x', '1', { ifVersion: 0 }),
        ]),
      )
      const me = { id: 'w1', host: 'h', version: '1', types: [], queues: [] }
      const kids = await made.claim()
      await made.ledger.extend(
        kids.map(({ lease }) => ({ lease, running: true, progress: '1' })),
        1000,
        me,
      )
      for (const kid of kids) await made.commit(complete(kid, '1', [setGroupValue('g-x', '2', { final: true })]))
      await made.ledger.watch('me', { itemIds: ['x'], groupIds: ['g-x'] })
      const old = ['state:', 'result:', ':error', 'hb:', ':open', ':done', ':result', ':final', 'wait:']
      const keys = [...new Set(written(made.ports.calls).map((key) => key.replace('work:', '')))]
      expect(keys.length).toBeGreaterThan(10)
      for (const key of keys) {
        const isOld = old.some((part) => key.startsWith(part) || key.endsWith(part))
        const isNew =
          /^(plan|settled|held|enq|run|gate|gate-ended|gate-counted|gate-freed|watch|progress|cancel|crash|pause|sched|lock):/.test(
            key,
          )
        expect([key, isOld || (isNew && !/result:|state:|:open/.test(key))]).toEqual([key, true])
      }
    }
  })

  it('expire: nothing is written without an end but pauses and schedules', async () => {
    const made = await running('minimal')
    await made.commit(complete(made.held, '1', children(made.held, ['c'])))
    const sets = made.ports.calls.filter(({ name }) => name === 'set' || name === 'setIfNotExists')
    expect(sets.every(({ given }) => Number(given[2]) > 0)).toBe(true)
    const state = sets.find(({ given }) => given[0] === 'work:state:a')
    expect(state?.given[2]).toBe(DAY)
  })
})

describe('a settlement that makes no sense', () => {
  it('is answered with what is wrong, and changes nothing', async () => {
    const made = await running()
    const wrong = [
      byLease(made.held.lease, []),
      byLease(made.held.lease, [{ do: 'release', id: 'other' }]),
      byLease(made.held.lease, [
        { do: 'release', id: 'a' },
        { do: 'delete', id: 'a' },
      ]),
      byLease(made.held.lease, [{ do: 'redrive', id: 'a', delayMs: 0 }]),
    ]
    for (const settlement of wrong)
      expect(await made.commit(settlement)).toMatchObject({
        kind: 'failed',
        error: { code: expect.stringMatching(/BAD_SETTLEMENT|NOT_SUPPORTED/) },
      })
    expect(steps(made)).toEqual([])
  })
})
