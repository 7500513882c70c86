import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Connection } from '../../../src/backends/postgres/connection.js'
import type { PostgresBackend } from '../../../src/backends/postgres/index.js'
import { storePort } from '../../../src/backends/postgres/ports/store.js'
import { systemClock } from '../../../src/core/time/clock.js'
import { PostgresDriver } from '../../../src/drivers/postgres/index.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import type { Effect } from '../../../src/ports/settlement.js'
import { ledgerOn } from '../ledger-on.js'
import { ask, enqueue, finish, item, retry, START, times } from '../settlements.js'
import { Schemas } from './schemas.js'

const DAY = 86_400_000

describe('what could grow forever', () => {
  let schemas: Schemas
  let backend: PostgresBackend
  let ledger: Ledger
  let now = START

  beforeAll(async () => {
    schemas = await Schemas.start()
  })
  afterAll(() => schemas?.stop())
  beforeEach(async () => {
    now = START
    backend = await schemas.open({ now: () => now })
    ledger = ledgerOn(backend)
  })
  afterEach(() => schemas.close(backend))

  const rowsOf = async (table: string) => {
    const { rows } = await schemas.pool.query(`select count(*)::int as n from ${schemas.schemaOf(backend)}.${table}`)
    return rows[0].n as number
  }

  it('of an item, the last hundred attempts are kept, as they were written', async () => {
    const was = (attempt: number): Effect => ({
      do: 'recordAttempt',
      id: 'a',
      was: { attempt, startedAt: now, endedAt: now, worker: 'w', error: `nul \0, half \ud800, "${attempt}"` },
    })
    await ledger.commit([enqueue(item('a'))])
    for (const from of [0, 60]) {
      const [a] = (await ledger.claim(ask(1))).items
      const { guard, effects } = retry(a!, 0)
      await ledger.commit([{ guard, effects: [...times(60, (i) => was(from + i)), ...effects] }])
    }
    const [a] = (await ledger.claim(ask(1))).items
    await ledger.commit([{ guard: { by: 'lease', lease: a!.lease }, effects: [was(120)] }])
    await ledger.commit([finish(a!, [was(121)])])

    const attempts = await ledger.inspect!.attempts('a')
    expect(attempts.map(({ attempt }) => attempt)).toEqual(times(100, (i) => 22 + i))
    expect(attempts.at(-1)?.error).toBe('nul \0, half \ud800, "121"')
  })

  it('the tags of an item go with it when its id is used again', async () => {
    const tagged = (id: string) => enqueue(item(id, { tags: ['red'] }))
    await ledger.commit([tagged('alone'), tagged('with another')])
    const { items } = await ledger.claim(ask(9))
    await ledger.commit(items.map((claimed) => finish(claimed)))
    now += DAY
    await ledger.commit([enqueue(item('alone'))])
    await ledger.commit([enqueue(item('with another')), enqueue(item('new', { tags: ['blue'] }))])

    expect([await ledger.inspect!.count({ tag: 'red' }), await rowsOf('item_tag')]).toEqual([0, 1])
  })

  it('of the audit log, the last ten thousand entries', async () => {
    await schemas.pool.query(
      `insert into ${schemas.schemaOf(backend)}.action_log (at, who, why, what) select n, 'w', '', '' from generate_series(1, 10500) n`,
    )
    await ledger.commit([{ guard: { by: 'none' }, effects: [{ do: 'log', who: 'ada', why: 'because', what: 'this' }] }])

    expect(await rowsOf('action_log')).toBe(10_000)
    expect(await ledger.inspect!.log(1)).toMatchObject([{ who: 'ada' }])
  })

  it('of dead letters, those of the last thirty days', async () => {
    await backend.queue.deadLetter('first', 'boom')
    now += 29 * DAY
    await backend.queue.deadLetter('second', 'boom')
    expect(await rowsOf('dead_letter')).toBe(2)
    now += 2 * DAY
    await backend.queue.deadLetter('third', 'boom')
    expect(await rowsOf('dead_letter')).toBe(2)
  })

  it('expired keys are removed even where fewer than sixty-four writes happen', async () => {
    const driver = new PostgresDriver({
      pool: schemas.pool,
      prepare: true,
      clock: systemClock,
      onError: () => undefined,
    })
    const schema = schemas.schemaOf(backend).slice(1, -1).replaceAll('""', '"')
    const program = (random: number) => storePort(new Connection(driver, schema, false, () => now), 1_000, () => random)
    await program(0).set('old', 'v', 1)
    now += 10
    await program(0).set('new', 'v')
    expect(await rowsOf('store')).toBe(2)
    await program(63 / 64).set('new', 'v')
    expect(await rowsOf('store')).toBe(1)
    await driver.close()
  })
})
