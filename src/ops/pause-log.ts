import type { At } from '../core/time.js'
import type { Inspect, LogEntry } from '../ports/ledger.js'

/** A pause, as the log remembers it. */
export interface PauseAct {
  readonly at: At
  readonly who: string
  readonly why: string
}

/** As far back as an explanation looks for a pause. The log of every backend is about as long. */
const LOOKED_AT = 1_000

export async function readLog(inspect: Inspect | undefined): Promise<readonly LogEntry[]> {
  return (await inspect?.log(LOOKED_AT)) ?? []
}

/** The act that began the pause which holds now. Undefined: it was longer ago than the log reaches, or nobody logged it. */
export function pauseOf(log: readonly LogEntry[], what: 'queue' | 'type', name: string): PauseAct | undefined {
  let found: LogEntry | undefined
  // The newest first: what comes before the last resume is another pause, and a pause of what is paused changes nothing.
  for (const entry of log) {
    if (entry.what === `resume ${what} ${name}`) break
    if (entry.what === `pause ${what} ${name}`) found = entry
  }
  return found
}
