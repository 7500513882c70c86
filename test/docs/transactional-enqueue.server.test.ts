import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { root } from '../../scripts/lib/root.mjs'
import { postgresBackend } from '../../src/backends/postgres/index.js'
import { openOps } from '../../src/ops/index.js'
import { startPostgres } from '../servers/index.js'
import type { PrivateServer } from '../servers/private-server.js'
import { modulesOf } from './code-blocks.js'
import { read } from './pages.js'

const PAGE = 'docs/recipes/transactional-enqueue.md'

interface Recipe {
  placeOrder(order: { readonly id: string; readonly cents: number }): Promise<string>
  shutdown(): Promise<void>
}

let server: PrivateServer
let folder = ''
let db: pg.Client
let recipe: Recipe

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: 'off' } })
  db = new pg.Client({ connectionString: server.url })
  await db.connect()
  await db.query('create table orders (id text primary key, cents int not null)')
  process.env['DATABASE_URL'] = server.url
  mkdirSync(join(root, '.cache'), { recursive: true })
  folder = mkdtempSync(join(root, '.cache', 'docs-recipe-'))
  const [program] = modulesOf(PAGE, read(PAGE))
  writeFileSync(join(folder, program!.name), program!.text)
  recipe = (await import(/* @vite-ignore */ join(folder, program!.name))) as Recipe
})
afterAll(async () => {
  await recipe?.shutdown()
  await db?.end()
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const orders = async () => (await db.query<{ id: string }>('select id from orders')).rows.map(({ id }) => id)

async function invoices(): Promise<readonly string[]> {
  await using backend = postgresBackend({ connectionString: server.url, schema: 'work' })
  return (await openOps(backend).list({ type: 'invoice' })).items.map(({ id }) => id)
}

describe('the recipe of the transactional enqueue, on a real server', () => {
  it('makes an order and its invoice', async () => {
    expect(await recipe.placeOrder({ id: 'o-1', cents: 4_190 })).toBe('invoice/o-1')

    expect(await orders()).toEqual(['o-1'])
    expect(await invoices()).toEqual(['invoice/o-1'])
  })

  it('makes neither when the transaction fails', async () => {
    await expect(recipe.placeOrder({ id: 'o-2', cents: 1e12 })).rejects.toThrow('out of range')

    expect(await orders()).toEqual(['o-1'])
    expect(await invoices()).toEqual(['invoice/o-1'])
  })
})
