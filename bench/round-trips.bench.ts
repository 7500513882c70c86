// How many calls does an item cost, on the native ledger and over plain ports? On a server each of them is a round trip.
// Counts, not times: the numbers of docs/guide/backends.md.
//
//   node --import tsx bench/round-trips.bench.ts
import { memoryBackend } from '../src/backends/memory/index.js'
import { createWork, defineWork, type WorkSystem } from '../src/index.js'
import { ownedBy, ownPorts } from '../src/ports/find-ledger.js'
import type { Ports } from '../src/ports/ports.js'
import { failOnError } from './lib/fail-on-error.js'

type Counts = Map<string, number>

/** The object with every call of its functions counted; only these members, so that what is left out is not there. */
function counted<T extends object>(name: string, of: T, members: readonly string[], counts: Counts): T {
  const wrapped: Record<string, unknown> = {}
  for (const member of members) {
    const value = of[member as keyof T]
    if (typeof value !== 'function') continue
    wrapped[member] = (...args: unknown[]) => {
      counts.set(`${name}.${member}`, (counts.get(`${name}.${member}`) ?? 0) + 1)
      return value(...args)
    }
  }
  return wrapped as T // The same members, wrapped.
}

const LEDGER = ['claim', 'extend', 'commit', 'read', 'groups', 'watch']

function native(counts: Counts): Ports {
  const { queue, pubsub, store } = memoryBackend()
  const owned = ownedBy({ queue, pubsub, store }, [])
  if (!('open' in owned)) throw new Error('the memory backend has lost its ledger')
  const ours = { ...store }
  ownPorts({
    ...owned,
    store: ours,
    open: (options) => {
      const ledger = owned.open(options)
      return { ...ledger, ...counted('ledger', ledger, LEDGER, counts) }
    },
  })
  return { queue, pubsub, store: ours }
}

function plainWithAll(counts: Counts): Ports {
  const { queue, pubsub, store } = memoryBackend()
  return {
    queue: counted('queue', queue, Object.getOwnPropertyNames(queue), counts),
    pubsub: counted('pubsub', pubsub, ['publish', 'subscribe'], counts),
    store: counted('store', store, Object.getOwnPropertyNames(store), counts),
  }
}

function plainWithLittle(counts: Counts): Ports {
  const { queue, pubsub, store } = memoryBackend()
  return {
    queue: counted('queue', queue, ['push', 'pop', 'heartbeat', 'ack', 'fail'], counts),
    pubsub: counted('pubsub', pubsub, ['publish', 'subscribe'], counts),
    store: counted('store', store, ['get', 'set', 'setIfNotExists', 'increment'], counts),
  }
}

const GROUNDS = {
  native,
  'plain, every optional member': plainWithAll,
  'plain, required members and increment': plainWithLittle,
}

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i)
const leaf = defineWork('leaf', (n: number, ctx) => ctx.result(n))
const adder = defineWork('adder', (n: number, ctx) => ctx.result(n, { append: (sum) => (sum ?? 0) + n }))
const flaky = defineWork(
  'flaky',
  (n: number, ctx) => {
    if (ctx.attempt === 1) throw new Error('once more')
    return ctx.result(n)
  },
  { retry: { attempts: 2, base: 1, jitter: 0 } },
)
const fanOut = defineWork('fan-out', (n: number, ctx) => ctx.queue(upTo(n).map((i) => leaf(i))))
const fanIn = defineWork('fan-in', (n: number, ctx) => ctx.queue(upTo(n).map((i) => adder(i))))
const types = [leaf, adder, flaky, fanOut, fanIn] as const

interface Case {
  readonly title: string
  readonly items: number
  readonly run: (work: WorkSystem<typeof types>) => Promise<unknown>
}

const CASES: readonly Case[] = [
  { title: 'a leaf, not awaited', items: 1, run: (w) => w.enqueue(leaf(1)).accepted() },
  { title: 'a leaf, its result awaited', items: 1, run: (w) => w.enqueue(leaf(1)).result() },
  { title: 'a leaf that fails once, awaited', items: 1, run: (w) => w.enqueue(flaky(1)).result() },
  {
    title: '1000 leaves together, not awaited',
    items: 1_000,
    run: (w) => w.enqueueMany(upTo(1_000).map((n) => leaf(n))),
  },
  { title: 'a fan-out to 100 leaves, awaited', items: 101, run: (w) => w.enqueue(fanOut(100)).group() },
  { title: 'the same with append', items: 101, run: (w) => w.enqueue(fanIn(100)).group() },
]

for (const [ground, portsOf] of Object.entries(GROUNDS)) {
  console.log(`\n${ground}`)
  for (const { title, items, run } of CASES) {
    const counts: Counts = new Map()
    const ports = portsOf(counts)
    let open = items
    let ended: () => void = () => undefined
    const allEnded = new Promise<void>((resolve) => {
      ended = resolve
    })
    const work = createWork({
      ...ports,
      work: types,
      onError: failOnError,
      pollInterval: 5_000, // so that idle looks are rare among the counts
      onEvent: ({ kind }) => {
        if (kind !== 'succeeded') return
        open -= 1
        if (open === 0) ended()
      },
    })
    await new Promise((resolve) => setTimeout(resolve, 20))
    counts.clear()
    await run(work)
    await allEnded
    // What follows an end: acks that share a call, notifications, and the poll of the waiter.
    await new Promise((resolve) => setTimeout(resolve, 200))
    const total = [...counts.values()].reduce((sum, n) => sum + n, 0)
    const detail = [...counts].map(([name, n]) => `${n} ${name}`).join(', ')
    console.log(`  ${title.padEnd(36)}${String(total).padStart(7)}   ${detail}`)
    await work.stop()
  }
}
