import type { At } from '../../core/time/time.js'
import type { Notifications } from '../shared/notifications.js'
import { BLOCKED, RETRYING, SCHEDULED, WAITING } from '../shared/state-codes.js'
import { makeReady } from './places.js'
import { queueTypesOf } from './queue-types.js'
import type { Statements } from './sql.js'
import { moveTags } from './tags.js'

/** How many items one step frees: bounded, so that no transaction waits for a big pause to end. */
const STEP = 5_000

/** The key of a hold by a pause. */
export const holdKey = (what: 'queue' | 'type', name: string): string => `${what}:${name}`

/** What is paused now. A claim skips a paused queue; it holds items of a paused type as it finds them. */
export interface Paused {
  readonly queues: ReadonlySet<string>
  readonly types: ReadonlySet<string>
}

const NOTHING: Paused = { queues: new Set(), types: new Set() }

/** Reads what is paused, and goes on freeing what a resumed pause still holds. */
export function pausedNow(sql: Statements, now: At, notifications: Notifications): Paused {
  const rows = sql.pauses.all()
  if (rows.length === 0) return NOTHING
  const queues = new Set<string>()
  const types = new Set<string>()
  for (const [what, name, isResumed] of rows) {
    if (isResumed === 1) freePaused(sql, what, name, now, notifications)
    else if (what === 'queue') queues.add(name)
    else types.add(name)
  }
  return { queues, types }
}

/** A resumed pause frees what it holds, in steps; with the last one its row goes. */
export function freePaused(
  sql: Statements,
  what: 'queue' | 'type',
  name: string,
  now: At,
  notifications: Notifications,
): void {
  const key = holdKey(what, name)
  for (const [queue] of sql.pausedQueues.all(key)) notifications.wake(queue, now)
  // What no claim has found is where it was; some of it may have fallen due.
  if (what === 'queue') notifications.wake(name, now)
  else
    for (const state of [WAITING, SCHEDULED, RETRYING, BLOCKED])
      for (const [queue, type] of queueTypesOf(sql, state)) if (type === name) notifications.wake(queue, now)
  const paused = sql.paused.all(key, STEP)
  makeReady(
    sql,
    paused.map(([seq]) => seq),
  )
  moveTags(sql, paused, WAITING)
  if (paused.length < STEP) sql.deletePause.run(what, name)
}
