import { MillraceError } from '../../../core/error.js'
import { newToken } from '../../../core/ids.js'
import { numberOption } from '../../../core/options.js'
import type { At, Ms } from '../../../core/time/time.js'
import type { FullQueue } from '../../../ports/full-ports.js'
import type { DeadLetter, NewDeadLetter, PulledWork, PushOptions } from '../../../ports/ports.js'
import { checkPushedNatively } from '../../../ports/pushed-natively.js'
import { withHidden } from '../../shared/hidden.js'
import type { Notifications } from '../../shared/notifications.js'
import { PulledMessage } from '../../shared/pulled-message.js'
import { type SqliteContext, writeAndNotify } from '../context.js'
import type { Statements } from '../sql.js'
import { checkText } from '../text.js'

/** A queue of the SQLite backend. Members beyond the documented ones are not enumerable. */
export interface SqliteQueue extends FullQueue {
  /** What `deadLetter` has kept, oldest first. Not enumerable. */
  dead(): Promise<readonly Pick<DeadLetter, 'body' | 'error' | 'at'>[]>
}

const RECLAIM_STEP = 1_000

/** A queue by its name: leases, delays, dedupe keys and priorities in one table, shared by all processes on the file. */
export function queuePort(context: SqliteContext, queue: string): SqliteQueue {
  const { connection, mode, leases } = context
  const push = (sql: Statements, now: At, notifications: Notifications, body: string, options: PushOptions): void => {
    if (mode.isNative(sql)) checkPushedNatively(body)
    const dueAt = now + delayOf(options.delay)
    const { priority = 0, dedupeKey } = options
    if (sql.push.run(queue, body, priority, dueAt, dedupeKey ?? null, newToken()) > 0) notifications.wake(queue, dueAt)
  }
  const heartbeats = (sql: Statements, pulled: readonly PulledWork[], visibility: Ms): boolean[] => {
    const until = leases.now(sql) + delayOf(visibility)
    return pulled.map(({ handle }) => typeof handle === 'string' && sql.heartbeat.run(until, handle, queue) > 0)
  }

  const deadLetters = {
    async add({ id = newToken(), body, error, detail }: NewDeadLetter): Promise<void> {
      checkText('deadLetter(body)', body)
      checkText('deadLetter(error)', error)
      await connection.write((sql, now) => sql.deadLetter.run(queue, body, error, now, id, detail ?? null))
    },
    list: ({ after, limit }: { readonly after?: string; readonly limit: number }): Promise<readonly DeadLetter[]> =>
      connection.read((sql) =>
        sql.letters.all(queue, Number(after ?? 0), limit).map(([seq, id, body, error, at, detail]) => ({
          ...{ id, body, error, at, cursor: String(seq) },
          ...(detail === null ? {} : { detail }),
        })),
      ),
    count: (): Promise<number> => connection.read((sql) => sql.countLetters.get(queue)?.[0] ?? 0),
    redrive: (letters: readonly DeadLetter[]): Promise<number> =>
      writeAndNotify(context, (sql, now, notifications) => {
        if (mode.isNative(sql)) for (const { body } of letters) checkPushedNatively(body)
        let count = 0
        for (const { id, cursor, body } of letters) {
          if (sql.dropLetter.run(queue, id, Number(cursor)) === 0) continue
          sql.push.run(queue, body, 0, now, null, id)
          count += 1
        }
        if (count > 0) notifications.wake(queue, now)
        return count
      }),
    discard: (letters: readonly DeadLetter[]): Promise<number> =>
      connection.write((sql) =>
        letters.reduce((count, { id, cursor }) => count + sql.dropLetter.run(queue, id, Number(cursor)), 0),
      ),
  }
  const port = {
    async push(body: string, options: PushOptions = {}): Promise<void> {
      checkPush(context, body, options)
      await writeAndNotify(context, (sql, now, notifications) => push(sql, now, notifications, body, options))
    },
    pop: (max: number, visibility: Ms): Promise<PulledWork[]> => {
      const token = newToken()
      return connection.write((sql, now) => {
        mode.check(sql, 'plain')
        const leaseNow = leases.now(sql)
        sql.reclaimMessages.run(now, queue, leaseNow, RECLAIM_STEP)
        if (!(max > 0)) return []
        return sql.readyMessages.all(queue, now, Math.floor(max)).map(([seq, body, attempt, id, starts, note]) => {
          const handle = `${token}.${seq}`
          sql.leaseMessage.run(handle, leaseNow + delayOf(visibility), seq)
          return new PulledMessage({ body, handle, attempt }, { id, starts, note: note ?? undefined })
        })
      })
    },
    heartbeat: (pulled: PulledWork, visibility: Ms): Promise<boolean> =>
      connection.write((sql) => heartbeats(sql, [pulled], visibility)[0] === true),
    async ack({ handle }: PulledWork): Promise<void> {
      if (typeof handle === 'string') await connection.write((sql) => sql.ack.run(handle, queue))
    },
    async fail({ handle }: PulledWork, delay?: Ms, note?: string): Promise<void> {
      if (typeof handle !== 'string') return
      await writeAndNotify(context, (sql, now, notifications) => {
        const dueAt = delay !== undefined && delay > 0 ? now + delay : null
        if (sql.fail.run(dueAt, now, note ?? null, handle, queue) > 0) notifications.wake(queue, dueAt ?? now)
      })
    },
    deadLetter: (body: string, error: string): Promise<void> => deadLetters.add({ body, error }),
    size: (): Promise<number> => connection.read((sql) => sql.size.get(queue, queue, queue, queue, queue)?.[0] ?? 0),
  }
  const beyond = {
    async pushMany(bodies: readonly { readonly body: string; readonly options?: PushOptions }[]): Promise<void> {
      // All or none: a bad one in the middle must not leave half of them behind.
      for (const { body, options = {} } of bodies) checkPush(context, body, options)
      if (bodies.length === 0) return
      await writeAndNotify(context, (sql, now, notifications) => {
        for (const { body, options = {} } of bodies) push(sql, now, notifications, body, options)
      })
    },
    async ackMany(pulled: readonly PulledWork[]): Promise<void> {
      await connection.write((sql) => {
        for (const { handle } of pulled) if (typeof handle === 'string') sql.ack.run(handle, queue)
      })
    },
    heartbeatMany: (pulled: readonly PulledWork[], visibility: Ms): Promise<boolean[]> =>
      connection.write((sql) => heartbeats(sql, pulled, visibility)),
    start: (pulled: readonly PulledWork[]): Promise<boolean[]> =>
      connection.write((sql) =>
        pulled.map(({ handle }) => typeof handle === 'string' && sql.start.run(handle, queue) > 0),
      ),
    deadLetters,
    dead: (): ReturnType<SqliteQueue['dead']> =>
      connection.read((sql) => sql.deadLetters.all(queue).map(([body, error, at]) => ({ body, error, at }))),
  }
  return withHidden(port, beyond)
}

function checkPush({ maxItemBytes }: SqliteContext, body: string, { delay, dedupeKey, priority }: PushOptions): void {
  checkText('push(body)', body)
  if (dedupeKey !== undefined) checkText('push(…, { dedupeKey })', dedupeKey)
  numberOption('push(…, { delay })', delay, { default: 0 })
  numberOption('push(…, { priority })', priority, { default: 0 })
  if (body.length * 3 > maxItemBytes && Buffer.byteLength(body) > maxItemBytes) throw tooLarge(body, maxItemBytes)
}

function tooLarge(body: string, limit: number): MillraceError {
  const bytes = Buffer.byteLength(body)
  return new MillraceError(
    'TOO_LARGE',
    `push(body): the body takes ${bytes} bytes; the limit is ${limit}. Store it elsewhere and push a reference to it, or raise ` +
      'maxItemBytes.',
    { facts: { bytes, limit } },
  )
}

function delayOf(ms: Ms | undefined): Ms {
  return ms !== undefined && ms > 0 ? ms : 0
}
