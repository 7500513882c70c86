import { setTimeout as sleep } from 'node:timers/promises'
import { BYTES, OURS, PEERS } from '../compare/plan.js'
import type { Place } from '../contenders/contender.js'
import type { Ground } from '../ground.js'
import { ContenderProcess, type Cost } from '../remote-contender.js'
import type { Amounts, Sizes } from './sizes.js'

/** The figures at one size. */
export interface Point {
  readonly size: number
  readonly figures: Readonly<Record<string, number>>
}

export interface Axis {
  readonly title: string
  /** What the sizes are. */
  readonly of: string
  /**
   * What is plotted: the processor time of an item, which other work on the machine moves least; or the rate, where the question is how
   * much more can be done at once.
   */
  readonly plotted: 'cost' | 'rate'
  measure(ground: Ground, sizes: Sizes & Amounts, say: (text: string) => void): Promise<readonly Point[]>
}

const WARM_UP = 5_000
/** So many are made and sent at a time by the process that fills. */
const FILL_ITEMS = 50_000
/** As much input as is made for each size of a payload. */
const PAYLOAD_BYTES = 40_000_000
const MOST_GROUP_ITEMS = 100_000
/** The memory backend refuses more bytes than its limit, and keeps no more outcomes than this. */
const MOST_IN_MEMORY = 500_000

/** What the cost of an item may grow with. */
export const AXES: Readonly<Record<keyof Sizes, Axis>> = {
  pending: {
    title: 'Items that wait',
    of: 'items that wait',
    plotted: 'cost',
    measure: eachSize('pending', async (size, { contender, open, fill, sample }) => {
      // By another process, so that the memory of this one shows what a worker keeps of what waits.
      await fill(size)
      await open()
      const bulk = await contender.ask('bulk', { from: size, count: sample, bytes: BYTES })
      const drain = await contender.ask('drain', { count: sample, isAll: false })
      const { heapBytes, peakBytes } = await contender.ask('memory')
      return {
        drain: rate(drain),
        add: rate(bulk),
        ...processor(drain),
        heapMb: mb(heapBytes),
        peakMb: mb(peakBytes),
      }
    }),
  },
  types: {
    title: 'Types of work',
    of: 'types of work, alike in number',
    plotted: 'cost',
    measure: eachSize('types', async (types, { contender, open, sample }) => {
      await open(types)
      const bulk = await contender.ask('bulk', { from: 0, count: sample, bytes: BYTES })
      const drain = await contender.ask('drain', { count: sample })
      return { drain: rate(drain), add: rate(bulk), ...processor(drain) }
    }),
  },
  groups: {
    title: 'Groups, each awaited',
    of: 'groups, with a waiting caller each, of as many items in total',
    plotted: 'cost',
    measure: eachSize('groups', async (groups, { contender, open, sample }, sizes) => {
      const items = Math.min(MOST_GROUP_ITEMS, Math.max(sample, ...sizes.groups))
      await open()
      const cost = await contender.ask('groups', { groups, itemsOfEach: Math.round(items / groups) })
      return { drain: rate(cost), ...processor(cost) }
    }),
  },
  ended: {
    title: 'Items that have ended',
    of: 'completed items, with their outcomes',
    plotted: 'cost',
    async measure(ground, sizes, say) {
      const contender = new ContenderProcess(OURS)
      await warmUp(contender, ground, Math.min(sizes.sample, WARM_UP))
      const place = await ground.fresh()
      const points: Point[] = []
      let [from, ended] = [0, 0]
      const pass = async (count: number) => {
        await contender.ask('rest')
        const bulk = await contender.ask('bulk', { from, count, bytes: BYTES })
        await ground.settle(place)
        const drain = await contender.ask('drain', { count })
        ;[from, ended] = [from + count, ended + count]
        return { bulk, drain }
      }
      try {
        await contender.ask('open', { place, ...pidOf(ground) })
        const empty = (await ground.bytes(place)) ?? 0
        for (const size of within(ground, sizes.ended)) {
          while (ended < size) await pass(Math.min(FILL_ITEMS, size - ended))
          const { bulk, drain } = await pass(sizes.sample)
          const bytes = await ground.bytes(place)
          const stored = bytes === undefined ? {} : { storedMb: mb(bytes - empty) }
          points.push({ size, figures: { drain: rate(drain), add: rate(bulk), ...processor(drain), ...stored } })
          say(`${ground.kind}, ${size} ended: ${Math.round(rate(drain))}/s`)
        }
        await closed(contender)
      } finally {
        contender.end()
      }
      await ground.drop(place)
      return points
    },
  },
  processes: {
    title: 'Worker processes',
    of: 'processes that work on one queue',
    plotted: 'rate',
    measure: eachSize('processes', async (count, { contender, open, fill, ground, place, sample }) => {
      const others = Array.from({ length: count - 1 }, () => new ContenderProcess(OURS))
      const workers = [contender, ...others]
      try {
        await fill(sample)
        await open()
        await Promise.all(others.map((worker) => worker.ask('open', { place, ...pidOf(ground) })))
        const spent = () => Promise.all(workers.map((worker) => worker.ask('spent')))
        const before = await spent()
        const began = performance.now()
        await Promise.all(workers.map((worker) => worker.ask('listen')))
        const shares = await allRun(workers, sample)
        const ms = performance.now() - began
        await allStored(contender, sample)
        const after = await spent()
        await Promise.all(others.map(closed))
        const clientMs = after.reduce((sum, one, i) => sum + one.clientMs - before[i]!.clientMs, 0)
        // The server is the same for all of them.
        const [from, to] = [before[0]!.serverMs, after[0]!.serverMs]
        const serverMs = from === undefined || to === undefined ? {} : { serverMs: to - from }
        const cost: Cost = { items: sample, ms, clientMs, ...serverMs }
        return { drain: rate(cost), ...processor(cost), leastShare: Math.min(...shares) / sample }
      } finally {
        for (const worker of others) worker.end()
      }
    }),
  },
  payload: {
    title: 'Size of the input',
    of: 'bytes of input',
    plotted: 'cost',
    measure: eachSize('payload', async (bytes, { contender, open, sample }) => {
      const count = Math.max(100, Math.min(sample, Math.floor(PAYLOAD_BYTES / bytes)))
      await open()
      const bulk = await contender.ask('bulk', { from: 0, count, bytes })
      const drain = await contender.ask('drain', { count })
      return { drain: rate(drain), add: rate(bulk), ...processor(drain), mbPerSecond: mb(rate(drain) * bytes) }
    }),
  },
}

