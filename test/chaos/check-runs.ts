import { grouped } from './grouped.js'
import type { Timeline } from './timeline.js'
import type { Locked, Ran } from './truth.js'

/** One run of one item, in machine time. */
export interface Run {
  readonly id: string
  readonly fence: number
  readonly attempt: number | undefined
  readonly by: string
  readonly from: number
  /** When its handler had ended, or its process. */
  readonly to: number
  readonly hasEnded: boolean
}

export interface RunVerdict {
  readonly runs: number
  /** Two runs of one item under one fence: two holders of one lease. */
  readonly sharedLeases: readonly string[]
  /** Two live runs of one item, though nothing had been done to either process. */
  readonly overlaps: readonly string[]
  /** A run that had ended and was made again, though nothing had been done to its process. */
  readonly baseless: readonly string[]
  /** Runs of one attempt beyond the first: something was done to their processes. */
  readonly repeatedRuns: number
  /** Live runs of one item at the same time, for a reason. */
  readonly excusedOverlaps: number
}

/** The runs of each item, in the order in which they began. */
export function runsOf(ran: readonly Ran[], timeline: Timeline): Map<string, readonly Run[]> {
  const ends = new Map(ran.flatMap((line) => (line.is === 'end' ? [[keyOf(line), line.at]] : [])))
  const runs = ran.flatMap((line): Run[] => {
    if (line.is !== 'start') return []
    const { id, fence, attempt, by, at: from } = line
    const end = ends.get(keyOf(line))
    const to = end ?? timeline.diedAt(by) ?? Number.POSITIVE_INFINITY
    return [{ id, fence, attempt, by, from, to, hasEnded: end !== undefined }]
  })
  return grouped(
    runs.sort((a, b) => a.from - b.from),
    ({ id }) => id,
  )
}

export function checkRuns(
  runs: ReadonlyMap<string, readonly Run[]>,
  locked: readonly Locked[],
  timeline: Timeline,
  leaseMs: number,
): RunVerdict {
  const locks = grouped(
    locked.flatMap(({ ids, from, to }) => ids.map((id) => ({ id, from, to }))),
    ({ id }) => id,
  )
  const sharedLeases: string[] = []
  const overlaps: string[] = []
  const baseless: string[] = []
  let [count, repeatedRuns, excusedOverlaps] = [0, 0, 0]
  /** Why the first may have lost its lease before the second began, or the second may have begun without one. */
  const isExcused = (first: Run, second: Run) =>
    timeline.isDisturbed(first.by, first.from - leaseMs, second.from) ||
    timeline.isDisturbed(second.by, second.from - leaseMs, second.from) ||
    (locks.get(first.id) ?? []).some(({ from, to }) => from <= second.from && to >= first.from - leaseMs)

  for (const list of runs.values()) {
    for (const [i, second] of list.entries()) {
      count += 1
      const earlier = list.slice(0, i)
      if (earlier.some(({ fence }) => fence === second.fence))
        sharedLeases.push(`${second.id} under fence ${second.fence}`)
      const first = earlier.findLast(({ to }) => to > second.from)
      if (first !== undefined) {
        if (isExcused(first, second)) excusedOverlaps += 1
        else overlaps.push(pairText(first, second))
      }
      const same = earlier.findLast(({ attempt }) => attempt === second.attempt)
      if (same === undefined) continue
      repeatedRuns += 1
      if (same.hasEnded && same.to <= second.from && !isExcused(same, second)) baseless.push(pairText(same, second))
    }
  }
  return { runs: count, sharedLeases, overlaps, baseless, repeatedRuns, excusedOverlaps }
}

function keyOf({ by, id, fence }: Ran): string {
  return `${by} ${fence} ${id}`
}

function pairText(first: Run, second: Run): string {
  const span = ({ by, fence, from, to }: Run) => `${by} fence ${fence} ${from.toFixed(0)}–${to.toFixed(0)}`
  return `${first.id} (${span(first)}, then ${span(second)})`
}
