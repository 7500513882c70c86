import { newToken } from '../../../core/ids.js'
import type { Ms } from '../../../core/time/time.js'
import type { Row, SqlValue } from '../../../drivers/postgres/index.js'
import type { FullQueue } from '../../../ports/full-ports.js'
import type { DeadLetter, DeadLetterSink, PulledWork, PushOptions } from '../../../ports/ports.js'
import { checkPushedNatively } from '../../../ports/pushed-natively.js'
import { withHidden } from '../../shared/hidden.js'
import { PulledMessage } from '../../shared/pulled-message.js'
import type { Connection } from '../connection.js'
import type { Names } from '../names.js'
import { withNow } from '../read.js'
import { checkText, givenDuration, indexKey, storable } from '../storable.js'

/** How many lapsed leases and due bodies one pop brings back. */
const STEP = 1_000
const MOST = 10_000

/** A queue in a table: leases, delays, priorities and dedupe keys, all by the server's time. */
export type PostgresQueue = FullQueue

const PUSH = 'select {schema}.push_messages($1, $2, $3, $4)'
const POP = 'select * from {schema}.pop_messages($1, $2, $3, $4, $5, $6)'
// By message_token.
const HEARTBEAT = withNow(
  'update {schema}.message set lease_until = {now} + $3 where token = any($2) and queue = $4 returning token',
  '$1',
)
const ACK = 'delete from {schema}.message where token = any($1) and queue = $2'
const FAIL = withNow(
  `update {schema}.message set token = null, lease_until = null, due_at = case when $3 > 0 then {now} + $3 else due_at end,
     state = case when $3 > 0 then 1 else 0 end, note = coalesce($5, note) where token = $2 and queue = $4`,
  '$1',
)
// By message_token.
const START = `update {schema}.message set starts = starts + case when is_started then 0 else 1 end, is_started = true
  where token = any($1) and queue = $2 returning token`
const BURY = 'select {schema}.bury($1, $2, $3, $4, $5, $6)'
// By dead_letter_list.
const LETTERS = `select no, id, body, error, at, detail from {schema}.dead_letter where queue = $1 and no > $2 order by no limit $3`
const COUNT_LETTERS = 'select count(*) from {schema}.dead_letter where queue = $1'
const REDRIVE = 'select {schema}.redrive_letters($1, $2, $3, $4)'
const DISCARD = 'delete from {schema}.dead_letter where queue = $1 and no = any($2) returning no'
// By message_ready, message_delayed and message_leased; and by item_list, one queue_type after the other.
const SIZE = `select (select count(*) from {schema}.message where queue = $1 and state = 0)
  + (select count(*) from {schema}.message where queue = $1 and state = 1)
  + (select count(*) from {schema}.message where queue = $1 and state = 2)
  + (select count(*) from {schema}.queue_type h join {schema}.item i on i.queue_type = h.no where h.queue = $1)`

