import { existsSync, readFileSync } from 'node:fs'

/** What a process of the fleet wrote down. `stall`: it had stood still since that moment, longer than its leases last. */
interface Note {
  readonly at: number
  readonly pid: number
  readonly what: 'begin' | 'end' | 'stall'
  /** Of an engine, or when the stall began. */
  readonly key: string
}

/** One run of an engine, as it noted it itself. */
export interface Run {
  readonly pid: number
  readonly from: number
  to: number
  isEnded: boolean
  /** Its process stood still during it, and so has lost it. */
  isStalled: boolean
}

export function notesOf(log: string): Note[] {
  const text = existsSync(log) ? readFileSync(log, 'utf8') : ''
  // The last line may be on its way.
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const [at = '', pid = '', what = '', key = ''] = line.split(' ')
      return { at: Number(at), pid: Number(pid), what: what as Note['what'], key }
    })
}

/** Processes that have brought a few runs to their end, so that most of these are recorded as well. */
export function hasRunIn(log: string): Set<number> {
  const ends = new Map<number, number>()
  for (const { pid, what } of notesOf(log)) if (what === 'end') ends.set(pid, (ends.get(pid) ?? 0) + 1)
  return new Set([...ends].flatMap(([pid, count]) => (count >= A_FEW ? [pid] : [])))
}
const A_FEW = 4

/** Processes in the middle of a run. */
export function runningIn(log: string): Set<number> {
  const running = [...readRuns(log, new Map()).values()].flat().filter(({ isEnded }) => !isEnded)
  return new Set(running.map(({ pid }) => pid))
}

/** The runs of every engine. One without an end ended by a kill. */
export function readRuns(log: string, killedAt: ReadonlyMap<number, number>): Map<string, Run[]> {
  const runs = new Map<string, Run[]>()
  const notes = notesOf(log)
  for (const { at, pid, what, key } of notes) {
    if (what === 'stall') continue
    const list = runs.get(key) ?? []
    runs.set(key, list)
    if (what === 'begin')
      list.push({ pid, from: at, to: killedAt.get(pid) ?? Infinity, isEnded: false, isStalled: false })
    else {
      const run = list.findLast((one) => one.pid === pid && !one.isEnded)
      if (run !== undefined) Object.assign(run, { to: at, isEnded: true })
    }
  }
  for (const { at, pid, what, key } of notes) {
    if (what !== 'stall') continue
    for (const run of [...runs.values()].flat())
      if (run.pid === pid && run.from <= at && run.to >= Number(key)) run.isStalled = true
  }
  return runs
}

/**
 * Runs of one engine that overlap in time. A process that stands still for longer than its lease has lost it, and its result is not
 * listened to: that such a run meets its successor is what a lease is, and only shows how busy the machine is.
 */
export function overlaps(runs: ReadonlyMap<string, readonly Run[]>): string[] {
  return [...runs].flatMap(([key, list]) => {
    const sorted = list.filter(({ isStalled }) => !isStalled).sort((a, b) => a.from - b.from)
    return sorted.some((run, i) => i > 0 && run.from < (sorted[i - 1]?.to ?? 0))
      ? [`${key}: ${JSON.stringify(sorted)}`]
      : []
  })
}
