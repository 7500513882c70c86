import { openStacks, postgresStacks } from 'millrace/guild/stacks'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startPostgres } from '../../servers/index.js'
import { describeStacks } from './clauses/describe-stacks.js'

let server: Awaited<ReturnType<typeof startPostgres>>
let schemas = 0

beforeAll(async () => {
  // The suite is about behaviour; durability is shown by the tests that kill processes.
  server = await startPostgres({ settings: { fsync: 'off' } })
})
afterAll(() => server.stop())

it('a new durable watcher beside one long transaction does not stop the writers', async () => {
  const open = () => openStacks({ backend: postgresStacks({ connectionString: server.url, schema: 'registering' }) })
  const [one, two] = [await open(), await open()]
  await one.declare('o', { a: {}, b: {} })
  await one.seal()
  let end: () => void = () => undefined
  const gate = new Promise<void>((resolve) => {
    end = resolve
  })
  let hasBegun: () => void = () => undefined
  const begun = new Promise<void>((resolve) => {
    hasBegun = resolve
  })
  const long = one.transaction(async () => {
    await one.book('o', 'b').put({ id: 'long' })
    hasBegun()
    await gate
  })
  await begun
  const seen: string[] = []
  two.watch<{ id: string }>('o', 'a', (event) => void seen.push(event.type === 'delete' ? '' : event.entry.id), {
    durable: 'new',
  })
  let isSealed = false
  const sealed = two.seal().then(() => {
    isSealed = true
  })
  // Real time: it is the server that lets them wait. Each would have waited for the end of the long one.
  for (let n = 0; n < 10; n += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    await one.book('o', 'a').put({ id: `d${n}` })
  }
  expect(isSealed).toBe(false)
  end()
  await long
  await sealed
  await one.book('o', 'a').put({ id: 'after' })
  while (seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(seen).toEqual(['after'])
  await one.close()
  await two.close()
})

it('a place in the outbox is given only when the transaction with the one before it has committed', async () => {
  const backend = postgresStacks({ connectionString: server.url, schema: 'places' })
  await backend.open({ home: process.cwd() })
  const ref = { ownerId: 'o', book: 'a' }
  await backend.ensureBook(ref, [])
  await backend.outbox.register('w', ref)
  const created = (id: string) => [{ type: 'create', ...ref, entry: { id } }] as const
  const [one, two] = [await backend.begin({ readOnly: false }), await backend.begin({ readOnly: false })]
  const first = await one.append([...created('1')], 0)
  let second: number | null | undefined
  const placed = two.append([...created('2')], 0).then((seq) => {
    second = seq
  })
  const text = 'select count(*)::int as n from pg_locks where locktype = $1 and not granted'
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const isWaiting = async () => (await client.query<{ n: number }>(text, ['advisory'])).rows[0]?.n === 1
  while (!(await isWaiting()) && second === undefined) await new Promise((resolve) => setTimeout(resolve, 5))
  // A reader that met the second one now would never come back for the first.
  expect(second).toBeUndefined()
  await one.commit()
  await placed
  await two.commit()
  expect((await backend.outbox.read('w', 0, 10)).map(({ seq }) => seq)).toEqual([first, second])
  await client.end()
  await backend.close()
})

describeStacks({
  name: 'postgres',
  open: () => {
    schemas += 1
    // A name that has to be quoted.
    const schema = `Stacks "${schemas}"`
    return { backend: () => postgresStacks({ connectionString: server.url, schema, maxConnections: 5 }) }
  },
})
