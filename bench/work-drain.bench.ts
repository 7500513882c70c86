/**
 * How fast does the work engine drain a backlog in memory, beside a plain JavaScript queue that calls the same handler?
 * And is a long backlog drained as fast as a short one?
 *
 * Both contenders run in one process, in alternating rounds; what counts is the ratio of two neighbours.
 */
import { cpus } from 'node:os'
import { createWork, defineWork } from 'millrace'
import { failOnError } from './lib/fail-on-error.js'

const ROUNDS = Number(process.env.ROUNDS ?? 5)
const ITEMS = Number(process.env.ITEMS ?? 100_000)
const LONG = Number(process.env.LONG ?? 500_000)

let ran = 0
const handle = (): void => {
  ran += 1
}

const noop = defineWork('noop', (_: { readonly n: number }, ctx) => {
  handle()
  return ctx.void()
})

/** Items per second of enqueueing and of draining `items` through the engine, with all its guarantees. */
async function engine(items: number): Promise<{ readonly enqueue: number; readonly drain: number }> {
  const w = createWork({ work: [noop], autoStart: false, keepCompleted: 1, onError: failOnError })
  const enqueueAt = performance.now()
  for (let n = 0; n < items; n += 1_000) {
    await w.enqueueMany(Array.from({ length: Math.min(1_000, items - n) }, (_, i) => noop({ n: n + i })))
  }
  const enqueueMs = performance.now() - enqueueAt
  ran = 0
  const drainAt = performance.now()
  w.start()
  while (ran < items) await new Promise((resolve) => setImmediate(resolve))
  const drainMs = performance.now() - drainAt
  await w.stop()
  return { enqueue: (items / enqueueMs) * 1_000, drain: (items / drainMs) * 1_000 }
}

/** The same handler behind an array and an await: what a call costs when nothing is kept at all. */
async function bare(items: number): Promise<number> {
  const queue = Array.from({ length: items }, (_, n) => ({ n }))
  ran = 0
  const startAt = performance.now()
  for (const _ of queue) await Promise.resolve().then(handle)
  return (items / (performance.now() - startAt)) * 1_000
}

interface Job {
  readonly id: string
  readonly input: { readonly n: number }
  status: 'pending' | 'running' | 'done' | 'failed'
  result?: unknown
}

/** A queue as one writes it by hand: jobs with ids, a few runners, the outcome kept. No lease, no retry, no group. */
async function plain(items: number): Promise<number> {
  const jobs = new Map<string, Job>()
  const waiting: Job[] = []
  for (let n = 0; n < items; n += 1) {
    const job: Job = { id: `job-${n}`, input: { n }, status: 'pending' }
    jobs.set(job.id, job)
    waiting.push(job)
  }
  let next = 0
  const runner = async () => {
    while (next < waiting.length) {
      const job = waiting[next++]!
      job.status = 'running'
      try {
        job.result = await handle()
        job.status = 'done'
      } catch (error) {
        job.result = error
        job.status = 'failed'
      }
    }
  }
  ran = 0
  const startAt = performance.now()
  await Promise.all(Array.from({ length: 32 }, runner))
  if (jobs.size !== ran) throw new Error(`${ran} of ${jobs.size} jobs ran`)
  return (items / (performance.now() - startAt)) * 1_000
}

const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[values.length >> 1]!
const range = (values: readonly number[], digits: number) =>
  `${Math.min(...values).toFixed(digits)}–${Math.max(...values).toFixed(digits)}`
const round = (value: number) => Math.round(value).toLocaleString('en')

console.log(
  `node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}, ${ROUNDS} rounds of ${round(ITEMS)} items`,
)
await engine(20_000)
await plain(20_000)
await bare(20_000)
const rows: { enqueue: number; drain: number; plain: number; bare: number }[] = []
for (let i = 0; i < ROUNDS; i += 1)
  rows.push({ ...(await engine(ITEMS)), plain: await plain(ITEMS), bare: await bare(ITEMS) })
const shares = rows.map((row) => row.drain / row.plain)
console.log(`enqueue          ${round(median(rows.map((row) => row.enqueue)))} /s`)
console.log(`drain            ${round(median(rows.map((row) => row.drain)))} /s`)
console.log(`plain queue      ${round(median(rows.map((row) => row.plain)))} /s`)
console.log(`bare await loop  ${round(median(rows.map((row) => row.bare)))} /s`)
console.log(`drain / plain    ${median(shares).toFixed(3)} (${range(shares, 3)})`)

const lengths: number[] = []
for (let i = 0; i < Math.min(3, ROUNDS); i += 1) {
  const short = await engine(100_000)
  const long = await engine(LONG)
  lengths.push(long.drain / short.drain)
}
console.log(`drain of ${round(LONG)} / of 100,000   ${median(lengths).toFixed(2)} (${range(lengths, 2)})`)
