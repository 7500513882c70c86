// The web process: takes orders and answers how their jobs stand. It has no handler, and runs no work.
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { createWork } from 'millrace'
import { OverLimitError, openShop } from './database.js'
import { allCharges, chargeOf, jobId, orderSchema } from './jobs.js'

const shop = await openShop(process.env['DATABASE'] ?? 'shop.db')
const w = createWork({ backend: shop.backend, work: allCharges, autoStart: false })

type Answer = readonly [status: number, body: object, headers?: Record<string, string>]

async function placeOrder(request: IncomingMessage): Promise<Answer> {
  const order = orderSchema.safeParse(await json(request).catch(() => undefined))
  const charge = chargeOf(order.data?.tenant ?? '')
  if (!order.success || charge === undefined) return [400, { error: 'no valid order' }]
  const id = jobId(order.data)
  await shop.place(order.data, (tx) => w.enqueue(charge(order.data), { id, tx }).accepted())
  return [202, { id }, { location: `/jobs/${id}` }]
}

async function showJob(id: string): Promise<Answer> {
  const charge = chargeOf(id.split(':')[0] ?? '')
  const state = charge && (await w.handle(charge, id).state())
  if (state === undefined) return [404, { error: 'no such job' }]
  const { status, attempt, result, error } = state
  return [200, { id, status, attempt, result, error }]
}

function answer(request: IncomingMessage): Promise<Answer> | Answer {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost')
  if (request.method === 'POST' && pathname === '/orders') return placeOrder(request)
  if (request.method === 'GET' && pathname.startsWith('/jobs/')) return showJob(pathname.slice('/jobs/'.length))
  return [404, { error: 'not found' }]
}

const server = createServer(async (request, response) => {
  const [status, body, headers] = await Promise.resolve(answer(request)).catch((error: unknown): Answer => {
    if (error instanceof OverLimitError) return [409, { error: error.message }]
    console.error(error)
    return [500, { error: 'it did not work' }]
  })
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
})
server.listen(Number(process.env['PORT'] ?? 0), '127.0.0.1')
await once(server, 'listening')
console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)

process.once('SIGTERM', async () => {
  server.close()
  server.closeIdleConnections()
  await once(server, 'close')
  await w.stop()
  await shop.close()
})