interface AtSize {
  readonly ground: Ground
  readonly place: Place
  readonly sample: number
  /** Ours, in a process that has run before; it is closed afterwards, and must have nothing to report. */
  readonly contender: ContenderProcess
  open(types?: number): Promise<unknown>
  /** Adds so many items, by another process where there can be one. */
  fill(count: number): Promise<void>
}

/** A measure that gets a place and a process of its own for each size. */
function eachSize(
  axis: keyof Sizes,
  at: (size: number, tools: AtSize, sizes: Sizes & Amounts) => Promise<Readonly<Record<string, number>>>,
): Axis['measure'] {
  return async (ground, sizes, say) => {
    const points: Point[] = []
    for (const size of within(ground, sizes[axis])) {
      const contender = new ContenderProcess(OURS)
      try {
        await warmUp(contender, ground, Math.min(sizes.sample, WARM_UP))
        const place = await ground.fresh()
        let isOpen = false
        const open = (types = 1) => {
          isOpen = true
          return contender.ask('open', { place, types, ...pidOf(ground) })
        }
        const fill = async (count: number) => {
          if (ground.kind === 'memory') {
            await open()
            await fillBy(contender, count)
          } else {
            const other = new ContenderProcess(OURS)
            await other.ask('open', { place })
            await fillBy(other, count)
            await closed(other)
            other.end()
            await ground.settle(place)
          }
        }
        const once = async (types?: number) => (isOpen ? undefined : open(types))
        const tools = { ground, place, sample: sizes.sample, contender, open: once, fill }
        const figures = await at(size, tools, sizes)
        await closed(contender)
        await ground.drop(place)
        points.push({ size, figures })
        const shown = Object.entries(figures).map(([name, value]) => `${name} ${Number(value.toPrecision(4))}`)
        say(`${ground.kind}, ${size} ${AXES[axis].of}: ${shown.join(', ')}`)
      } finally {
        contender.end()
      }
    }
    return points
  }
}

const within = ({ kind }: Ground, sizes: readonly number[]) =>
  kind === 'memory' ? sizes.filter((size) => size <= MOST_IN_MEMORY) : sizes

/** Runs some items somewhere else first: code that is not compiled yet would count for whatever is measured first. */
async function warmUp(contender: ContenderProcess, ground: Ground, count: number): Promise<void> {
  const place = await ground.fresh()
  await contender.ask('open', { place })
  await contender.ask('bulk', { from: 0, count, bytes: BYTES })
  await contender.ask('drain', { count })
  await closed(contender)
  await ground.drop(place)
}

async function fillBy(contender: ContenderProcess, count: number): Promise<void> {
  for (let from = 0; from < count; from += FILL_ITEMS) {
    await contender.ask('bulk', { from, count: Math.min(FILL_ITEMS, count - from), bytes: BYTES })
  }
}

async function allRun(workers: readonly ContenderProcess[], count: number): Promise<readonly number[]> {
  for (let [before, still] = [0, 0]; ; ) {
    const shares = await Promise.all(workers.map((worker) => worker.ask('ran')))
    const ran = shares.reduce((sum, share) => sum + share, 0)
    if (ran === count) return shares
    if (ran > count) throw new Error(`${ran} runs of ${count} items`)
    still = ran === before ? still + 1 : 0
    before = ran
    if (still > 6_000) throw new Error(`${count - ran} of ${count} items were lost: nothing ran for half a minute`)
    await sleep(5)
  }
}

async function allStored(worker: ContenderProcess, count: number): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    const { pending, completed } = await worker.ask('counts')
    if (pending === 0 && completed === count) return
    if (tries > 600)
      throw new Error(`${completed} outcomes are stored of ${count} items, and ${pending} items are pending`)
    await sleep(50)
  }
}

/** Closes it; whatever it reported makes its figures worthless. */
export async function closed(contender: ContenderProcess): Promise<void> {
  const { errors, secondRuns } = await contender.ask('close')
  if (errors.length > 0) throw new Error(`${contender.name} reported ${errors.length} errors, the first: ${errors[0]}`)
  if (secondRuns > 0) throw new Error(`${contender.name} ran ${secondRuns} items a second time`)
}

export const pidOf = ({ pid }: Ground) => (pid === undefined ? {} : { serverPid: pid })
const rate = ({ items, ms }: Cost) => (items / ms) * 1_000
const mb = (bytes: number) => bytes / 1e6
const processor = ({ items, clientMs, serverMs }: Cost) => ({
  clientUs: (clientMs * 1_000) / items,
  ...(serverMs === undefined ? {} : { serverUs: (serverMs * 1_000) / items }),
})

export const contendersOn = (ground: Ground) => [OURS, ...PEERS[ground.kind]]
