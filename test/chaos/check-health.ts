import { grouped } from './grouped.js'
import type { Timeline } from './timeline.js'
import type { Truth, Vitals } from './truth.js'

export interface Health {
  readonly peakHeapBytes: number
  /** Processes whose heap grew beyond the bound. */
  readonly overHeap: readonly string[]
  /** Calls of `onError` in all processes together, by code. */
  readonly errors: Readonly<Record<string, number>>
  /** Processes that called `onError` more often than what was done to them explains. */
  readonly floods: readonly string[]
  /** The longest stand-still of an event loop, by whatever cause. */
  readonly longestStallMs: number
  /** Stand-stills in which the process was busy itself. */
  readonly hogs: readonly string[]
}

/** A process of the fleet that behaves stays far below. */
const MAX_HEAP_BYTES = 160 * 1_048_576
/** One fault may be met by a claim, by heartbeats, and by commits that are tried again; not by every item. */
const MAX_ERRORS_PER_FAULT = 20
/** So long a process may compute without giving its event loop a turn, on a machine that has other things to do, too. */
const MAX_HOG_MS = 1_000

export function checkHealth({ vitals, stalls, locked, transactions }: Truth, timeline: Timeline): Health {
  const byProcess = grouped(vitals, ({ by }) => by)
  const last = [...byProcess.values()].map((samples) => samples.at(-1)!)
  const errors: Record<string, number> = {}
  for (const one of last) for (const [code, n] of Object.entries(one.errors)) errors[code] = (errors[code] ?? 0) + n
  const peaks = [...byProcess].map(([by, samples]) => ({ by, bytes: Math.max(...samples.map((one) => one.heapBytes)) }))
  const floods = [...byProcess].flatMap(([by, samples]) => {
    const [from, to] = [samples[0]!.at, samples.at(-1)!.at]
    const locks = [...locked, ...transactions].filter((one) => one.from <= to && one.to >= from).length
    const faults = 1 + timeline.faultsOf(by, from, to) + locks
    const calls = totalOf(samples.at(-1)!)
    return calls > faults * MAX_ERRORS_PER_FAULT ? [`${by}: ${calls} calls, ${faults} faults`] : []
  })
  return {
    peakHeapBytes: Math.max(0, ...peaks.map(({ bytes }) => bytes)),
    overHeap: peaks.flatMap(({ by, bytes }) => (bytes > MAX_HEAP_BYTES ? [`${by}: ${mb(bytes)} MB`] : [])),
    errors,
    floods,
    longestStallMs: Math.round(Math.max(0, ...stalls.map(({ from, to }) => to - from))),
    hogs: stalls.flatMap(({ by, cpuMs }) => (cpuMs > MAX_HOG_MS ? [`${by}: ${cpuMs.toFixed(0)} ms`] : [])),
  }
}

function totalOf({ errors }: Vitals): number {
  return Object.values(errors).reduce((sum, n) => sum + n, 0)
}

export function mb(bytes: number): number {
  return Math.round(bytes / 1_048_576)
}
