// What does a hopper cost beside a bare consumer of the same client? Each reads the same messages in the same batches, calls a handler with the value
// of each, acknowledges each by itself, and has every acknowledgement confirmed by the server. The handler does nothing, so all of it is
// the cost of consuming. Rounds take turns; medians. Beside the pace it says where the time goes: the processor time of this process and of the server
// for each message, and how many commands each message takes (on Redis, as the server counts them, those in scripts included).
//
//   npm run bench -- streams-on-brokers [messages] [rounds] [redis | nats]
import { readFileSync } from 'node:fs'
import { connect, type Msg, type NatsConnection } from '@nats-io/transport-node'
import { Redis } from 'ioredis'
import { memoryStore } from 'millrace'
import { redisBackend } from 'millrace/redis'
import { ack, dlq, Hopper, type Inlet, idempotency, idempotencyStore, type Middleware, retry } from 'millrace/source'
import { JetStreamInlet } from 'millrace/source/nats'
import { RedisStreamInlet, streamFields } from 'millrace/source/redis'
import { startNats, startRedis } from '../test/servers/index.js'

const MESSAGES = Number(process.argv[2] ?? 20_000)
const ROUNDS = Number(process.argv[3] ?? 3)
const ONLY = process.argv[4]
const AT_ONCE = 256
const VALUE = 'x'.repeat(100)

type Consumer = (group: string) => Promise<void>

/** What a server has used until now. */
interface Used {
  readonly cpuMs: number
  readonly calls: number
}

/** One run. The times are microseconds for each message. */
interface Run {
  readonly rate: number
  readonly ownUs: number
  readonly serverUs: number
  readonly calls: number
}

async function measured(consume: Consumer, group: string, usedBy: () => Promise<Used>): Promise<Run> {
  const before = await usedBy()
  const own = process.cpuUsage()
  const startedAt = performance.now()
  await consume(group)
  const tookMs = performance.now() - startedAt
  const { user, system } = process.cpuUsage(own)
  const after = await usedBy()
  return {
    rate: Math.round((MESSAGES / tookMs) * 1_000),
    ownUs: (user + system) / MESSAGES,
    serverUs: ((after.cpuMs - before.cpuMs) * 1_000) / MESSAGES,
    calls: (after.calls - before.calls) / MESSAGES,
  }
}

/** The handler of every consumer. */
let bytes = 0
const handle = (value: Uint8Array | string): void => {
  bytes += value.length
}

const TICK_MS = 10

/** Processor time of another process, as the kernel counts it. */
function cpuMsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

async function hopped(inlet: Inlet, middleware: readonly Middleware[]): Promise<void> {
  let seen = 0
  const hopper = new Hopper({ concurrency: AT_ONCE, maxInFlight: 2 * AT_ONCE, lagIntervalMs: 0, middleware })
  // A lane for each message: order is not what is compared.
  const running = hopper.receive(inlet, { topics: [] }, (_, { value }) => {
    handle(value)
    seen += 1
    if (seen === MESSAGES) setImmediate(() => void hopper.close())
    return ack()
  })
  await running
  await inlet.close()
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

async function compare(
  name: string,
  usedBy: () => Promise<Used>,
  ways: Readonly<Record<string, Consumer>>,
): Promise<void> {
  const found = new Map<string, Run[]>()
  for (let round = 0; round < ROUNDS; round += 1)
    for (const [way, consume] of Object.entries(ways)) {
      const runs = found.get(way) ?? []
      found.set(way, [...runs, await measured(consume, `${way.replaceAll(/\W+/g, '_')}_${round}`, usedBy)])
    }
  const middle = (runs: readonly Run[], what: keyof Run) => median(runs.map((run) => run[what]))
  const bare = middle(found.values().next().value ?? [], 'rate')
  for (const [way, runs] of found)
    console.log(
      `${name.padEnd(6)} ${way.padEnd(48)} ${String(middle(runs, 'rate')).padStart(7)}/s  ${(middle(runs, 'rate') / bare).toFixed(2)}` +
        `  process ${middle(runs, 'ownUs').toFixed(0).padStart(4)} us  server ${middle(runs, 'serverUs').toFixed(0).padStart(4)} us` +
        (middle(runs, 'calls') === 0 ? '' : `  ${middle(runs, 'calls').toFixed(2)} commands`),
    )
}

async function onRedis(): Promise<void> {
  const server = await startRedis()
  const redis = new Redis(server.url)
  for (let from = 0; from < MESSAGES; from += 1_000) {
    const batch = redis.pipeline()
    for (let i = 0; i < Math.min(1_000, MESSAGES - from); i += 1)
      batch.xadd('orders', '*', ...streamFields(VALUE, { key: String(from + i) }))
    await batch.exec()
  }
  const inlet = (group: string) =>
    new RedisStreamInlet({ url: server.url, stream: 'orders', group, deadLetters: 'dead' })
  const backend = redisBackend({ url: server.url })
  const used = async (): Promise<Used> => {
    const stats = await redis.info('commandstats')
    const counts = [...stats.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)].filter(([, command]) => command !== 'info')
    return { cpuMs: cpuMsOf(server.pid!), calls: counts.reduce((sum, [, , calls]) => sum + Number(calls), 0) }
  }
  await compare('Redis', used, {
    'ioredis: XREADGROUP, XACK of each': async (group) => {
      await redis.xgroup('CREATE', 'orders', group, '0')
      for (let seen = 0; seen < MESSAGES; ) {
        const read = await redis.xreadgroup('GROUP', group, 'c', 'COUNT', AT_ONCE, 'STREAMS', 'orders', '>')
        const entries = (read as [string, [string, string[]][]][])[0]![1]
        await Promise.all(
          entries.map(([id, fields]) => {
            handle(fields[fields.indexOf('value') + 1]!)
            return redis.xack('orders', group, id)
          }),
        )
        seen += entries.length
      }
    },
    hopper: (group) => hopped(inlet(group), []),
    'hopper with retry, dlq, idempotency (in memory)': (group) => {
      const own = inlet(group)
      const seen = idempotencyStore(memoryStore(), { prefix: group })
      return hopped(own, [dlq(own.letters), retry(), idempotency({ store: seen })])
    },
    'hopper with retry, dlq, idempotency (on Redis)': (group) => {
      const own = inlet(group)
      const seen = idempotencyStore(backend.store, { prefix: group })
      return hopped(own, [dlq(own.letters), retry(), idempotency({ store: seen })])
    },
  })
  redis.disconnect()
  await backend.close?.()
  await server.stop()
}

