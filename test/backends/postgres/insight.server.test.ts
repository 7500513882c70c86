import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresBackend } from '../../../src/backends/postgres/index.js'
import { MIGRATIONS } from '../../../src/backends/postgres/migrations.js'
import { withSchema } from '../../../src/drivers/postgres/sql-text.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import { fillWithDead, QUESTIONS } from '../dead-heap.js'
import { ledgerOn } from '../ledger-on.js'
import { ask, enqueue, item, START } from '../settlements.js'
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

const stuckItemsOf = async (ledger: Ledger) =>
  (await ledger.inspect!.stuckItems!({ limit: 10 })).items.map(({ envelope }) => envelope.id).toSorted()

describe('what people ask of a heap of dead items', () => {
  it('loads no payload, and finds its rows by indexes', async () => {
    const backend = await schemas.open({ pool, now: () => START })
    const ledger = ledgerOn(backend)
    await fillWithDead(ledger, 3_000)
    await schemas.pool.query(`vacuum analyze ${schemas.schemaOf(backend)}.ended_item`)
    plans.length = 0
    for (const put of Object.values(QUESTIONS)) await put(ledger)

    expect(plans.length).toBeGreaterThan(Object.keys(QUESTIONS).length)
    expect(plans.filter((plan) => /\binput\b/.test(plan))).toEqual([])
    const of = (text: string) => plans.filter((plan) => plan.includes(text)).join('\n')
    for (const index of [
      'ended_item_list',
      'ended_item_failed',
      'ended_item_failures',
      'ended_item_ended',
      'item_stuck',
    ])
      expect(
        plans.some((plan) => new RegExp(`(Index|Index Only) Scan.* ${index}\\b`).test(plan)),
        index,
      ).toBe(true)
    expect(of('throughput_after')).not.toMatch(/Seq Scan on (ended_item|item)\b/)
    expect(of('failure_groups')).not.toMatch(/Seq Scan on (ended_item|item)\b/)
    await schemas.close(backend)
  })
})

describe('an item that was lost', () => {
  it('is found, and freed by a release', async () => {
    const backend = await schemas.open({ now: () => START })
    const ledger = ledgerOn(backend)
    await ledger.commit([
      enqueue(item('leaseless')),
      enqueue(item('dueless', { priority: -1 }), { delayMs: 60_000 }),
      enqueue(item('sound'), { delayMs: 60_000 }),
    ])
    await ledger.claim(ask(1))
    expect(await stuckItemsOf(ledger)).toEqual([])

    const table = `${schemas.schemaOf(backend)}.item`
    await schemas.pool.query(`update ${table} set token = null, lease_until = null where id = 'leaseless'`)
    await schemas.pool.query(`update ${table} set due_at = null where id = 'dueless'`)
    expect(await stuckItemsOf(ledger)).toEqual(['dueless', 'leaseless'])
    expect((await ledger.claim(ask(10))).items).toEqual([])

    const freed = await ledger.commit([
      {
        guard: { by: 'status', id: 'leaseless', in: ['running'] },
        effects: [{ do: 'release', id: 'leaseless', delayMs: 0 }],
      },
      {
        guard: { by: 'status', id: 'dueless', in: ['pending'] },
        effects: [{ do: 'release', id: 'dueless', delayMs: 0 }],
      },
    ])
    expect(freed).toMatchObject([{ kind: 'applied' }, { kind: 'applied' }])
    expect(await stuckItemsOf(ledger)).toEqual([])
    expect((await ledger.claim(ask(10))).items.map(({ lease }) => lease.id)).toEqual(['leaseless', 'dueless'])
    await schemas.close(backend)
  })
})

describe('a schema of the version before', () => {
  it('is brought up to date with all that it holds', async () => {
    const schema = 'before'
    const run = (sql: string) => schemas.pool.query(withSchema(sql, schema))
    await run('create schema {schema}')
    await run(`create table {schema}.millrace_version (
      part text primary key, version int not null, min_reader int not null, migrated_at timestamptz not null)`)
    await run(MIGRATIONS[0]!.sql)
    await run("insert into {schema}.millrace_version values ('ledger', 1, 1, now())")
    await run("insert into {schema}.queue (name) values ('default')")
    await run("insert into {schema}.queue_type (queue, type) values (1, 't')")
    await run(`insert into {schema}.ended_item (id, seq, queue_type, state, priority, attempt, fence, lapses, crashes, queue_at, start_at,
      end_at, keep_until, is_single, group_final, group_version, ending, class, fingerprint, outcome)
      values ('d', 1, 1, 6, 0, 1, 1, 0, 0, 1, 1, ${START}, ${2 * START}, true, false, 0, 'exhausted', 'retryable', 'f', 'Error: x')`)

    const backend = postgresBackend({ connectionString: schemas.url, schema, now: () => START })
    const { inspect } = ledgerOn(backend)
    expect(await inspect!.failures!(10)).toMatchObject([{ fingerprint: 'f', dead: 1, sample: { id: 'd' } }])
    expect(await inspect!.throughput!(1_000)).toMatchObject([{ queue: 'default', type: 't', failed: 1 }])
    const { rows } = await run('select version, min_reader from {schema}.millrace_version')
    expect(rows).toEqual([{ version: 2, min_reader: 1 }])
    await backend.close()
  })
})
