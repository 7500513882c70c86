import type { At, Ms } from '../../core/time.js'
import type { Schedule } from './config.js'

/** How long a process may take to fire an occurrence before another one tries. */
export const CLAIM_MS: Ms = 90_000
/** What fires no later than this was not missed: somebody may just have been restarted. */
const GRACE_MS: Ms = 90_000
/** The least that `next` functions are apart. */
const LEAST_APART_MS: Ms = 1_000

/** When an occurrence is to be fired: at its time, or a little later, by an amount that is the same wherever it is reckoned. */
export function dueAt({ name, jitterMs }: Pick<Schedule, 'name' | 'jitterMs'>, at: At): At {
  return jitterMs === 0 ? at : at + Math.floor(fraction(`${name}@${at}`) * jitterMs)
}

/**
 * Whether nobody was there when it was due. Measured against the largest jitter: where that is longer than the interval, an
 * occurrence is often due before the one ahead of it has fired, and waits for its turn.
 */
export function isMissed({ jitterMs }: Pick<Schedule, 'jitterMs'>, at: At, now: At): boolean {
  return now - at > jitterMs + GRACE_MS
}

/** Whether those who follow another rule are about to fire at `at`, the time that they have agreed on. */
export function isOthersTurn(at: At, now: At): boolean {
  return at <= now && now - at <= GRACE_MS
}

/** What becomes of an occurrence that is due, and when the next one is. */
export interface Turn {
  /** The occurrence to fire; undefined: this one is left out. */
  readonly fires: At | undefined
  readonly nextAt: At | undefined
}

/**
 * What is due now, if the record says `at`. The next one is reckoned from the time of this one, never from the end of its run;
 * where occurrences were missed, from now. A `next` function is always asked with the time of asking, unless all are caught up.
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

/** The ids of what is built while an occurrence is fired: the same whoever fires it. */
export function idsOf(name: string, at: At): () => string {
  const first = `${name}@${new Date(at).toISOString()}`
  let made = 0
  return () => {
    made += 1
    return made === 1 ? first : `${first}#${made}`
  }
}

/** A number in [0, 1) that looks random and depends on the text alone (FNV-1a, and a last stir). */
function fraction(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return ((hash ^ (hash >>> 16)) >>> 0) / 0x1_0000_0000
}