/** Pulls without waiting, and a request for each acknowledgement. */
async function bareNats(nats: NatsConnection, group: string): Promise<void> {
  const config = { durable_name: group, ack_policy: 'explicit', deliver_policy: 'all', max_ack_pending: 10_000 }
  await nats.request(
    `$JS.API.CONSUMER.DURABLE.CREATE.ORDERS.${group}`,
    JSON.stringify({ stream_name: 'ORDERS', config }),
  )
  const inbox = `bare.${group}`
  let arrived: Msg[] = []
  let wake = () => {}
  const sub = nats.subscribe(inbox, {
    callback: (_, message) => {
      if (message.reply !== undefined && message.reply !== '') arrived.push(message)
      wake()
    },
  })
  for (let seen = 0; seen < MESSAGES; ) {
    const batch = Math.min(AT_ONCE, MESSAGES - seen)
    nats.publish(`$JS.API.CONSUMER.MSG.NEXT.ORDERS.${group}`, JSON.stringify({ batch, expires: 5e9 }), { reply: inbox })
    for (let left = batch; left > 0; ) {
      if (arrived.length === 0)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      const here = arrived
      arrived = []
      await Promise.all(
        here.map((message) => {
          handle(message.data)
          return nats.request(message.reply!, '+ACK')
        }),
      )
      left -= here.length
      seen += here.length
    }
  }
  sub.unsubscribe()
}

async function onNats(): Promise<void> {
  const server = await startNats()
  const nats = await connect({ servers: server.url })
  const stream = { name: 'ORDERS', subjects: ['orders.*'], storage: 'memory' }
  await nats.request('$JS.API.STREAM.CREATE.ORDERS', JSON.stringify(stream))
  for (let from = 0; from < MESSAGES; from += 500)
    await Promise.all(
      Array.from({ length: Math.min(500, MESSAGES - from) }, (_, i) => nats.request(`orders.${from + i}`, VALUE)),
    )
  const inlet = (durable: string) =>
    new JetStreamInlet({ servers: server.url, stream: 'ORDERS', durable, deadLetters: 'DEAD' })
  await compare('NATS', async () => ({ cpuMs: cpuMsOf(server.pid!), calls: 0 }), {
    'client: pull, a confirmed ack of each': (group) => bareNats(nats, group),
    hopper: (group) => hopped(inlet(group), []),
    'hopper with retry, dlq, idempotency (in memory)': (group) => {
      const own = inlet(group)
      const seen = idempotencyStore(memoryStore(), { prefix: group })
      return hopped(own, [dlq(own.letters), retry(), idempotency({ store: seen })])
    },
  })
  await nats.close()
  await server.stop()
}

console.log(`${MESSAGES} messages of ${VALUE.length} bytes, ${ROUNDS} rounds; Node ${process.version}`)
if (ONLY !== 'nats') await onRedis()
if (ONLY !== 'redis') await onNats()
console.log(`${bytes} bytes were handled`)