/** The plain port of a queue: a bag of closures, so that a spread of it is a queue too. */
export function queuePort(connection: Connection, names: Names, name: string, maxBytes: number): PostgresQueue {
  const run = <R extends Row>(
    statement: string,
    text: string,
    values: (queue: number) => SqlValue[],
    pushed: readonly { readonly body: string }[] = [],
  ) =>
    connection.inOrder(async () => {
      const { driver, sql } = await connection.ready()
      if (pushed.length > 0 && (await connection.isNative())) for (const { body } of pushed) checkPushedNatively(body)
      const queue = await names.queueNo(name)
      return driver.query<R>(sql(statement, text, values(queue)))
    })
  const tokensOf = (pulled: readonly PulledWork[]) =>
    pulled.map(({ handle }) => handle).filter((handle): handle is string => typeof handle === 'string')
  const pushMany: PostgresQueue['pushMany'] = async (bodies) => {
    // All or none: a bad one in the middle must not leave half of them behind.
    const rows = bodies.map(({ body, options }, n) => ({
      n,
      body: checkText('push', 'body', body, maxBytes),
      delay: givenDuration('push.delay', options?.delay),
      priority: Number.isFinite(options?.priority) ? options?.priority : 0,
      dedupe_key: options?.dedupeKey === undefined ? undefined : indexKey(storable(options.dedupeKey)),
      id: newToken(),
    }))
    if (rows.length === 0) return
    await run('push', PUSH, (queue) => [connection.now(), queue, name, JSON.stringify(rows)], rows)
  }
  const heartbeatMany: PostgresQueue['heartbeatMany'] = async (pulled, visibility) => {
    const leaseMs = givenDuration('heartbeat.visibility', visibility)
    const tokens = tokensOf(pulled)
    const rows = await run<[string]>('heartbeat', HEARTBEAT, (queue) => [connection.now(), tokens, leaseMs, queue])
    const held = new Set<unknown>(rows.map(([token]) => token))
    return pulled.map(({ handle }) => held.has(handle))
  }
  const ackMany: PostgresQueue['ackMany'] = async (pulled) => {
    const tokens = tokensOf(pulled)
    if (tokens.length === 0) return
    await run('ack', ACK, (queue) => [tokens, queue])
  }
  const start: PostgresQueue['start'] = async (pulled) => {
    const rows = await run<[string]>('start', START, (queue) => [tokensOf(pulled), queue])
    const held = new Set<unknown>(rows.map(([token]) => token))
    return pulled.map(({ handle }) => held.has(handle))
  }
  const numbersOf = (letters: readonly DeadLetter[]) => letters.map(({ cursor }) => cursor)
  const deadLetters: DeadLetterSink = {
    async add({ id = newToken(), body, error, detail }) {
      checkText('deadLetter', 'body', body, Number.POSITIVE_INFINITY)
      const words = [storable(String(error)), storable(id), detail === undefined ? null : storable(detail)]
      await run('bury', BURY, (queue) => [connection.now(), queue, body, ...words])
    },
    async list({ after, limit }) {
      const rows = await run<[string, string, string, string, string, string | null]>('letters', LETTERS, (queue) => [
        ...[queue, after ?? '0', limit],
      ])
      return rows.map(([cursor, id, body, error, at, detail]) => ({
        ...{ cursor, id, body, error, at: Number(at) },
        ...(detail === null ? {} : { detail }),
      }))
    },
    async count() {
      const [row] = await run<[string]>('count_letters', COUNT_LETTERS, (queue) => [queue])
      return Number(row?.[0] ?? 0)
    },
    async redrive(letters) {
      if (letters.length === 0) return 0
      const numbers = numbersOf(letters)
      const [row] = await run<[string]>(
        'redrive',
        REDRIVE,
        (queue) => [connection.now(), queue, name, numbers],
        letters,
      )
      return Number(row?.[0] ?? 0)
    },
    async discard(letters) {
      if (letters.length === 0) return 0
      return (await run('discard_letters', DISCARD, (queue) => [queue, numbersOf(letters)])).length
    },
  }
  const port = {
    push: (body: string, options?: PushOptions) => pushMany([{ body, ...(options === undefined ? {} : { options }) }]),
    async pop(max: number, visibility: Ms): Promise<PulledWork[]> {
      const leaseMs = givenDuration('pop.visibility', visibility)
      await connection.in('plain')
      const most = Math.max(0, Math.min(MOST, Math.floor(Number.isNaN(max) ? 0 : max)))
      const token = newToken()
      const rows = await run<[string, string, number, string, number, string | null]>('pop', POP, (queue) => [
        ...[connection.now(), queue, most, leaseMs, token, STEP],
      ])
      return rows.map(
        ([body, handle, attempt, id, starts, note]) =>
          new PulledMessage({ body, handle, attempt }, { id, starts, note: note ?? undefined }),
      )
    },
    heartbeat: async (pulled: PulledWork, visibility: Ms) => (await heartbeatMany([pulled], visibility))[0] === true,
    ack: (pulled: PulledWork) => ackMany([pulled]),
    async fail(pulled: PulledWork, delay?: Ms, note?: string): Promise<void> {
      const wait = givenDuration('fail.delay', delay)
      const { handle } = pulled
      if (typeof handle !== 'string') return
      await run('fail', FAIL, (queue) => [
        ...[connection.now(), handle, wait, queue, note === undefined ? null : storable(note)],
      ])
    },
    deadLetter: async (body: string, error: string): Promise<void> => deadLetters.add({ body, error }),
    async size(): Promise<number> {
      const [row] = await run<[string]>('size', SIZE, (queue) => [queue])
      return Number(row?.[0] ?? 0)
    },
  }
  return withHidden(port, { pushMany, ackMany, heartbeatMany, start, deadLetters })
}
