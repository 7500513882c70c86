import { expect } from 'vitest'
import type { Backend } from '../../src/index.js'
import { openOps } from '../../src/ops/index.js'
import { Client, mostAtOnce, startService } from './service.js'

const TENANTS = ['acme', 'globex', 'initech', 'hooli', 'umbrella']

/** What a test reads beside the service: the shop's own tables, and the backend. */
export interface Books {
  ids(table: 'orders' | 'charges'): Promise<readonly string[]>
  readonly backend: Backend
}

const isBegin = (line: string) => line.startsWith('begin ')

/** Orders, a declined card, a rolled-back order, a worker that is replaced, and one that is killed in the middle. */
export async function playService(address: string, openBooks: () => Promise<Books>): Promise<void> {
  const env = { DATABASE: address, REPORT_CRON: '* * * * *' }
  const web = startService('web', env)
  const client = new Client(await web.line((line) => line.startsWith('http://')))
  const orders = Array.from({ length: 50 }, (_, n) => ({
    id: `o-${n}`,
    tenant: TENANTS[n % TENANTS.length]!,
    cents: n === 7 ? 600_000 : 1_000 + n,
  }))
  const post = async (some: typeof orders) => {
    const placed = await Promise.all(some.map((order) => client.post(order)))
    expect(new Set(placed.map(({ status }) => status))).toEqual(new Set([202]))
    return placed.map(({ id }) => id)
  }

  const first = startService('worker', env)
  const early = await post(orders.slice(0, 25))
  await Promise.all(early.map((id) => client.ended(id)))
  expect(await first.end('SIGTERM')).toBe(0)

  expect((await client.post(orders[0])).id).toBe(early[0])
  expect((await client.post({ id: 'o-50', tenant: 'acme', cents: 2_000_000 })).status).toBe(409)
  expect((await client.post({ id: 'o-51', tenant: 'nobody', cents: 1 })).status).toBe(400)
  expect((await client.post('no order')).status).toBe(400)

  // A bank that does not answer: this worker can begin two jobs of each tenant, and end none.
  const late = await post(orders.slice(25))
  const second = startService('worker', { ...env, BANK_MS: '600000' })
  await second.line((line) => isBegin(line) && second.lines.filter(isBegin).length === 2 * TENANTS.length)
  expect(await second.end('SIGKILL')).toBe('SIGKILL')
  expect(mostAtOnce(second.lines)).toEqual({ ofATenant: 2, ofAll: 2 * TENANTS.length })

  const third = startService('worker', env)
  const jobs = await Promise.all([...early, ...late].map((id) => client.ended(id)))
  expect(jobs.filter(({ status }) => status !== 'success')).toMatchObject([
    { id: early[7], status: 'dead', error: expect.stringContaining('declined') },
  ])
  expect(jobs[0]).toMatchObject({ result: { receipt: 'receipt for o-0' } })
  expect(await client.job('acme:o-50')).toBeUndefined()
  for (const { lines } of [first, third]) expect(mostAtOnce(lines).ofATenant).toBeLessThanOrEqual(2)
  expect(third.lines).toEqual(expect.arrayContaining(second.lines.filter(isBegin)))

  const books = await openBooks()
  expect((await books.ids('orders')).toSorted()).toEqual(orders.map(({ id }) => id).toSorted())
  const charged = orders.filter((_, n) => n !== 7).map(({ id, tenant }) => `${tenant}:${id}`)
  expect((await books.ids('charges')).toSorted()).toEqual(charged.toSorted())

  const ops = openOps(books.backend)
  await expect
    .poll(async () => (await ops.list({ type: 'report', state: 'completed' })).items.length, { timeout: 90_000 })
    .toBeGreaterThan(0)
  expect(await Promise.all([web.end('SIGTERM'), third.end('SIGTERM')])).toEqual([0, 0])
}
