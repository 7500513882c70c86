import { afterAll, beforeAll, expect, it } from 'vitest'
import { ledgerOn } from '../ledger-on.js'
import { ask, deadLetter, enqueue, finish, gate, item, retry } from '../settlements.js'
import { Schemas } from './schemas.js'

let schemas: Schemas
beforeAll(async () => {
  schemas = await Schemas.start()
})
afterAll(() => schemas?.stop())

it('the view "job" names queue, type and state, and tells times as timestamps', async () => {
  const backend = await schemas.open()
  const ledger = ledgerOn(backend)
  await ledger.commit(['done', 'dead', 'again', 'runs'].map((id) => enqueue(item(id), { queue: 'mail' })))
  const { items } = await ledger.claim(ask(9, { queues: [{ queue: 'mail', max: 9 }] }))
  const [done, dead, again] = items
  await ledger.commit([finish(done!, [], '"ok"'), deadLetter(dead!), retry(again!, 60_000), enqueue(item('waits'))])
  await ledger.commit([
    enqueue(item('later'), { delayMs: 60_000 }),
    { guard: { by: 'absent', id: 'held' }, effects: gate(item('held'), ['runs']) },
  ])

  const { rows } = await schemas.pool.query(`select * from ${schemas.schemaOf(backend)}.job`)
  const found = new Map(rows.map((row) => [row.id, row]))
  const states = Object.fromEntries(rows.map(({ id, state }) => [id, state]))
  expect(states).toEqual({
    done: 'completed',
    dead: 'dead',
    again: 'retrying',
    runs: 'active',
    waits: 'waiting',
    later: 'scheduled',
    held: 'blocked',
  })
  expect(found.get('done')).toMatchObject({ queue: 'mail', type: 'resize', result: '"ok"', error: null, attempt: 1 })
  expect(found.get('dead')).toMatchObject({
    ending: 'exhausted',
    class: 'retryable',
    error: 'Error: boom',
    result: null,
  })
  expect(found.get('runs')).toMatchObject({ worker: 'w1', input: '{"of":"runs"}', ended_at: null })
  expect(found.get('done').ended_at).toBeInstanceOf(Date)
  expect(Math.abs(found.get('done').ended_at - Date.now())).toBeLessThan(60_000)
  expect(found.get('runs').leased_until - found.get('runs').started_at).toBe(30_000)
  expect([...found.keys()]).toHaveLength(rows.length)
  await schemas.close(backend)
})
