// A stream of orders, consumed with Millrace: failures are classified, what can succeed later is tried again, what cannot is
// dead-lettered with its reason, and replayed once the cause is fixed. It needs no server.
import { InvalidForStateError, memoryStore } from 'millrace'
import {
  ack,
  attempt,
  decoded,
  dlq,
  type Handler,
  Hopper,
  idempotency,
  idempotencyStore,
  jsonCodec,
  MemDeadLetter,
  MemInlet,
  type Middleware,
  retry,
  schema,
} from 'millrace/source'
import { z } from 'zod'

const Order = z.object({ id: z.string(), qty: z.number().int().positive() })

// The world outside: a payment service that is busy at first, and a warehouse that is down.
let isWarehouseUp = false
let busyAnswers = 2
const delivered = new Set(['o-5'])

const ship: Handler = (_ctx, message) => {
  const body = decoded<z.infer<typeof Order>>(message)
  if (!body.ok) throw new Error('there is a codec, so this cannot be')
  const { id } = body.value
  if (id === 'o-2' && busyAnswers-- > 0) throw new Error('the payment service is busy')
  if (delivered.has(id)) throw new InvalidForStateError('it has been delivered already')
  if (id === 'o-6' && !isWarehouseUp) throw new Error('the warehouse is down')
  delivered.add(id)
  return ack()
}

// Outermost first: it sees what the others made of the handler's result.
const narrate: Middleware = (next) => async (ctx, message) => {
  const result = await next(ctx, message)
  const outcome =
    result.action === 'nak'
      ? `again in ${result.requeueMs} ms`
      : result.action === 'term'
        ? `dead-lettered (${result.class})`
        : result.class === 'drop'
          ? 'dropped, it was done before'
          : 'done'
  const why = result.error instanceof Error ? `: ${result.error.message}` : ''
  console.log(`   ${message.headers.get('message-id')}, attempt ${attempt(ctx)[0]}: ${outcome}${why}`)
  return result
}

const letters = new MemDeadLetter()
const seen = idempotencyStore(memoryStore(), { prefix: 'shipping:' })
const middleware = [
  narrate,
  dlq(letters), // outside retry, so it sees what ran out of attempts
  retry({ maxAttempts: 3, backoff: { baseMs: 100 } }),
  idempotency({ store: seen }),
  schema(Order),
]

console.log('1. Seven messages, one of them twice:\n')

const order = (id: string, value: string) => ({ subject: 'orders', key: id, value, headers: { 'message-id': id } })
const inlet = new MemInlet({
  drainRedeliveries: true,
  messages: [
    order('o-1', '{"id":"o-1","qty":1}'),
    order('o-2', '{"id":"o-2","qty":2}'),
    order('o-3', '{"id":"o-3","qty":-3}'),
    order('o-4', 'qty=4'),
    order('o-5', '{"id":"o-5","qty":5}'),
    order('o-6', '{"id":"o-6","qty":6}'),
    order('o-1', '{"id":"o-1","qty":1}'),
  ],
})
const hopper = new Hopper({ name: 'shipping', codec: jsonCodec(), concurrency: 4, middleware })
const running = hopper.receive(inlet, { topics: ['orders'] }, ship)
await inlet.close() // Nothing more will come, so the run ends when everything is dealt with.
const { acked, dropped, nak, term } = await running
console.log(`\n   ${acked} done, ${dropped} dropped, ${nak} tries that failed, ${term} dead-lettered.`)

console.log('\n2. What was dead-lettered, and why:\n')

for (const letter of letters.records()) {
  console.log(`   ${letter.cursor}  ${letter.reason.padEnd(18)} ${letter.attempts} attempts  ${letter.errorName}`)
}

console.log('\n3. The warehouse is up again. The same middleware, so what still fails is dead-lettered again:\n')

isWarehouseUp = true
await new Hopper({ name: 'replay', codec: jsonCodec(), middleware }).receive(letters, { topics: [] }, ship)
console.log(
  `\n   ${letters.size} are left for a person: ${letters
    .records()
    .map((letter) => letter.reason)
    .join(', ')}.`,
)
