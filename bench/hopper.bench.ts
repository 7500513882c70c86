// What does the consume loop cost per message, with a handler that does nothing? Through both of its feeds (a stream in
// memory, a ledger in memory), bare and with dead letters, retry and idempotency, beside a loop that only awaits the handler.
//
//   node --import tsx bench/hopper.bench.ts [--quick]
//
// The limit: 100,000 messages a second, that is 10 µs each, must be affordable without middleware. CPU time decides, since on a
// shared machine wall time tells mostly of the neighbours; both are printed. Run through tsx, closures cost a little more
// than in the build, so the figures are on the safe side.
import { cpus, loadavg } from 'node:os'
import { memoryBackend, memoryStore } from '../src/backends/memory/index.js'
import { GroupCommit } from '../src/core/group-commit.js'
import { newId } from '../src/core/ids.js'
import { ack, type Result } from '../src/core/stream/result.js'
import { DrainedError } from '../src/core/stream/stream-errors.js'
import { systemClock } from '../src/core/time/clock.js'
import { ownedBy } from '../src/ports/find-ledger.js'
import type { ClaimedItem } from '../src/ports/item.js'
import type { CommitResult, Settlement } from '../src/ports/settlement.js'
import { ledgerFeed, type Outgoing, type PendingSettlement } from '../src/source/feeds/ledger-feed.js'
import { Hopper } from '../src/source/hopper/hopper.js'
import type { HopperOptions } from '../src/source/hopper/hopper-options.js'
import { MemInlet } from '../src/source/inlets/memory/mem-inlet.js'
import type { Capabilities, CapabilityName, Subscription } from '../src/source/inlets/subscription.js'
import type { Admission, RunDeliveries } from '../src/source/loop/admission.js'
import type { Delivery } from '../src/source/loop/delivery.js'
import { Loop } from '../src/source/loop/loop.js'
import { background } from '../src/source/message/context.js'
import { Headers } from '../src/source/message/headers.js'
import type { Message } from '../src/source/message/message.js'
import { dlq } from '../src/source/middleware/dead-letter.js'
import type { Handler } from '../src/source/middleware/handler.js'
import { idempotency } from '../src/source/middleware/idempotency.js'
import { idempotencyStore } from '../src/source/middleware/idempotency-store.js'
import { MemDeadLetter } from '../src/source/middleware/mem-dead-letter.js'
import { retry } from '../src/source/middleware/retry.js'

const IS_QUICK = process.argv.includes('--quick')
const ROUNDS = IS_QUICK ? 5 : 9
const MESSAGES = IS_QUICK ? 20_000 : 100_000
const LIMIT_US = 10
const DAY = 86_400_000

const handler: Handler = async (): Promise<Result> => ack()

/** Microseconds per message, by the wall and by the processor. */
interface Cost {
  readonly wall: number
  readonly cpu: number
}

async function measured(run: () => Promise<void>): Promise<Cost> {
  const cpuBefore = process.cpuUsage()
  const began = performance.now()
  await run()
  const wall = performance.now() - began
  const { user, system } = process.cpuUsage(cpuBefore)
  return { wall: (wall * 1_000) / MESSAGES, cpu: (user + system) / MESSAGES }
}

const messages: readonly Message[] = Array.from({ length: MESSAGES }, (_, i) => ({
  key: null,
  value: new Uint8Array(100),
  headers: Headers.empty,
  subject: 'bench',
  partitionKey: `key-${i % 1_000}`,
  cursor: { toString: () => String(i) },
  deliveryCount: 1,
  as: () => undefined,
}))

/** A loop that does nothing but await: what is left when everything is taken away. */
async function bare(): Promise<Cost> {
  const ctx = background()
  return measured(async () => {
    for (const message of messages) {
      const result = await handler(ctx, message)
      if (result.action !== 'ack') throw new Error('not acked')
    }
  })
}

