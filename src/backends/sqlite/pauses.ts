import type { At } from '../../core/time.js'
import { homesOf } from './homes.js'
import type { Statements } from './sql.js'
import { BLOCKED, RETRYING, SCHEDULED, WAITING } from './states.js'
import { moveTags } from './tags.js'
import type { Told } from './told.js'

/** How many items one step frees: bounded, so that no transaction waits for a big pause to end. */
const STEP = 5_000

/** The key of a hold by a pause. */
export const holdKey = (what: 'queue' | 'type', name: string): string => `${what}:${name}`

/** What is paused now. A paused queue is not asked at all; of a paused type, items are set aside as a claim meets them. */
export interface Paused {
  readonly queues: ReadonlySet<string>
  readonly types: ReadonlySet<string>
}

const NOTHING: Paused = { queues: new Set(), types: new Set() }

/** Reads what is paused, and goes on freeing what a resumed pause still holds. */
export function pausedNow(sql: Statements, now: At, told: Told): Paused {
  const rows = sql.pauses.all()
  if (rows.length === 0) return NOTHING
  const queues = new Set<string>()
  const types = new Set<string>()
  for (const [what, name, isOver] of rows) {
    if (isOver === 1) freePaused(sql, what, name, now, told)
    else if (what === 'queue') queues.add(name)
    else types.add(name)
  }
  return { queues, types }
}

/** A pause that is over gives back what it has set aside, in steps; with the last one it is forgotten. */
export function freePaused(sql: Statements, what: 'queue' | 'type', name: string, now: At, told: Told): void {
  const key = holdKey(what, name)
  for (const [queue] of sql.pausedQueues.all(key)) told.nudge(queue, now)
  // What no claim has met meanwhile stands where it was; some of it may have fallen due.
  if (what === 'queue') told.nudge(name, now)
  else
    for (const state of [WAITING, SCHEDULED, RETRYING, BLOCKED])
      for (const [queue, type] of homesOf(sql, state)) if (type === name) told.nudge(queue, now)
  const paused = sql.paused.all(key, STEP)
  sql.freePaused.run(key, STEP)
  moveTags(sql, paused, WAITING)
  if (paused.length < STEP) sql.deletePause.run(what, name)
}
