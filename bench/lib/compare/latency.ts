import type { Ground } from '../ground.js'
import { type Calibration, ContenderProcess } from '../remote-contender.js'
import type { Row } from './figures.js'
import { NAMES, short } from './judge.js'
import { BYTES, IDLE_EVERY_MS, OURS, PACE_PER_SECOND, PEERS, type Plan } from './plan.js'
import { median, percentile } from './statistics.js'
import type { Outcome } from './throughput.js'

const WARM_UP = 50

interface Turn {
  readonly idleMs: number
  readonly p99Ms: number
  readonly calibration: Calibration
  readonly faults: readonly string[]
}

/**
 * How soon an item starts, from the call that adds it in one process to the first line of the handler in another: with both at rest, and
 * at a steady rate. In turns, as above.
 */
export async function compareLatency(ground: Ground, plan: Plan, say: (text: string) => void): Promise<Outcome> {
  const { kind } = ground
  const names = [OURS, ...PEERS[kind]]
  const pairs = new Map(names.map((name) => [name, [new ContenderProcess(name), new ContenderProcess(name)] as const]))
  const turns = new Map<string, Turn[]>(names.map((name) => [name, []]))
  try {
    for (let round = 0; round < plan.latencyRounds; round += 1) {
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        const turn = await takeTurn(...pairs.get(name)!, ground, plan)
        turns.get(name)!.push(turn)
        const figures = `idle p50 ${short(turn.idleMs)} ms, p99 at ${PACE_PER_SECOND}/s ${short(turn.p99Ms)} ms`
        say(`${NAMES[kind]}, round ${round + 1}, ${name}: ${figures}`)
      }
    }
  } finally {
    for (const pair of pairs.values()) for (const one of pair) one.end()
  }
  const row = (measure: 'idle p50' | 'p99 at 500/s', figureOf: (turn: Turn) => number): Row => {
    const series = (name: string) => ({ name, values: turns.get(name)!.map(figureOf) })
    return { kind, measure, unit: 'ms', ours: series(OURS), peers: PEERS[kind].map(series) }
  }
  const all = [...turns.values()].flat()
  return {
    rows: [row('idle p50', ({ idleMs }) => idleMs), row('p99 at 500/s', ({ p99Ms }) => p99Ms)],
    calibrations: all.map(({ calibration }) => calibration),
    faults: all.flatMap(({ faults }) => faults),
  }
}

async function takeTurn(
  producer: ContenderProcess,
  worker: ContenderProcess,
  ground: Ground,
  plan: Plan,
): Promise<Turn> {
  const calibration = await producer.ask('calibrate')
  const place = await ground.fresh()
  // One after the other: both would make the tables.
  for (const one of [worker, producer]) await one.ask('open', { place, isForLatency: true })
  await worker.ask('listen')
  let from = 0
  /** Adds so many, one every so often, and gives how late each started. */
  const pace = async (count: number, everyMs: number) => {
    await producer.ask('pace', { from, count, bytes: BYTES, everyMs })
    from += count
    return worker.ask('latencies', { count: from })
  }
  await pace(WARM_UP, 1_000 / PACE_PER_SECOND)
  const idle = await pace(plan.idleSamples, IDLE_EVERY_MS)
  const paced = await pace(plan.pacedSamples, 1_000 / PACE_PER_SECOND)
  const faults: string[] = []
  for (const one of [producer, worker]) {
    const { errors, secondRuns } = await one.ask('close')
    for (const error of errors) faults.push(`${NAMES[ground.kind]}: ${one.name} reported an error: ${error}`)
    if (secondRuns > 0)
      faults.push(`${NAMES[ground.kind]}: ${one.name} ran ${secondRuns} of ${from} items a second time.`)
  }
  await ground.drop(place)
  return { idleMs: median(idle), p99Ms: percentile(paced, 0.99), calibration, faults }
}
