import type { LoadReport } from './report.js'
import type { Load, LoadBackend } from './scenarios.js'

/** A timer, a request or a heartbeat waits this long at most. */
const STALL_MS = 250
/** More than this is not a window: it is the backlog. What runs in an unlimited doer does not count. */
const HELD = 5_000
/** The process handles SIGTERM within this. */
const SIGTERM_MS = 1_000
/** `stop()` lets work run for five seconds, and is over soon afterwards. */
const STOP_MS = 6_500
/** Most of the heap that may be alive beyond what was before, with what became garbage since the collection that measured it. */
const HEAP_MB = 256
/** In memory each item lives in the heap, with its record, its group and what finds it. */
const HEAP_BYTES_PER_ITEM = 2_500
/** What has ended there is kept up to a bound in bytes; a result counts for its item and for its group. */
const ENDED_MB = 256

function heapLimitMb(backend: LoadBackend, { items, inputBytes, resultBytes, heapBytes }: Load): number {
  const mb = (bytesEach: number) => (items * bytesEach) / 2 ** 20
  const kept = () => mb(inputBytes + HEAP_BYTES_PER_ITEM) + Math.min(ENDED_MB, mb(2 * resultBytes))
  // A chain has no number of items: it fills what is kept of those that have ended.
  const inMemory = () => (items === 0 ? ENDED_MB : kept())
  return HEAP_MB + mb(heapBytes) + (backend === 'memory' ? inMemory() : 0)
}

/** Every limit that a run broke, in words. */
export function brokenLimits(report: LoadReport, backend: LoadBackend, load: Load): string[] {
  const { expected, done, doneStored, dead, deadStored, errors, facts } = report
  const sum = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((a, b) => a + b, 0)
  const some = (count: number, what: string) => (count === 0 ? [] : [`${count} ${what}`])
  const over = (name: string, value: number | string | undefined, limit: number, unit: string) =>
    typeof value === 'number' && value > limit ? [`${name} ${value}${unit}, limit ${Math.round(limit)}`] : []
  // Memory lets the oldest go when what has ended takes too much room.
  const isForgotten = backend === 'memory' ? doneStored > done : doneStored !== done
  return [
    ...report.broken,
    ...some(Math.max(0, expected - done - sum(dead)), `of ${expected} items did not end`),
    ...some(Math.max(sum(dead), deadStored), `items ended dead ${JSON.stringify(dead)}`),
    ...(isForgotten ? [`${done} items were settled as success, and the backend has ${doneStored}`] : []),
    ...some(report.secondRuns, 'second runs'),
    ...some(report.lapses, 'leases lapsed'),
    ...some(report.stale, 'outcomes came too late'),
    ...some(sum(errors), `calls of onError ${JSON.stringify(errors)}`),
    ...over('the event loop stalled for', report.stallMs, STALL_MS, ' ms'),
    ...over('of the heap were alive:', report.liveMb, heapLimitMb(backend, load), ' MB'),
    ...over('items held at the same time:', report.held - (load.isUnlimited ? report.running : 0), HELD, ''),
    ...over('SIGTERM was handled after', facts['sigtermMs'], SIGTERM_MS, ' ms'),
    ...over('stop() took', facts['stopMs'], STOP_MS, ' ms'),
  ]
}
