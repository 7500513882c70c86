import { describe, expect, it } from 'vitest'
import type { Settlement } from '../../../src/ports/settlement.js'
import type { Powers } from './ports.js'
import {
  children,
  complete,
  deadLetter,
  defer,
  enqueue,
  item,
  push,
  release,
  retry,
  setGroupValue,
} from './settlements.js'
import { through, type World, world } from './world.js'

/** One commit, and what has to be there before it. */
interface Deed {
  readonly name: string
  prepare(made: World): Promise<Settlement>
}

const running =
  (settle: (held: Awaited<ReturnType<World['claim']>>[number]) => Settlement) =>
  async (made: World): Promise<Settlement> => {
    await made.commit(enqueue(item('a', { groupId: 'g' })))
    return settle((await made.claim())[0]!)
  }

const gate = { do: 'openGate', key: 'k', heldId: 'gate', members: ['c1', 'c2'], need: 2, of: 'success' } as const

const deeds: readonly Deed[] = [
  { name: 'an enqueue', prepare: async () => enqueue(item('a', { groupId: 'g', waiter: 'me' })) },
  { name: 'a leaf', prepare: running((held) => complete(held, '1', [setGroupValue('g', '"v"')])) },
  { name: 'a leaf without a result', prepare: running((held) => complete(held)) },
  {
    name: 'a final contribution',
    prepare: running((held) => complete(held, '1', [setGroupValue('g', '"v"', { final: true })])),
  },
  { name: 'an append', prepare: running((held) => complete(held, '1', [setGroupValue('g', '"v"', { ifVersion: 0 })])) },
  {
    name: 'a fan-out with a gate and a fold',
    prepare: running((held) =>
      complete(held, '1', [
        ...children(held, ['c1', 'c2']),
        { do: 'joinGroup', groupId: 'g', count: 1 },
        { ...push(item('gate', { groupId: 'g' }), Infinity), hold: { by: 'gate', key: 'k' } } as never,
        gate,
        setGroupValue('g', '"v"', { ifVersion: 0 }),
      ]),
    ),
  },
  { name: 'a death', prepare: running((held) => deadLetter(held)) },
  { name: 'a retry', prepare: running((held) => retry(held, 500)) },
  { name: 'a deferral', prepare: running((held) => defer(held, 500)) },
  { name: 'a put-back', prepare: running((held) => release(held, 500)) },
  {
    name: 'the last member of a gate',
    prepare: async (made) => {
      await made.commit(enqueue(item('c1', { groupId: 'g' })))
      const held = { ...push(item('gate', { groupId: 'g' }), Infinity), hold: { by: 'gate', key: 'k' } } as never
      const opens = { do: 'joinGroup', groupId: 'g', count: 1 } as const
      const opened = { ...gate, members: ['c1'], need: 1 }
      await made.commit({ guard: { by: 'absent', id: 'gate' }, effects: [opens, held, opened] })
      return complete((await made.claim({ max: 1 }))[0]!, '1')
    },
  },
]

/** Everything that is in the ports, but for what is random or only passes through. */
async function snapshot(made: World): Promise<unknown> {
  await made.clock.advance(1000)
  const keys = new Set<string>()
  for (const { port, given } of made.ports.calls)
    if (port === 'store')
      for (const one of [given[0], given[1]].flat())
        if (typeof one === 'string' && one.startsWith('work:')) keys.add(one.slice(5))
        else if (typeof one === 'object' && one !== null && 'key' in one) keys.add(String(one.key).slice(5))
  const values: Record<string, unknown> = {}
  for (const key of [...keys].toSorted()) {
    const value = await made.get(key)
    if (value === undefined || key.startsWith('lock:') || key.startsWith('plan:')) continue
    // Markers and claims hold random tokens: that they are there is what counts.
    const isToken = /^(settled|held|run|enq|gate-counted|gate-freed):|:(done|final)$/.test(key)
    // A lock that has to run out takes a few milliseconds.
    values[key] = isToken ? 'token' : value.replace(/"endAt":\d+/, '"endAt":0').replace(/"copy":"[^"]+"/, '"copy":""')
  }
  const pulled = await made.ports.queue.pop(100, 1)
  const bodies = [...new Set(pulled.map(({ body }) => body))].toSorted()
  return { values, bodies, dead: [...new Set(made.dead.map(({ body }) => body))] }
}

/** Commits until it is through, as an engine does. */
async function persist(made: World, settlement: Settlement): Promise<{ failures: number; closed: number }> {
  for (let failures = 0; failures < 5; failures += 1) {
    const result = await through(made, made.commit(settlement))
    if (result.kind === 'applied') return { failures, closed: result.closed.length }
    if (result.kind === 'repeated') return { failures, closed: 0 }
    expect(result.kind).toBe('failed')
  }
  throw new Error('the commit never came through')
}

async function run(deed: Deed, powers: Powers, fault?: { readonly at: number; readonly when: 'before' | 'after' }) {
  const made = world(powers)
  const settlement = await deed.prepare(made)
  let calls = 0
  made.ports.fault = () => {
    calls += 1
    return calls === fault?.at ? fault.when : undefined
  }
  const { failures, closed } = await persist(made, settlement)
  await made.clock.settle()
  made.ports.fault = () => undefined
  return { calls, failures, closed, end: await snapshot(made), errors: made.errors }
}

describe.each(['all', 'documented', 'minimal'] as const)(
  'a commit one of whose calls fails, on ports with %s powers',
  (powers) => {
    it.each(deeds)(
      '$name ends as if nothing had failed, once it is repeated',
      async (deed) => {
        const clean = await run(deed, powers)
        expect(clean).toMatchObject({ failures: 0, errors: [] })
        for (const when of ['before', 'after'] as const)
          for (let at = 1; at <= clean.calls; at += 1) {
            const found = await run(deed, powers, { at, when })
            expect({ at, when, end: found.end }).toEqual({ at, when, end: clean.end })
            expect({ at, when, failures: found.failures <= 1, closed: found.closed }).toEqual({
              at,
              when,
              failures: true,
              closed: clean.closed,
            })
          }
      },
      60_000,
    )
  },
)
