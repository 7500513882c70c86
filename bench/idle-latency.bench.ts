// How soon does an idle worker start what another process enqueues? Ours beside BullMQ, on one private Redis, in one run, in
// turns. `npm run bench -- idle-latency [samples] [rounds]`
//
// The worker is a separate, idle process; this process enqueues one item, waits until it has started, rests a
// moment, and goes on. The time is taken from before the enqueue to the first line of the handler, on the machine's monotonic
// clock, which all processes share.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { cpus, loadavg } from 'node:os'
import { setTimeout as rest } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { redisBackend } from '../src/backends/redis/index.js'
import { createWork, defineWork } from '../src/index.js'
import { startRedis } from '../test/servers/index.js'
import { failOnError } from './lib/fail-on-error.js'
import { peer, peerVersion } from './lib/peers.js'

/** As much of BullMQ as is used here; it is no dependency, so its types are not there. */
interface BullMq {
  readonly Queue: new (
    name: string,
    options: object,
  ) => { add(name: string, data: object, options: object): Promise<unknown>; close(): Promise<void> }
  readonly Worker: new (
    name: string,
    run: (job: { readonly data: Sent }) => Promise<void>,
    options: object,
  ) => { waitUntilReady(): Promise<unknown>; close(): Promise<void> }
}

interface Sent {
  readonly at: string
  readonly pad: string
}

const PAD = 'x'.repeat(80)
const now = () => process.hrtime.bigint()
const started = ({ at }: Sent) => process.send?.({ us: Number(now() - BigInt(at)) / 1_000 })
const ping = defineWork('ping', (sent: Sent, ctx) => {
  started(sent)
  return ctx.result(null)
})

async function workOurs(url: string): Promise<void> {
  createWork({ backend: redisBackend({ url }), work: [ping] as const, keepAlive: true, onError: failOnError }).start()
  await rest(500)
  process.send?.('ready')
}

async function workBullMq(port: number): Promise<void> {
  const { Worker } = peer('bullmq') as BullMq
  const worker = new Worker('ping', async ({ data }) => void started(data), {
    connection: { host: '127.0.0.1', port, maxRetriesPerRequest: null },
    concurrency: 100,
  })
  await worker.waitUntilReady()
  await rest(500)
  process.send?.('ready')
}

interface Contender {
  readonly name: string
  readonly worker: ChildProcess
  enqueue(sent: Sent): Promise<unknown>
  close(): Promise<void>
  readonly us: number[]
}

async function workerOf(kind: string, where: string): Promise<ChildProcess> {
  const worker = fork(fileURLToPath(import.meta.url), [kind, where], { stdio: 'inherit' })
  // Without its worker the bench would wait forever, and without the bench the worker would.
  worker.once('exit', (code, signal) => {
    if (signal === null) process.exit(code || 1)
  })
  await once(worker, 'message')
  return worker
}

async function sample({ worker, enqueue, us }: Contender, samples: number, isKept: boolean): Promise<void> {
  for (let i = 0; i < samples; i += 1) {
    const heard = once(worker, 'message') as Promise<[{ readonly us: number }]>
    await enqueue({ at: String(now()), pad: PAD })
    const [message] = await heard
    if (isKept) us.push(message.us)
    // Long enough for both sides to be idle again.
    await rest(15)
  }
}

const at = (list: readonly number[], share: number) =>
  list.toSorted((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * share))]! / 1_000

async function compare(samples: number, rounds: number): Promise<void> {
  const version = peerVersion('bullmq')
  const server = await startRedis()
  const { Queue } = peer('bullmq') as BullMq
  const queue = new Queue('ping', { connection: { host: '127.0.0.1', port: server.port } })
  const backend = redisBackend({ url: server.url })
  // It only enqueues: what it took itself would not be from another process.
  const producer = createWork({ backend, work: [ping] as const, autoStart: false })
  const contenders: readonly Contender[] = [
    {
      name: 'millrace',
      worker: await workerOf('ours', server.url),
      enqueue: (sent) => producer.enqueue(ping(sent)).accepted(),
      close: () => backend.close(),
      us: [],
    },
    {
      name: `bullmq ${version}`,
      worker: await workerOf('bullmq', String(server.port)),
      enqueue: (sent) => queue.add('ping', sent, { removeOnComplete: true }),
      close: () => queue.close(),
      us: [],
    },
  ]
  for (let round = -1; round < rounds; round += 1)
    for (const contender of contenders) await sample(contender, samples, round >= 0)
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}, load ${loadavg()[0]?.toFixed(1)}`)
  console.log(`idle enqueue → start, another process, ${rounds} rounds of ${samples} in turns, ms`)
  for (const { name, us } of contenders)
    console.log(`  ${name.padEnd(16)} p50 ${at(us, 0.5).toFixed(2)}   p99 ${at(us, 0.99).toFixed(2)}`)
  const ratio = (share: number) => at(contenders[0]!.us, share) / at(contenders[1]!.us, share)
  console.log(`  ours / theirs    p50 ${ratio(0.5).toFixed(2)}   p99 ${ratio(0.99).toFixed(2)}`)
  for (const { worker, close } of contenders) {
    worker.kill()
    await close()
  }
  await server.stop()
  process.exit(0)
}

const [kind = '', where = ''] = process.argv.slice(2)
if (process.connected) process.once('disconnect', () => process.exit())
if (kind === 'ours') await workOurs(where)
else if (kind === 'bullmq') await workBullMq(Number(where))
else await compare(Number(kind) || 100, Number(where) || 5)
