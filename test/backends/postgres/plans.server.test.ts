import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PostgresBackend } from '../../../src/backends/postgres/index.js'
import type { Settlement } from '../../../src/ports/settlement.js'
import { ledgerOn } from '../ledger-on.js'
import {
  ask,
  children,
  contribute,
  deadLetter,
  enqueue,
  finish,
  gate,
  item,
  retry,
  START,
  times,
} from '../settlements.js'
import { type Explained, startExplained } from './explained.js'

let explained: Explained
let schemas: Explained['schemas']
let pool: Explained['pool']
let plans: string[]

beforeAll(async () => {
  explained = await startExplained()
  ;({ schemas, pool, plans } = explained)
})
afterAll(() => explained?.stop())

/** Everything that a busy fleet does, once. */
async function work(backend: PostgresBackend, prefix: string): Promise<void> {
  const ledger = ledgerOn(backend)
  const id = (name: string) => `${prefix}-${name}`
  const deadline = START - 1
  const late = [enqueue(item(id('late'), { deadline })), enqueue(item(id('odd'), { type: 'odd', deadline }))]
  await ledger.commit(late)
  const { items: expired } = await ledger.claim(ask(9, { rooms: [{ types: ['none'], max: 9 }] }))
  expect(expired.map(({ lease }) => lease.id)).toEqual([id('late'), id('odd')])
  await ledger.commit(expired.map((claimed) => deadLetter(claimed)))
  await ledger.commit([...times(6, (i) => enqueue(item(id(`i${i}`)))), enqueue(item(id('later')), { delayMs: 60_000 })])
  const { items } = await ledger.claim(ask(6))
  const [a, b, c, d, e] = items
  const held = items.map(({ lease }) => ({ lease, running: true }))
  await ledger.extend(held, 30_000, { id: 'w1', host: 'h', version: '1', types: ['t'], queues: ['default'] })
  await ledger.commit([
    finish(a!, [contribute(a!.envelope.groupId, '1')], '"ok"'),
    deadLetter(b!),
    retry(c!, 1_000),
    finish(d!, [...children(d!, [item(id('child'))]), ...gate(item(id('held')), [id('child'), e!.lease.id])]),
    finish(e!, [contribute(id('shared'), '1', false, 0)]),
  ])
  const user = await pool.connect()
  await user.query('begin')
  const inside: Settlement = {
    guard: { by: 'absent', id: id('inside') },
    effects: gate(item(id('inside')), [a!.lease.id, id('child'), id('never')], 2),
  }
  const inGroup = enqueue(item(id('guest'), { groupId: d!.envelope.groupId, tags: ['x'] }))
  await ledger.enlist!(user).commit([inside, inGroup])
  await user.query('commit')
  user.release()
  await ledger.groups([d!.envelope.groupId])
  // Looks at the gate, by rooms that are wide and by such as may be full first; then counts the guest.
  for (const max of [9, 1]) {
    const rooms = [
      { types: ['resize'], max },
      { types: ['other', 'more'], max: 9 },
    ]
    const { items: some } = await ledger.claim(ask(5, { rooms }))
    expect(some.length).toBeGreaterThan(0)
    await ledger.commit(some.map((claimed) => (claimed.lease.id === id('guest') ? finish(claimed) : retry(claimed, 0))))
  }
  await ledger.read(items.map(({ lease }) => lease.id))
  await ledger.groups(items.map(({ envelope }) => envelope.groupId))
  await ledger.watch('me', { itemIds: [id('later')], groupIds: [id('later')] })
  for (const state of ['waiting', 'completed', 'dead'] as const) {
    await ledger.inspect!.list({ state, limit: 10 })
    await ledger.inspect!.list({ state, type: 'resize', limit: 10 })
  }
  await ledger.inspect!.list({ state: 'dead', class: 'retryable', limit: 10 })
  await ledger.inspect!.list({ state: 'dead', fingerprint: 'f', limit: 10 })
  await ledger.inspect!.list({ state: 'dead', tag: 'x', limit: 10 })
  await ledger.inspect!.list({ groupId: id('i3'), limit: 10 })
  await backend.store.set(id('k'), 'v', 1_000)
  await backend.store.get(id('k'))
}

/** Tables that grow with the work; names of queues, pauses and schedules are few, and read whole at times. */
const LARGE = [
  'item',
  'ended_item',
  'item_tag',
  'item_watcher',
  'item_group',
  'gate',
  'gate_member',
  'gate_check',
  'group_share',
  'message',
  'store',
  'dead_letter',
]

function seqScans(): string[] {
  const found = plans.flatMap((plan) => plan.match(/Seq Scan on \S+/g) ?? [])
  return found.filter((scan) => LARGE.some((table) => scan.endsWith(` ${table}`) || scan.endsWith(`.${table}`)))
}

