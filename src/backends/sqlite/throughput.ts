import type { Mutable } from '../../core/mutable.js'
import type { At } from '../../core/time/time.js'
import type { Throughput } from '../../ports/inspect.js'
import { COMPLETED, WAITING } from '../shared/state-codes.js'
import { queueTypesOf } from './queue-types.js'
import type { Statements } from './sql.js'

/** What ended after an instant and since when the oldest waits, for each queue and type. */
export function throughputOf(sql: Statements, after: At, now: At): Throughput[] {
  const found = new Map<string, Mutable<Throughput>>()
  const throughputIn = (queue: string, type: string): Mutable<Throughput> => {
    const key = JSON.stringify([queue, type])
    const throughput = found.get(key) ?? { queue, type, completed: 0, failed: 0 }
    found.set(key, throughput)
    return throughput
  }
  const add = (rows: ReturnType<typeof sql.ended.all>, sign: 1 | -1): void => {
    for (const [queue, type, state, count] of rows)
      throughputIn(queue, type)[state === COMPLETED ? 'completed' : 'failed'] += sign * count
  }
  add(sql.ended.all(after), 1)
  add(sql.goneEnded.all(now, after), -1)
  const paused = new Set(
    sql.pauses.all().flatMap(([what, name, isResumed]) => (isResumed === 1 ? [] : [`${what} ${name}`])),
  )
  for (const [queue, type] of queueTypesOf(sql, WAITING)) {
    if (paused.has(`queue ${queue}`) || paused.has(`type ${type}`)) continue
    const oldestDueAt = oldestIn(sql, queue, type)
    if (oldestDueAt !== undefined) throughputIn(queue, type).oldestDueAt = oldestDueAt
  }
  return [...found.values()].filter(
    ({ completed, failed, oldestDueAt }) => completed + failed > 0 || oldestDueAt !== undefined,
  )
}

/** The first of each priority, one after the other. */
function oldestIn(sql: Statements, queue: string, type: string): At | undefined {
  let oldest: At | undefined
  for (let found = sql.oldestDue.get(queue, type, Number.NEGATIVE_INFINITY); found !== undefined; ) {
    const [rank, dueAt] = found
    if (oldest === undefined || dueAt < oldest) oldest = dueAt
    found = sql.oldestDue.get(queue, type, rank)
  }
  return oldest
}
