// How much of a Redis server's memory does an item take: while it is pending, once it has completed, once it is dead of one of a
// hundred failures? Inputs of 100 bytes, groups of one. `npm run bench -- redis-memory [items of each]`
import { Redis } from 'ioredis'
import { redisBackend } from '../src/backends/redis/index.js'
import { newId } from '../src/core/ids.js'
import type { ClaimedItem } from '../src/ports/item.js'
import type { Settlement } from '../src/ports/settlement.js'
import { ledgerOn } from '../test/backends/ledger-on.js'
import { claim, enqueue, envelope, finish, ran } from '../test/backends/native.js'
import { startRedis } from '../test/servers/index.js'

const ITEMS = Number(process.argv[2] ?? 50_000)
const BATCH = 500
const INPUT = JSON.stringify({ to: 'x'.repeat(91) })

function die({ lease, envelope: { id, groupId } }: ClaimedItem, kind: number): Settlement {
  const now = Date.now()
  const error = `Error: the server said no, number ${kind}`
  const run = { attempt: 1, startedAt: now, endedAt: now, worker: 'w', class: 'retryable', rule: 'default' } as const
  return {
    guard: { by: 'lease', lease },
    effects: [
      { do: 'recordAttempt', id, was: { ...run, error, fingerprint: `f${kind}` } },
      { do: 'deadLetter', id, ending: 'exhausted', class: 'retryable', error, keepMs: 86_400_000 },
      { do: 'leaveGroup', groupId, count: 1 },
    ],
  }
}

const server = await startRedis()
const admin = new Redis(server.url)
const backend = redisBackend({ url: server.url })
const ledger = ledgerOn(backend)
const memory = async () => Number(/used_memory:(\d+)/.exec(await admin.info('memory'))?.[1])
/** Bytes for each item that something leaves behind. */
async function taken(what: string, run: () => Promise<unknown>): Promise<void> {
  const before = await memory()
  for (let n = 0; n < ITEMS; n += BATCH) await run()
  console.log(`${what}: ${(((await memory()) - before) / ITEMS).toFixed(0)} bytes`)
}
const push = () =>
  ledger.commit(
    Array.from({ length: BATCH }, () => {
      const id = newId()
      const now = Date.now()
      return enqueue(envelope(id, { type: 'mail', groupId: id, input: INPUT, queueAt: now, startAt: now }))
    }),
  )
const settle = async (end: (item: ClaimedItem, i: number) => Settlement) => {
  await push()
  await ledger.commit((await claim(ledger, BATCH)).map(end))
}

await ledger.commit([enqueue(envelope('first'))])
await taken('completed', () => settle((item) => finish(item, '1', [ran(item)])))
await taken('dead', () => settle((item, i) => die(item, i % 100)))
await taken('pending', push)
await backend.close()
admin.disconnect()
await server.stop()