describe('the plans of what runs all the time', () => {
  it('use only indexes, made on empty tables and on large ones with statistics', async () => {
    const backend = await schemas.open({ pool, now: () => START })
    plans.length = 0
    await work(backend, 'empty')
    expect(plans.length).toBeGreaterThan(30)
    expect(plans.some((plan) => plan.includes('item_ready'))).toBe(true)
    for (const name of ['gate_check', 'group_share_group', 'gate_member_gate']) {
      expect(plans.some((plan) => plan.includes(`Index Scan using ${name}`) || plan.includes(`on ${name}`))).toBe(true)
    }
    expect(seqScans()).toEqual([])

    const ledger = ledgerOn(backend)
    const inGroup = async () => {
      const { items } = await ledger.inspect!.list({ groupId: 'empty-i3', limit: 10 })
      return items.map(({ envelope }) => envelope.id).toSorted()
    }
    expect(await inGroup()).toEqual(['empty-child', 'empty-guest', 'empty-i3'])
    for (let i = 0; i < 5; i += 1) {
      await ledger.commit(times(1_000, (n) => enqueue(item(`fill-${i}-${n}`, { tags: [`tag ${n}`] }))))
      await backend.store.setMany(times(500, (n) => ({ key: `${i} ${n}`, value: 'v' })))
      const { items } = await ledger.claim(ask(500))
      await ledger.commit(items.map((claimed) => finish(claimed)))
    }
    await schemas.pool.query('analyze')
    await pool.query('discard all')
    plans.length = 0
    // Another backend, whose connection has no plan yet: those are made for large tables.
    await work(backend, 'large')
    expect(seqScans()).toEqual([])
    const index = (name: string) => plans.some((plan) => plan.includes(name))
    const wanted = ['item_ready', 'item_pkey', 'ended_item_pkey', 'item_list', 'ended_item_list']
    expect([...wanted, 'item_expiring', 'item_grouped', 'ended_item_grouped'].filter((n) => !index(n))).toEqual([])
    // Thousands have come and ended since.
    expect(await inGroup()).toEqual(['empty-child', 'empty-guest', 'empty-i3'])
    await schemas.close(backend)
  })
})

describe('a backlog that nothing has counted yet', () => {
  it('is claimed from in the order of its index, not by sorting all of it for each claim', async () => {
    const backend = await schemas.open({ pool, now: () => START })
    const ledger = ledgerOn(backend)
    await ledger.commit(times(3_000, (i) => enqueue(item(`uncounted ${i}`))))
    await pool.query('discard all')
    plans.length = 0
    const wide = [{ types: ['resize'], max: 50 }]
    const narrow = [
      { types: ['resize'], max: 5 },
      { types: ['other'], max: 50 },
    ]
    for (const rooms of [undefined, wide, narrow]) {
      const { items } = await ledger.claim(ask(20, rooms === undefined ? {} : { rooms }))
      expect(items.length).toBeGreaterThan(0)
    }
    const picks = plans.filter((plan) => plan.includes('r.state = 0'))
    expect(picks.length).toBeGreaterThan(3)
    expect(picks.filter((plan) => /Sort Key: r\.priority|Bitmap/.test(plan))).toEqual([])
    await schemas.close(backend)
  })
})

describe('a queue that was empty, or almost, when its rows were counted', () => {
  it.each(['vacuum analyze', 'analyze'])(
    'is worked on by key when work comes after %s, not by reading all of it for each item',
    async (count) => {
      const backend = await schemas.open({ pool, now: () => START })
      const ledger = ledgerOn(backend)
      const round = async (name: string) => {
        await ledger.commit(times(200, (i) => enqueue(item(`${name} ${i}`))))
        const { items } = await ledger.claim(ask(200))
        const held = items.map(({ lease }) => ({ lease, running: true }))
        await ledger.extend(held, 30_000, { id: 'w1', host: 'h', version: '1', types: [], queues: [] })
        const ends = (isLong: boolean) =>
          items
            .filter((_, i) => (i % 2 === 0) === isLong)
            // A value beside the result goes by the long statement.
            .map((one) => (isLong ? finish(one, [contribute(one.lease.id, '1')], '2') : finish(one)))
        await ledger.commit(ends(false))
        await ledger.commit(ends(true))
      }
      await round('first')
      // One that stays keeps the table from being empty to its last page.
      await ledger.commit([enqueue(item('later'), { delayMs: 3_600_000 })])
      const schema = schemas.schemaOf(backend)
      for (const table of ['item', 'ended_item']) await schemas.pool.query(`${count} ${schema}.${table}`)
      plans.length = 0
      await round('second')
      // A scan of the key without a condition, under a comparison of all with all.
      const joined = plans.filter((plan) => /Join Filter: \((i|f)\.id = |Join Filter: \(\w+\.id = (i|f)\.id/.test(plan))
      expect(joined).toEqual([])
      await schemas.close(backend)
    },
  )
})

describe('a hundred settlements in one batch', () => {
  it('are one statement, and the claim of a hundred is another', async () => {
    const backend = await schemas.open({ pool, now: () => START })
    const ledger = ledgerOn(backend)
    await ledger.commit([enqueue(item('first'))])
    // Nested statements are logged too; those of the client are the calls of our functions.
    const sent = () =>
      plans.filter((plan) =>
        /Query Text: select .*(commit_batch|add_items|end_items|claim_ready)\(\$1/s.test(plan.slice(0, 200)),
      ).length
    plans.length = 0
    await ledger.commit(times(100, (i) => enqueue(item(`i${i}`))))
    expect(sent()).toBe(1)
    const { items } = await ledger.claim(ask(101))
    expect([items.length, sent()]).toEqual([101, 2])
    await ledger.commit(items.slice(0, 100).map((claimed) => finish(claimed)))
    expect(sent()).toBe(3)
    await schemas.close(backend)
  })
})
