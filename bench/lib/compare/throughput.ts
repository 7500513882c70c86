import type { PlaceKind } from '../contenders/contender.js'
import type { Ground } from '../ground.js'
import { type Calibration, ContenderProcess, type Cost } from '../remote-contender.js'
import type { Row, Series } from './figures.js'
import { isHeapGrowing } from './heap.js'
import { NAMES } from './judge.js'
import { BYTES, CALLERS, OURS, PEERS, type Plan } from './plan.js'

/** What the rounds on one ground gave. */
export interface Outcome {
  readonly rows: readonly Row[]
  readonly calibrations: readonly Calibration[]
  readonly faults: readonly string[]
}

type Throughput = 'callers' | 'bulk' | 'drain'
const MEASURES: readonly Throughput[] = ['drain', 'callers', 'bulk']

interface Turn extends Readonly<Record<Throughput, Cost>> {
  readonly calibration: Calibration
  readonly heapBytes: number
  readonly faults: readonly string[]
}

/** Rounds of adding and draining, in which the contenders take turns, each in a process that lives through all of them. */
export async function compareThroughput(ground: Ground, plan: Plan, say: (text: string) => void): Promise<Outcome> {
  const { kind } = ground
  const names = [OURS, ...PEERS[kind]]
  const processes = new Map(names.map((name) => [name, new ContenderProcess(name)]))
  const turns = new Map<string, Turn[]>(names.map((name) => [name, []]))
  const faults: string[] = []
  try {
    for (let round = 0; round <= plan.rounds; round += 1) {
      const isWarmUp = round === 0
      // The other way round each time, so that none always comes after the same one.
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        const turn = await takeTurn(processes.get(name)!, ground, plan, isWarmUp ? 0.25 : 1)
        if (!isWarmUp) turns.get(name)!.push(turn)
        faults.push(...turn.faults)
        const rates = MEASURES.map(
          (measure) => `${measure} ${Math.round(perSecond(turn[measure])).toLocaleString('en')}/s`,
        )
        say(`${NAMES[kind]}, ${isWarmUp ? 'warm-up' : `round ${round}`}, ${name}: ${rates.join(', ')}`)
      }
    }
  } finally {
    for (const one of processes.values()) one.end()
  }
  const series = (name: string, measure: Throughput): Series => {
    const costs = turns.get(name)!.map((turn) => turn[measure])
    return { name, values: costs.map(perSecond), processor: costs.map(processorTime) }
  }
  return {
    rows: MEASURES.map((measure) => ({
      kind,
      measure,
      unit: '/s',
      ours: series(OURS, measure),
      peers: PEERS[kind].map((name) => series(name, measure)),
    })),
    calibrations: [...turns.values()].flat().map(({ calibration }) => calibration),
    faults: [...faults, ...heapFaults(kind, turns.get(OURS)!, plan.items[kind] + plan.added[kind])],
  }
}

async function takeTurn(contender: ContenderProcess, ground: Ground, plan: Plan, share: number): Promise<Turn> {
  const { kind, pid } = ground
  const [added, items] = [plan.added[kind] * share, plan.items[kind] * share]
  const all = added + items
  const calibration = await contender.ask('calibrate')
  const place = await ground.fresh()
  await contender.ask('open', { place, ...(pid === undefined ? {} : { serverPid: pid }) })
  const callers = await contender.ask('callers', { from: 0, count: added, bytes: BYTES, callers: CALLERS })
  const bulk = await contender.ask('bulk', { from: added, count: items, bytes: BYTES })
  const before = await contender.ask('counts')
  await ground.settle(place)
  const drain = await contender.ask('drain', { count: all })
  const after = await contender.ask('counts')
  const { errors, secondRuns, heapBytes } = await contender.ask('close')
  await ground.drop(place)
  const faults = [
    ...errors.map((error) => `reported an error: ${error}`),
    ...(secondRuns > 0 ? [`ran ${secondRuns} of ${all} items a second time.`] : []),
    ...(before.pending === all ? [] : [`had ${before.pending} items after ${all} were added.`]),
    ...(after.completed === undefined || after.completed === all
      ? []
      : [`kept the outcomes of ${after.completed} of ${all} items.`]),
  ]
  const of = `${NAMES[kind]}: ${contender.name}`
  return { callers, bulk, drain, calibration, heapBytes, faults: faults.map((fault) => `${of} ${fault}`) }
}

/** Of ours; that of a peer is its own affair. */
function heapFaults(kind: PlaceKind, turns: readonly Turn[], itemsPerRound: number): string[] {
  const heaps = turns.map(({ heapBytes }) => heapBytes)
  if (!isHeapGrowing(heaps, itemsPerRound)) return []
  const list = heaps.map((bytes) => (bytes / 2 ** 20).toFixed(1)).join(', ')
  return [`${NAMES[kind]}: the heap of ${OURS} grew from round to round, with everything closed: ${list} MB.`]
}

const perSecond = ({ items, ms }: Cost) => (items / ms) * 1_000

function processorTime({ items, clientMs, serverMs = 0 }: Cost) {
  return { clientUs: (clientMs * 1_000) / items, serverUs: (serverMs * 1_000) / items }
}