/** A list as a subscription: what is measured on it is the hopper alone. */
function listSubscription(): Subscription {
  let at = 0
  const settled = Promise.resolve()
  const can: Partial<Capabilities> = {
    batched: {
      nextBatch: async (limit) => {
        if (at === messages.length) throw new DrainedError()
        const batch = messages.slice(at, at + limit)
        at += batch.length
        return batch
      },
      settleBatch: async () => undefined,
    },
    leaseExtender: {
      leaseMs: 30_000,
      extend: async () => true,
      extendMany: async (held) => held.map(() => true),
    },
  }
  return {
    next: async () => {
      throw new DrainedError()
    },
    settle: () => settled,
    close: async () => undefined,
    capability: <K extends CapabilityName>(name: K) => can[name] as Capabilities[K] | undefined,
  }
}

async function consumed(sub: Subscription, options: HopperOptions): Promise<Cost> {
  const hopper = new Hopper(options)
  return measured(async () => {
    const { acked } = await hopper.run(sub, handler)
    if (acked !== MESSAGES) throw new Error(`acked ${acked} of ${MESSAGES}`)
  })
}

/** The memory inlet behind it: leases, a ledger of settlements, real redelivery. */
async function stream(options: HopperOptions): Promise<Cost> {
  const inlet = new MemInlet({
    batched: true,
    messages: messages.map(({ partitionKey, value }) => ({ partitionKey, value })),
  })
  const sub = await inlet.subscribe()
  await sub.close()
  return consumed(sub, options)
}

const withMiddleware = (): HopperOptions => ({
  concurrency: 16,
  middleware: [
    dlq(new MemDeadLetter()),
    retry(),
    idempotency({ store: idempotencyStore(memoryStore(), { prefix: 'bench:' }) }),
  ],
})

/** Runs as many together as are claimed: the policy costs next to nothing, so this measures loop, feed and ledger. */
class AtOnce implements Admission<ClaimedItem> {
  readonly #max: number
  #running = 0
  #carry: RunDeliveries<ClaimedItem> | undefined
  #wake: (() => void) | undefined
  constructor(max: number) {
    this.#max = max
  }
  attach(carry: RunDeliveries<ClaimedItem>): void {
    this.#carry = carry
  }
  capacity(): number {
    return this.#max - this.#running
  }
  offer(delivery: Delivery<ClaimedItem>): 'taken' {
    this.#running += 1
    this.#carry!([delivery], undefined, () => {
      this.#running -= 1
      if (this.#running <= this.#max / 2) this.#wake?.()
    })
    return 'taken'
  }
  onRoom(wake: () => void): () => void {
    this.#wake = wake
    return () => undefined
  }
  finish(): void {}
  drain(): readonly Delivery<ClaimedItem>[] {
    return []
  }
}

/** The ledger of the memory backend: claimed, run and settled with an attempt, an outcome and group accounting. */
async function ledger(): Promise<Cost> {
  const owned = ownedBy(memoryBackend(), [])
  if (!('open' in owned)) throw new Error('the memory backend owns its ports')
  const book = owned.open({ prefix: 'bench:' })
  const now = Date.now()
  for (let from = 0; from < MESSAGES; from += 1_000) {
    await book.commit(
      Array.from({ length: Math.min(1_000, MESSAGES - from) }, (): Settlement => {
        const id = newId()
        const item = {
          id,
          type: 'bench',
          groupId: id,
          input: 'null',
          queueAt: now,
          startAt: now,
          attempt: 1,
          priority: 0,
        }
        return {
          guard: { by: 'absent', id },
          effects: [
            { do: 'joinGroup', groupId: id, count: 1 },
            { do: 'enqueue', item, queue: 'default', delayMs: 0 },
          ],
        }
      }),
    )
  }
  const outcomes = new GroupCommit<Outgoing, CommitResult>({
    flush: (batch) => book.commit(batch.map(({ settlement }) => settlement)),
  })
  const feed = ledgerFeed({
    ledger: book,
    outcomes,
    queues: ['default'],
    leaseMs: 30_000,
    heartbeatMs: 10_000,
    worker: { id: 'w', host: 'here', version: '0', types: ['bench'], queues: ['default'] },
    clock: systemClock,
    retryQueueMs: 1_000,
  })
  let settled = 0
  let hasAll: () => void = () => undefined
  const all = new Promise<void>((resolve) => {
    hasAll = resolve
  })
  const loop = new Loop<ClaimedItem, PendingSettlement>(
    {},
    {
      settled: () => {
        settled += 1
        if (settled === MESSAGES) hasAll()
      },
    },
  )
  const ctx = background()
  return measured(async () => {
    const running = loop.run(feed, new AtOnce(512), async ([{ item }]) => {
      await handler(ctx, messages[0]!)
      const { lease, envelope } = item
      const { id, groupId } = envelope
      return [
        {
          settlement: {
            guard: { by: 'lease', lease },
            effects: [
              { do: 'recordAttempt', id, was: { attempt: 1, startedAt: now, endedAt: now, worker: 'w' } },
              { do: 'complete', id, ending: 'completed', keepMs: DAY },
              { do: 'leaveGroup', groupId, count: 1 },
            ],
          },
        },
      ]
    })
    await all
    await loop.stop()
    await running
  })
}

