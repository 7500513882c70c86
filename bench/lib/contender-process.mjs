// One contender in a process of its own: it does what the bench asks over IPC, measures it, and answers with figures. Run by plain
// Node on the build: a loader, or another contender's garbage, would be part of what is measured.
import { setTimeout as sleep } from 'node:timers/promises'
import { calibrate } from './calibrate.mjs'
import { CONTENDERS } from './contenders/index.mjs'
import { costsBetween, costsSoFar } from './costs.mjs'
import { Runs } from './runs.mjs'

/** Nothing ran for this long: the rest is lost. */
const STALL_MS = 30_000
const PAUSE_MS = 1

const [, , name = ''] = process.argv
const open = CONTENDERS[name]
if (open === undefined) throw new Error(`there is no contender "${name}"`)

/** @type {import('./contenders/contender.js').Contender | undefined} */
let contender
/** @type {number | undefined} */
let serverPid
/** @type {string[]} */
let errors = []
let runs = new Runs()

const opened = () => {
  if (contender === undefined) throw new Error('open it first')
  return contender
}

/** @type {(n: number, bytes: number, at?: number) => import('./contenders/contender.js').Payload} */
function payload(n, bytes, at) {
  const bare = at === undefined ? { n } : { n, at }
  const used = JSON.stringify({ ...bare, pad: '' }).length
  return { ...bare, pad: 'x'.repeat(Math.max(0, bytes - used)) }
}

/** @type {(from: number, count: number, bytes: number) => import('./contenders/contender.js').Payload[]} */
const payloads = (from, count, bytes) => Array.from({ length: count }, (_, i) => payload(from + i, bytes))

/**
 * @param {number} items
 * @param {() => Promise<unknown>} run
 */
async function measured(items, run) {
  globalThis.gc?.()
  const from = costsSoFar(serverPid)
  await run()
  return { items, ...costsBetween(from, costsSoFar(serverPid)) }
}

/** @type {Readonly<Record<string, (ask: any) => unknown>>} */
const ACTIONS = {
  calibrate: () => calibrate(),

  /** @param {{ place: import('./contenders/contender.js').Place, serverPid?: number, isForLatency?: boolean, types?: number }} ask */
  async open({ place, serverPid: pid, isForLatency = false, types = 1 }) {
    serverPid = pid
    runs = new Runs()
    errors = []
    const onError = (/** @type {unknown} */ error) => errors.push(String(error))
    contender = await open(place, { isForLatency, types, onError })
  },

  /** @param {{ from: number, count: number, bytes: number }} ask */
  async bulk({ from, count, bytes }) {
    const list = payloads(from, count, bytes)
    return measured(count, () => opened().addMany(list))
  },

  /** So many callers, each of which adds the next item when its last one is durable. */
  /** @param {{ from: number, count: number, bytes: number, callers: number }} ask */
  async callers({ from, count, bytes, callers }) {
    const list = payloads(from, count, bytes)
    let next = 0
    const caller = async () => {
      while (next < count) await opened().add(/** @type {any} */ (list[next++]))
    }
    return measured(count, () => Promise.all(Array.from({ length: callers }, caller)))
  },

  /**
   * Starts a worker, and measures from its first handler until the last outcome is stored. With `count` below what there is, until so
   * many handlers have run.
   */
  /** @param {{ count: number, isAll?: boolean }} ask */
  async drain({ count, isAll = true }) {
    runs.expect(count)
    globalThis.gc?.()
    /** @type {ReturnType<typeof costsSoFar> | undefined} */
    let from
    await opened().work(({ n }) => {
      from ??= costsSoFar(serverPid)
      runs.ran(n)
    })
    await runs.reached(STALL_MS)
    let to = costsSoFar(serverPid)
    while (isAll) {
      // What this call finds was so when it was made.
      to = costsSoFar(serverPid)
      if ((await opened().counts()).pending === 0) break
      if (performance.now() - runs.lastAt > STALL_MS) throw new Error('outcomes of items that ran are not stored')
      await sleep(PAUSE_MS)
    }
    return { items: runs.count, ...costsBetween(/** @type {NonNullable<typeof from>} */ (from), to) }
  },

  /** Starts a worker that notes how late each item starts. */
  async listen() {
    await opened().work(({ n, at }) => {
      if (at !== undefined) runs.startedAfter((machineUs() - at) / 1_000)
      runs.ran(n)
    })
  },

  /** Adds one item every so often, whether or not the last one has been answered. */
  /** @param {{ from: number, count: number, bytes: number, everyMs: number }} ask */
  async pace({ from, count, bytes, everyMs }) {
    /** @type {Promise<unknown>[]} */
    const added = []
    const began = performance.now()
    for (let i = 0; i < count; i += 1) {
      const wait = began + i * everyMs - performance.now()
      if (wait > 0) await sleep(wait)
      added.push(opened().add(payload(from + i, bytes, machineUs())))
    }
    await Promise.all(added)
  },

  /** How late items started since the last call. */
  /** @param {{ count: number }} ask */
  async latencies({ count }) {
    runs.expect(count)
    await runs.reached(STALL_MS)
    return runs.takeLatencies()
  },

  counts: () => opened().counts(),

  /** Groups that are awaited, each by a caller of its own. */
  /** @param {{ groups: number, itemsOfEach: number }} ask */
  async groups({ groups, itemsOfEach }) {
    const items = groups * itemsOfEach
    // Each group is opened by an item that adds the others.
    return measured(groups + items, async () => {
      const ran = await opened().groups?.(groups, itemsOfEach)
      if (ran !== items) throw new Error(`${ran} items of ${items} ran before their groups ended`)
    })
  },

  /** Processor time until now. */
  spent: () => costsSoFar(serverPid),

  /** How many items have run here. */
  ran: () => runs.count,

  /** Ends the worker and forgets what ran; the place stays open. */
  async rest() {
    await opened().rest?.()
    if (runs.secondRuns > 0) throw new Error(`${runs.secondRuns} items ran a second time`)
    runs = new Runs()
  },

  /** What this process and the server spend while there is nothing to do. */
  /** @param {{ ms: number }} ask */
  idle: ({ ms }) => measured(0, () => sleep(ms)),

  memory() {
    globalThis.gc?.()
    return { heapBytes: process.memoryUsage().heapUsed, peakBytes: process.resourceUsage().maxRSS * 1_024 }
  },

  /** Closes it, and says what went wrong while it was open. */
  async close() {
    const { secondRuns } = runs
    const found = errors
    await opened().close()
    contender = undefined
    runs = new Runs()
    // Connections and timers that end late are no growth.
    await sleep(20)
    globalThis.gc?.()
    return { errors: found, secondRuns, heapBytes: process.memoryUsage().heapUsed }
  },
}

/** Of the clock that all processes of a machine share. */
function machineUs() {
  return Number(process.hrtime.bigint()) / 1_000
}

process.on('message', async (/** @type {{ id: number, do: string, ask: any }} */ message) => {
  try {
    const action = ACTIONS[message.do]
    if (action === undefined) throw new Error(`no action is called ${message.do}`)
    process.send?.({ id: message.id, answer: (await action(message.ask)) ?? {} })
  } catch (error) {
    process.send?.({ id: message.id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  }
})
process.once('disconnect', () => process.exit())
