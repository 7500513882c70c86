import type { At, Ms } from '../../core/time/time.js'
import type { Schedule } from './config.js'

// Which occurrence is due, missed or next. When a cron expression comes around: next-after.ts. That one process of the fleet fires it:
// ticker.ts, by a claim in schedule-store.ts.

/** An occurrence that fires this late was not missed: its process may just have restarted. */
const GRACE_MS: Ms = 90_000
/** The least that `next` functions are apart. */
const LEAST_APART_MS: Ms = 1_000

/** When an occurrence is to be fired: at its time plus its jitter, which every process computes alike. */
export function dueAt({ name, jitterMs }: Pick<Schedule, 'name' | 'jitterMs'>, at: At): At {
  return jitterMs === 0 ? at : at + Math.floor(fraction(`${name}@${at}`) * jitterMs)
}

/**
 * Whether no process was there when it was due. Measured against the largest jitter: where that is longer than the interval, an
 * occurrence is often due before the previous one has fired, and waits for its turn.
 */
export function isMissed({ jitterMs }: Pick<Schedule, 'jitterMs'>, at: At, now: At): boolean {
  return now - at > jitterMs + GRACE_MS
}

/** Whether processes with another rule are about to fire at `at`, the time that is stored. */
export function isOthersTurn(at: At, now: At): boolean {
  return at <= now && now - at <= GRACE_MS
}

/** What becomes of an occurrence that is due, and when the next one is. */
export interface Turn {
  /** The occurrence to fire; undefined: this one is skipped. */
  readonly fires: At | undefined
  readonly nextAt: At | undefined
}

/**
 * What is due now, if the stored time is `at`. The next one counts from the time of this one, never from the end of its run; where
 * occurrences were missed, from now. A `next` function always gets the current time, unless all occurrences are caught up.
 */
export async function turnAt(schedule: Schedule, at: At, now: At, wasMissed: boolean): Promise<Turn> {
  const { catchUp, isCron } = schedule
  const isOrdinary = !wasMissed || catchUp === 'all'
  const from = isOrdinary && (isCron || wasMissed) ? at : now
  const next = await schedule.next(from)
  const nextAt = next === undefined || isCron ? next : Math.max(next, from + LEAST_APART_MS)
  if (isOrdinary) return { fires: at, nextAt }
  return { fires: catchUp === 'one' ? schedule.last(at, now) : undefined, nextAt }
}

/** The ids of what is built while an occurrence is fired: the same in every process. */
export function idsOf(name: string, at: At): () => string {
  const first = `${name}@${new Date(at).toISOString()}`
  let made = 0
  return () => {
    made += 1
    return made === 1 ? first : `${first}#${made}`
  }
}

/** A number in [0, 1) that looks random and depends only on the text (FNV-1a with a final mix). */
function fraction(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return ((hash ^ (hash >>> 16)) >>> 0) / 0x1_0000_0000
}
