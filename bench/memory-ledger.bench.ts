// What share of a plain JavaScript queue does the memory ledger reach when it drains, with everything on: leases, fenced
// atomic settlement, attempt and outcome recorded, group accounting? And does an item cost the same with many waiting as
// with few, and whatever the order in which they settle?
//
//   node --import tsx bench/memory-ledger.bench.ts [--quick]
import { cpus } from 'node:os'
import { memoryBackend } from '../src/backends/memory/index.js'
import { newId } from '../src/core/ids.js'
import { ownedBy } from '../src/ports/find-ledger.js'
import type { ClaimedItem, Envelope } from '../src/ports/item.js'
import type { Ledger } from '../src/ports/ledger.js'
import type { Settlement } from '../src/ports/settlement.js'

const BATCH = 500
const MANY = 100_000
const FEW = 1_000
const ROUNDS = process.argv.includes('--quick') ? 3 : 7
const PAYLOAD = JSON.stringify('x'.repeat(98))
const DAY = 86_400_000

let handled = 0
async function handler(input: string): Promise<string> {
  handled += input.length
  return '1'
}

/** Microseconds of CPU, garbage collection included: on a shared machine wall time tells mostly of the neighbours. */
const cpu = (): number => {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** The least a queue can do: a list, and the same handler. */
async function plainQueue(count: number): Promise<{ drain: number }> {
  const queue: { readonly id: string; readonly input: string }[] = []
  for (let n = 0; n < count; n += 1) queue.push({ id: newId(), input: PAYLOAD })
  const done = new Map<string, string>()
  const began = cpu()
  for (let n = 0; n < count; n += 1) {
    const { id, input } = queue[n]!
    done.set(id, await handler(input))
  }
  return { drain: cpu() - began }
}

function enqueued(now: number): Settlement {
  const id = newId()
  const groupId = newId()
  const item: Envelope = {
    v: 1,
    id,
    type: 'bench',
    groupId,
    input: PAYLOAD,
    queueAt: now,
    startAt: now,
    attempt: 1,
    priority: 0,
  }
  return {
    guard: { by: 'absent', id },
    effects: [
      { do: 'joinGroup', groupId, count: 1 },
      { do: 'enqueue', item, queue: 'default', delayMs: 0 },
    ],
  }
}

function finished({ lease, envelope: { id, groupId } }: ClaimedItem, result: string, now: number): Settlement {
  return {
    guard: { by: 'lease', lease },
    effects: [
      { do: 'recordAttempt', id, was: { attempt: 1, startedAt: now, endedAt: now, worker: 'w' } },
      { do: 'setGroupValue', groupId, value: result, final: false },
      { do: 'complete', id, ending: 'completed', keepMs: DAY, result },
      { do: 'leaveGroup', groupId, count: 1 },
    ],
  }
}

interface Cost {
  /** The commits that enqueue. */
  readonly enqueue: number
  /** Claims, handlers, settlements and their commits. */
  readonly drain: number
}

async function ledgerDrain(count: number, isReversed = false): Promise<Cost> {
  const owned = ownedBy(memoryBackend(), [])
  if (!('open' in owned)) throw new Error('the memory backend has lost its ledger')
  const ledger = owned.open({ prefix: 'work:' })
  let enqueue = 0
  for (let n = 0; n < count; n += BATCH) {
    const now = Date.now()
    const batch = Array.from({ length: Math.min(BATCH, count - n) }, () => enqueued(now))
    const began = cpu()
    await ledger.commit(batch)
    enqueue += cpu() - began
  }
  const began = cpu()
  if (isReversed) await drainReversed(ledger, count)
  else await drain(ledger)
  return { enqueue, drain: cpu() - began }
}

const ask = (max: number) => ({ queues: [{ queue: 'default', max }], leaseMs: 30_000, worker: 'w' })

async function settle(ledger: Ledger, items: readonly ClaimedItem[]): Promise<void> {
  const now = Date.now()
  const batch: Settlement[] = []
  for (const item of items) batch.push(finished(item, await handler(item.envelope.input), now))
  await ledger.commit(batch)
}

async function drain(ledger: Ledger): Promise<void> {
  for (;;) {
    const { items } = await ledger.claim(ask(BATCH))
    if (items.length === 0) return
    await settle(ledger, items)
  }
}

async function drainReversed(ledger: Ledger, count: number): Promise<void> {
  const { items } = await ledger.claim(ask(count))
  const reversed = items.toReversed()
  for (let n = 0; n < count; n += BATCH) await settle(ledger, reversed.slice(n, n + BATCH))
}

/** Runs it until `MANY` items have gone through; microseconds per item. */
async function perItem<C extends object>(run: (count: number) => Promise<C>, count: number): Promise<C> {
  const sum: Record<string, number> = {}
  for (let done = 0; done < MANY; done += count) {
    for (const [name, cost] of Object.entries(await run(count))) sum[name] = (sum[name] ?? 0) + (cost as number) / MANY
  }
  return sum as C
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!
const show = (values: readonly number[]) =>
  `${median(values).toFixed(2)} (${Math.min(...values).toFixed(2)}–${Math.max(...values).toFixed(2)})`

console.log(
  `${cpus()[0]?.model ?? 'unknown cpu'} × ${cpus().length}, node ${process.version}, batches of ${BATCH}, ${ROUNDS} rounds`,
)
await perItem(ledgerDrain, FEW)
await perItem(plainQueue, MANY)
const rounds: { plain: number; few: Cost; many: Cost; reversed: Cost }[] = []
for (let round = 0; round < ROUNDS; round += 1) {
  rounds.push({
    plain: (await perItem(plainQueue, MANY)).drain,
    few: await perItem(ledgerDrain, FEW),
    many: await perItem(ledgerDrain, MANY),
    reversed: await perItem((count) => ledgerDrain(count, true), MANY),
  })
}
console.log(`plain queue, drain            ${show(rounds.map(({ plain }) => plain))} µs of CPU per item`)
for (const which of ['few', 'many', 'reversed'] as const) {
  console.log(
    `${which.padEnd(9)} enqueue ${show(rounds.map((round) => round[which].enqueue))}   drain ${show(rounds.map((round) => round[which].drain))}`,
  )
}
const share = rounds.map(({ plain, many }) => plain / many.drain)
const cost = ({ enqueue, drain: drained }: Cost) => enqueue + drained
const growth = rounds.map(({ few, many }) => cost(many) / cost(few))
const backwards = rounds.map(({ few, reversed }) => cost(reversed) / cost(few))
console.log(`share of a plain queue        ${show(share)}   floor 0.10, goal 0.25`)
console.log(`100 000 waiting / 1 000       ${show(growth)}   at most 2`)
console.log(`settled in reverse / 1 000    ${show(backwards)}   at most 2`)
if (handled === 0) throw new Error('nothing was handled')
if (median(share) < 0.1 || median(growth) > 2 || median(backwards) > 2) process.exitCode = 1