const CONTENDERS: Readonly<Record<string, () => Promise<Cost>>> = {
  'bare loop': bare,
  'hopper alone': () => consumed(listSubscription(), {}),
  'hopper alone, 16 lanes': () => consumed(listSubscription(), { concurrency: 16 }),
  'memory stream': () => stream({}),
  'memory stream, 16 lanes': () => stream({ concurrency: 16 }),
  'memory stream, dlq + retry + idempotency': () => stream(withMiddleware()),
  'memory ledger': ledger,
}

const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

const costs = new Map<string, Cost[]>(Object.keys(CONTENDERS).map((name) => [name, []]))
const collect = (globalThis as { gc?: () => void }).gc

console.log(
  `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}, load ${loadavg()[0]?.toFixed(1)}; ` +
    `${MESSAGES} messages, ${ROUNDS} rounds, one warm-up round`,
)
for (let round = -1; round < ROUNDS; round += 1) {
  // Each round starts with another contender, so that none always follows the same neighbour.
  const names = Object.keys(CONTENDERS)
  const start = (round + 1) % names.length
  for (const name of [...names.slice(start), ...names.slice(0, start)]) {
    collect?.()
    const cost = await CONTENDERS[name]!()
    if (round >= 0) costs.get(name)!.push(cost)
  }
}

const bareCosts = costs.get('bare loop')!
const digits = (value: number) => value.toFixed(2).padStart(7)
console.log(`${'per message'.padEnd(42)} cpu µs  (range)          wall µs   per second   × bare (cpu, paired)`)
for (const [name, all] of costs) {
  const cpu = all.map((cost) => cost.cpu)
  const wall = median(all.map((cost) => cost.wall))
  const ratio = median(all.map((cost, i) => cost.cpu / bareCosts[i]!.cpu))
  console.log(
    `${name.padEnd(42)}${digits(median(cpu))}  (${Math.min(...cpu).toFixed(2)}–${Math.max(...cpu).toFixed(2)})`.padEnd(
      68,
    ) +
      `${digits(wall)}  ${Math.round(1e6 / wall)
        .toLocaleString('en')
        .padStart(10)}   ${ratio.toFixed(1).padStart(6)}`,
  )
}

const held = ['hopper alone', 'hopper alone, 16 lanes', 'memory stream', 'memory stream, 16 lanes', 'memory ledger']
const missed = held.filter((name) => median(costs.get(name)!.map((cost) => cost.cpu)) > LIMIT_US)
console.log(
  missed.length === 0
    ? `All of ${held.join('; ')} stay below ${LIMIT_US} µs of CPU per message.`
    : `Above ${LIMIT_US} µs of CPU per message: ${missed.join('; ')}.`,
)
process.exitCode = missed.length === 0 ? 0 : 1
