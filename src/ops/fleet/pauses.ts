import type { At } from '../../core/time/time.js'
import type { Inspect, LogEntry } from '../../ports/inspect.js'

/** A pause, as the log has it. */
export interface PauseEntry {
  readonly at: At
  readonly who: string
  readonly why: string
}

/** How many log lines are searched for a pause. The log of every backend is about as long. */
const MOST_READ = 1_000

export async function readLog(inspect: Inspect | undefined): Promise<readonly LogEntry[]> {
  return (await inspect?.log(MOST_READ)) ?? []
}

/** The log entry of the current pause. Undefined: it is older than the log, or was not logged. */
export function pauseOf(log: readonly LogEntry[], what: 'queue' | 'type', name: string): PauseEntry | undefined {
  let found: LogEntry | undefined
  // Newest first: entries before the last resume belong to another pause, and a repeated pause changes nothing.
  for (const entry of log) {
    if (entry.what === `resume ${what} ${name}`) break
    if (entry.what === `pause ${what} ${name}`) found = entry
  }
  return found
}
