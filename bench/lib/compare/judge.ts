import type { Figures, Row, Series } from './figures.js'
import { BARS, type Bar } from './floors.js'
import { median, pairedRatios, type Spread, spreadOf } from './statistics.js'

/**
 * `undecided`: in a quick run, the median missed the floor and some round did not. `not judged`: there is no floor, or a quick run is too
 * short for one.
 */
export type Verdict = 'goal' | 'floor' | 'missed' | 'undecided' | 'not judged'

export interface Judgement {
  readonly row: Row
  /** The peer with the best median. */
  readonly best: Series
  readonly ratio: Spread
  /** The same of processor time, client and server together: below 1 ours needs less. */
  readonly processorRatio?: Spread
  readonly bar?: Bar
  readonly verdict: Verdict
}

const isMoreBetter = (row: Row) => row.unit === '/s'

/** How every row stands against its floor and goal. */
export function judge({ rows, isQuick }: Pick<Figures, 'rows' | 'isQuick'>): Judgement[] {
  return rows.map((row) => {
    const best = bestPeer(row)
    const ratios = pairedRatios(row.ours.values, best.values)
    const bar = BARS[row.kind][row.measure]
    const processor = processorRatios(row.ours, best)
    return {
      row,
      best,
      ratio: spreadOf(ratios),
      ...(processor === undefined ? {} : { processorRatio: spreadOf(processor) }),
      ...(bar === undefined ? {} : { bar }),
      verdict: bar === undefined ? 'not judged' : verdictOf(row, ratios, bar, isQuick),
    }
  })
}

/**
 * A full run judges by the median of its rounds. Those of a quick run are few and short, and other work on the machine moves any one of
 * them by half: there a floor counts as missed only when no round at all reached it, so a failure means something, and a run that passes
 * says less than a full one. A 99th percentile of a second and a half is the neighbours', and is not judged.
 */
function verdictOf(row: Row, ratios: readonly number[], bar: Bar, isQuick: boolean): Verdict {
  if (isQuick && row.measure === 'p99 at 500/s') return 'not judged'
  const reaches = (ratio: number, wanted: number) => (isMoreBetter(row) ? ratio >= wanted : ratio <= wanted)
  const middle = median(ratios)
  if (reaches(middle, bar.goal)) return 'goal'
  if (reaches(middle, bar.floor)) return 'floor'
  return isQuick && ratios.some((ratio) => reaches(ratio, bar.floor)) ? 'undecided' : 'missed'
}

function bestPeer(row: Row): Series {
  const [first, ...others] = row.peers
  if (first === undefined) throw new Error(`nothing was measured beside ours on ${row.kind}`)
  const isBetter = (a: Series, b: Series) =>
    isMoreBetter(row) ? median(a.values) > median(b.values) : median(a.values) < median(b.values)
  return others.reduce((best, peer) => (isBetter(peer, best) ? peer : best), first)
}

function processorRatios(ours: Series, theirs: Series): number[] | undefined {
  const total = ({ processor }: Series) => processor?.map(({ clientUs, serverUs }) => clientUs + serverUs)
  const [mine, other] = [total(ours), total(theirs)]
  return mine === undefined || other === undefined ? undefined : pairedRatios(mine, other)
}

/** What is wrong with a run, a sentence each; none if it is as it should be. */
export function complaints(figures: Figures): string[] {
  const missed = judge(figures).filter(({ verdict }) => verdict === 'missed')
  return [...figures.faults, ...missed.map((judgement) => sentence(judgement, figures.versions))]
}

function sentence({ row, best, ratio, bar }: Judgement, versions: Figures['versions']): string {
  const { kind, measure, ours, unit } = row
  const figures = `${short(median(ours.values))} against ${short(median(best.values))} ${unit}`
  const rounds = `${short(ratio.min)} to ${short(ratio.max)} over ${ours.values.length} rounds`
  const limit = isMoreBetter(row) ? 'at least' : 'at most'
  return (
    `${NAMES[kind]}, ${MEASURES[measure]}: ours is ${short(ratio.median)} of ${best.name} ${versions[best.name] ?? ''} ` +
    `(${rounds}; ${figures}), and must be ${limit} ${bar!.floor}.`
  ).replace('  ', ' ')
}

export const MEASURES = {
  drain: 'drain',
  callers: 'add, 100 callers',
  bulk: 'add in bulk',
  'idle p50': 'idle, add to start, p50',
  'p99 at 500/s': 'p99 at 500/s',
} as const

export const NAMES = { memory: 'Memory', sqlite: 'SQLite', redis: 'Redis', postgres: 'PostgreSQL' } as const

/** A figure as people read it: 23,500, 142, 7.5, 0.93, 0.016. */
export function short(value: number): string {
  const size = Math.abs(value)
  if (size >= 100) return Math.round(value).toLocaleString('en')
  if (size >= 10) return value.toFixed(1)
  return size >= 0.1 || size === 0 ? value.toFixed(2) : value.toFixed(3)
}
