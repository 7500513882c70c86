// What share of a plain JavaScript queue does the memory ledger reach, with everything on: leases, fenced atomic settlement,
// attempts and outcome recorded, group accounting? And does an item cost the same with many waiting as with few?
//
//   node --import tsx bench/memory-ledger.bench.ts [--quick]
import { cpus } from 'node:os'
import { memoryBackend } from '../src/backends/memory/index.js'
import { newId } from '../src/core/ids.js'
import type { Claimed, Envelope } from '../src/ports/item.js'
import { ownedBy } from '../src/ports/native.js'
import type { Effect, Settlement } from '../src/ports/settlement.js'

const BATCH = 500
const ROUNDS = process.argv.includes('--quick') ? 3 : 7
const PAYLOAD = JSON.stringify('x'.repeat(98))
const DAY = 86_400_000
const PREFIX = 'work:'

let handled = 0
async function handler(input: string): Promise<string> {
  handled += input.length
  return '1'
}

/** The least a queue can do: an array, and the same handler. */
async function plainQueue(count: number): Promise<void> {
  const queue: { readonly id: string; readonly input: string }[] = []
  for (let n = 0; n < count; n += 1) queue.push({ id: newId(), input: PAYLOAD })
  for (let n = 0; n < count; n += 1) await handler(queue[n]!.input)
}

function openLedger() {
  const owned = ownedBy(memoryBackend(), [])
  if (!('open' in owned)) throw new Error('the memory backend has lost its ledger')
  return owned.open({ prefix: PREFIX })
}

function enqueued(now: number): Settlement {
  const id = newId()
  const item: Envelope = {
    v: 1,
    id,
    type: 'bench',
    groupId: newId(),
    input: PAYLOAD,
    queueAt: now,
    startAt: now,
    attempt: 1,
    priority: 0,
  }
  return {
    guard: { by: 'absent', id },
    effects: [
      { do: 'openGroup', groupId: item.groupId, by: 1 },
      { do: 'push', item, queue: 'default', delayMs: 0 },
    ],
  }
}

function finished({ lease, envelope }: Claimed, result: string, now: number): Settlement {
  const { id, groupId } = envelope
  const effects: Effect[] = [
    { do: 'recordAttempt', id, was: { attempt: 1, startedAt: now, endedAt: now, worker: 'w' } },
    { do: 'contribute', groupId, value: result, final: false },
    { do: 'finish', id, ending: 'done', keepMs: DAY, result },
    { do: 'closeGroup', groupId, by: 1 },
  ]
  return { guard: { by: 'lease', lease }, effects }
}

/** Enqueues, claims, runs and settles. `reversed`: all are claimed first, and settled from the last to the first. */
async function ledger(count: number, reversed = false): Promise<void> {
  const book = openLedger()
  for (let n = 0; n < count; n += BATCH) {
    const now = Date.now()
    await book.commit(Array.from({ length: Math.min(BATCH, count - n) }, () => enqueued(now)))
  }
  const claim = { from: [{ queue: 'default', max: BATCH }], leaseMs: 30_000, worker: 'w', startNow: BATCH }
  const settle = async (items: readonly Claimed[]) => {
    const now = Date.now()
    const batch: Settlement[] = []
    for (const item of items) batch.push(finished(item, await handler(item.envelope.input), now))
    await book.commit(batch)
  }
  const all: Claimed[] = []
  for (;;) {
    const { items } = await book.claim(claim)
    if (items.length === 0) break
    if (reversed) all.push(...items)
    else await settle(items)
  }
  all.reverse()
  for (let n = 0; n < all.length; n += BATCH) await settle(all.slice(n, n + BATCH))
}

/** Microseconds per item; a small count is repeated until it fills the time of a large one. */
async function perItem(run: (count: number) => Promise<void>, count: number, total: number): Promise<number> {
  const times = Math.max(1, Math.round(total / count))
  ;(globalThis as { gc?: () => void }).gc?.()
  const began = performance.now()
  for (let time = 0; time < times; time += 1) await run(count)
  return ((performance.now() - began) * 1000) / (times * count)
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!
const range = (values: readonly number[]) => `${Math.min(...values).toFixed(2)}–${Math.max(...values).toFixed(2)}`

const TOTAL = 100_000
console.log(
  `${cpus()[0]?.model ?? 'unknown cpu'} × ${cpus().length}, node ${process.version}, batches of ${BATCH}, ${ROUNDS} rounds`,
)
await perItem(ledger, 1_000, TOTAL)
await perItem(plainQueue, 1_000, TOTAL)

const rows = { plain: [], few: [], many: [], reversed: [] } as Record<string, number[]>
for (let round = 0; round < ROUNDS; round += 1) {
  rows['plain']!.push(await perItem(plainQueue, TOTAL, TOTAL))
  rows['few']!.push(await perItem(ledger, 1_000, TOTAL))
  rows['many']!.push(await perItem(ledger, TOTAL, TOTAL))
  rows['reversed']!.push(await perItem((count) => ledger(count, true), TOTAL, TOTAL))
}
const paired = (a: string, b: string) => rows[a]!.map((value, round) => value / rows[b]![round]!)
for (const [name, values] of Object.entries(rows)) {
  console.log(`${name.padEnd(9)} ${median(values).toFixed(2)} µs per item (${range(values)})`)
}
const share = paired('plain', 'many')
const growth = paired('many', 'few')
const backwards = paired('reversed', 'few')
console.log(`share of a plain queue        ${median(share).toFixed(2)} (${range(share)})   floor 0.10, goal 0.25`)
console.log(`100 000 waiting / 1 000       ${median(growth).toFixed(2)} (${range(growth)})   at most 2`)
console.log(`settled in reverse / 1 000    ${median(backwards).toFixed(2)} (${range(backwards)})   at most 2`)
if (handled === 0) throw new Error('nothing was handled')
if (median(share) < 0.1 || median(growth) > 2 || median(backwards) > 2) process.exitCode = 1
