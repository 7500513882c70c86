// Orders of many customers on a queue: those of one customer in their order, each once, and what cannot be done kept for a person,
// who lists it and sends it back. The same program on memory, SQLite, PostgreSQL and Redis:
//   npx tsx examples/order-stream.ts [memory | sqlite:<file> | postgres://… | redis://…]
import { memoryBackend, PoisonError } from 'millrace'
import { openOps } from 'millrace/ops'
import { postgresBackend } from 'millrace/postgres'
import { redisBackend } from 'millrace/redis'
import {
  ack,
  decoded,
  dlq,
  type Handler,
  Hopper,
  idempotency,
  idempotencyStore,
  jsonCodec,
  messageBody,
  QueueInlet,
  queueDeadLetters,
  retry,
} from 'millrace/source'
import { sqliteBackend } from 'millrace/sqlite'

const address = process.argv[2] ?? 'memory'

function openBackend() {
  if (address.startsWith('sqlite:')) return sqliteBackend({ file: address.slice('sqlite:'.length) })
  if (address.startsWith('postgres')) return postgresBackend({ connectionString: address })
  if (address.startsWith('redis:')) return redisBackend({ url: address, prefix: 'orders' })
  return memoryBackend()
}

interface Order {
  readonly id: string
  readonly customer: string
  readonly qty: number
}

const backend = openBackend()
const orders = backend.named('orders')
const ops = openOps(backend)

// ── the producer: a key for the lane, an id so that an order sent twice is one ──

async function send(order: Order): Promise<void> {
  const headers = { 'content-type': 'application/json', 'x-shop': 'north' }
  await orders.push(messageBody(JSON.stringify(order), { key: order.customer, id: order.id, headers }))
}

// ── the consumer ──

let isBankOpen = false
const shipped = new Map<string, string[]>()

const ship: Handler = (_ctx, message) => {
  const body = decoded<Order>(message)
  if (!body.ok) throw new PoisonError('there is a codec, so this cannot be')
  const { id, customer, qty } = body.value
  if (qty <= 0) throw new PoisonError(`${id} orders ${qty}`)
  if (customer === 'bob' && !isBankOpen) throw new Error("bob's bank is closed")
  shipped.set(customer, [...(shipped.get(customer) ?? []), `${id} from ${message.headers.get('x-shop')}`])
  return ack()
}

/** Consumes until the queue is empty, as one process does between two deployments. */
async function consume() {
  const hopper = new Hopper({
    name: 'shipping',
    codec: jsonCodec(),
    concurrency: 4,
    ordering: 'strict', // a lane waits while one of its orders is tried again
    middleware: [
      dlq(queueDeadLetters(orders)),
      retry({ maxAttempts: 3, backoff: { baseMs: 5 } }),
      idempotency({ store: idempotencyStore(backend.store, { prefix: 'shipping:' }) }),
    ],
  })
  const running = hopper.receive(new QueueInlet(orders, { subject: 'orders', idlePollMs: 20 }), { topics: [] }, ship)
  while ((await orders.size()) > 0) await new Promise((resolve) => setTimeout(resolve, 10))
  await hopper.close()
  return running
}

console.log('1. Nine orders of three customers; one is sent twice, one is wrong, and one bank is closed:')
for (let n = 1; n <= 3; n += 1)
  for (const customer of ['ada', 'bob', 'cyd'])
    await send({ id: `${customer}-${n}`, customer, qty: customer === 'cyd' ? n - 2 : n })
await send({ id: 'ada-1', customer: 'ada', qty: 1 })
const first = await consume()
console.log(`   ${first.acked} shipped, ${first.dropped} skipped as done before, ${first.term} dead-lettered`)

console.log('2. The dead letters, with their reasons:')
for (const { error, reason, attempts } of (await ops.letters({ queue: 'orders' })).letters)
  console.log(`   ${reason} after ${attempts}: ${error}`)

console.log('3. The bank is open: what ran out of attempts goes back, with its key and its headers.')
isBankOpen = true
const { done } = await ops.redriveLetters(
  { queue: 'orders', class: 'retryable' },
  { who: 'ann', why: 'the bank is open' },
)
// Another process would do just as well: what was done is known by its id.
await send({ id: 'ada-2', customer: 'ada', qty: 2 })
const second = await consume()
console.log(`   ${done} redriven, ${second.acked} shipped, ${second.dropped} skipped`)

console.log('4. Each customer was served in order:')
for (const [customer, ids] of [...shipped].sort()) console.log(`   ${customer}: ${ids.join(', ')}`)

console.log('5. What is left for a person, and what was done so far:')
const { letters } = await ops.letters({ queue: 'orders' })
console.log(`   ${letters.map(({ error }) => error).join('; ')}`)
for (const { who, why, what } of (await ops.log(10)).toReversed())
  console.log(`   ${who} (${why}): ${what.replace(/ \(action .*/, '')}`)
await backend.close()
