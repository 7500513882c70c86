import { readEndless } from '../../core/codec/infinite-json.js'
import type { FailureClass } from '../../core/failure/failure.js'
import { LISTED_ERROR_CHARACTERS, listedError } from '../../core/text/error-text.js'
import type { Inspect, TypeCounts } from '../../ports/inspect.js'
import type { Attempt } from '../../ports/item.js'
import type { WorkerRecord } from '../../ports/ledger.js'
import { MAX_SCANNED, WORKER_FORGOTTEN_MS } from '../../ports/limits.js'
import type { ItemState } from '../../ports/words.js'
import { afterPrefix } from '../shared/after-prefix.js'
import { readNumberCursor } from '../shared/cursor.js'
import type { Connection } from './connection.js'
import { count, ITEM_STATE, list } from './query.js'
import { ENDED_SUMMARY, ITEM_SUMMARY, summaryFrom, type ViewRow, withNow, withOneNow } from './read.js'
import { isUnstorable, wholeMs } from './storable.js'

/** What people can query. */
export function inspectSchema(connection: Connection): Inspect {
  return {
    list: (query) => list(connection, query),
    summaries: async (ids) => {
      const { driver, sql } = await connection.ready()
      const wanted = ids.filter((id) => !isUnstorable(id))
      const rows = await driver.query<[string]>(sql('summaries', SUMMARIES, [wanted, connection.now()]))
      const found = new Map(
        rows.map(([json]) => {
          const row = JSON.parse(json) as ViewRow
          return [row.id, summaryFrom(row)]
        }),
      )
      return ids.map((id) => found.get(id))
    },
    idsStartingWith: async (prefix, limit) => {
      if (isUnstorable(prefix)) return { ids: [], isComplete: true }
      const { driver, sql } = await connection.ready()
      const rows = await driver.query<[string]>(
        sql('ids_between', IDS_BETWEEN, [prefix, afterPrefix(prefix), limit, connection.now()]),
      )
      return { ids: rows.map(([id]) => id), isComplete: true }
    },
    openCounts: async (ids) => {
      const { driver, sql } = await connection.ready()
      const wanted = ids.filter((id) => !isUnstorable(id))
      const rows = await driver.query<[string, number]>(sql('open_counts', OPEN_COUNTS, [wanted, connection.now()]))
      const found = new Map(rows)
      return ids.map((id) => found.get(id))
    },
    count: (query) => count(connection, query),
    throughput: async (windowMs) => {
      const { driver, sql } = await connection.ready()
      const rows = await driver.query<ThroughputRow>(
        sql('throughput', THROUGHPUT, [connection.now(), wholeMs(windowMs)]),
      )
      return rows.map(([queue, type, completed, failed, oldestDueAt]) => ({
        queue,
        type,
        completed: Number(completed),
        failed: Number(failed),
        ...(oldestDueAt === null ? {} : { oldestDueAt: Number(oldestDueAt) }),
      }))
    },
    failures: async (limit) => {
      const { driver, sql } = await connection.ready()
      const most = Math.max(0, Math.floor(limit))
      const rows = await driver.query<FailureRow>(sql('failures', FAILURES, [connection.now(), most]))
      return rows.map(([fingerprint, of, type, dead, retrying, firstAt, lastAt, id, error]) => ({
        fingerprint,
        ...(of === null ? {} : { class: of }),
        type,
        dead: Number(dead),
        retrying: Number(retrying),
        firstAt: Number(firstAt),
        lastAt: Number(lastAt),
        sample: { id: id ?? '', error: listedError(error ?? '') },
      }))
    },
    stuckItems: async ({ limit: asked, cursor }) => {
      const { driver, sql } = await connection.ready()
      const limit = Math.max(1, Math.floor(asked))
      const rows = await driver.query<[string]>(
        sql('stuck_items', STUCK_ITEMS, [connection.now(), readNumberCursor('stuckItems', cursor), limit + 1]),
      )
      const found = rows.slice(0, limit).map(([json]) => JSON.parse(json) as ViewRow)
      const items = found.map(summaryFrom)
      return rows.length > limit ? { items, next: String(found.at(-1)?.seq) } : { items }
    },
    attempts: async (id) => {
      if (isUnstorable(id)) return []
      const { driver, sql } = await connection.ready()
      const rows = await driver.query<[string | null]>(sql('attempts', ATTEMPTS, [id, connection.now()]))
      const attempts = rows[0]?.[0]
      return typeof attempts === 'string' ? (JSON.parse(`[${attempts}]`) as Attempt[]) : []
    },
    counts: async () => {
      const { driver, sql } = await connection.ready()
      return counted(await driver.query<CountRow>(sql('counts', COUNTS, [connection.now()])))
    },
    schedules: async () => {
      const { driver, sql } = await connection.ready()
      const rows = await driver.query<[string, string, string]>(sql('schedules', SCHEDULES))
      return rows.map(([name, spec, nextAt]) => ({ name, spec, nextAt: Number(nextAt) }))
    },
    input: async (id) => {
      if (isUnstorable(id)) return undefined
      const { driver, sql } = await connection.ready()
      const [row] = await driver.query<[string | null]>(sql('input', INPUT, [id, connection.now()]))
      return row?.[0] ?? undefined
    },
    gate: async (key) => {
      if (isUnstorable(key)) return undefined
      const { driver, sql } = await connection.ready()
      const rows = await driver.query<[string, number, 'done' | 'success', string[]]>(sql('gate', GATE, [key]))
      const [row] = rows
      if (row === undefined) return undefined
      const [heldId, need, of, waiting] = row
      return { key, heldId, need, of, waiting }
    },
    log: async (limit) => {
      const { driver, sql } = await connection.ready()
      const most = Math.max(0, Math.min(MAX_SCANNED, Math.floor(limit)))
      const rows = await driver.query<[string, string, string, string]>(sql('log', LOG, [most]))
      return rows.map(([at, who, why, what]) => ({ at: Number(at), who, why, what }))
    },
    workers: async () => {
      const { driver, sql } = await connection.ready()
      const rows = await driver.query<[string, string, string]>(sql('workers', WORKERS, [connection.now()]))
      return rows.map(([id, record, seenAt]) => ({
        id,
        ...readEndless<Omit<WorkerRecord, 'id'>>(record),
        seenAt: Number(seenAt),
      }))
    },
  }
}

// By the primary keys.
const ATTEMPTS = withNow(
  `select attempts from {schema}.item where id = $1
   union all select case when worker is null then attempts else {schema}.with_attempt(attempts, json_build_object(
       'attempt', attempt, 'startedAt', started_at, 'endedAt', ended_at, 'worker', worker)::text) end
     from {schema}.ended_item where id = $1 and keep_until > {now}`,
  '$2',
)
const WORKERS = withNow(
  `select id, record, seen_at from {schema}.worker where seen_at > {now} - ${WORKER_FORGOTTEN_MS} order by seen_at`,
  '$1',
)

const SCHEDULES = 'select name, spec, next_at from {schema}.schedule order by name'
const INPUT = withNow(
  `select input from {schema}.item where id = $1
   union all select input from {schema}.ended_item where id = $1 and keep_until > {now}`,
  '$2',
)
// By the primary key, and by gate_member_gate.
const GATE = `select g.held_id, g.need, g.condition, array(select m.member from {schema}.gate_member m where m.gate = g.key order by 1)
  from {schema}.gate g where g.key = $1`
const LOG = 'select at, who, why, what from {schema}.action_log order by no desc limit $1'

type ThroughputRow = [queue: string, type: string, completed: string, failed: string, oldestDueAt: string | null]
type FailureRow = [
  fingerprint: string,
  failureClass: FailureClass | null,
  type: string,
  dead: string,
  retrying: string,
  firstAt: number,
  lastAt: number,
  sampleId: string | null,
  sampleError: string | null,
]

const THROUGHPUT = 'select * from {schema}.throughput_after($1, $2)'
const FAILURES = `select fingerprint, class, type, dead, retrying, first_at, last_at, sample_id,
  left(sample_error, ${LISTED_ERROR_CHARACTERS + 1}) from {schema}.failure_groups($1, $2)`
// By the primary keys, one id after the other: a plan made while the tables are empty must not read them whole when they are large.
const SUMMARIES = withNow(
  `select x.json from unnest($1::text[]) w(id) cross join lateral (
     (select row_to_json((select v from (select ${ITEM_SUMMARY}) v))::text as json
        from {schema}.item i join {schema}.queue_type h on h.no = i.queue_type join {schema}.queue q on q.no = h.queue where i.id = w.id)
     union all
     (select row_to_json((select v from (select ${ENDED_SUMMARY}) v))::text
        from {schema}.ended_item f join {schema}.queue_type h on h.no = f.queue_type join {schema}.queue q on q.no = h.queue
       where f.id = w.id and f.keep_until > {now})
   ) x`,
  '$2',
)
// By the primary keys, which are in the order of bytes.
const IDS_BETWEEN = withNow(
  `(select id from {schema}.item where id >= $1 and id < $2 order by id limit $3)
   union all
   (select id from {schema}.ended_item where id >= $1 and id < $2 and keep_until > {now} order by id limit $3)
   order by 1 limit $3`,
  '$4',
)
const OPEN_COUNTS = 'select id, open from {schema}.read_groups($1, $2)'
// By item_stuck.
const STUCK_ITEMS = withNow(
  `select row_to_json((select v from (select ${ITEM_SUMMARY}) v))::text
     from {schema}.item i join {schema}.queue_type h on h.no = i.queue_type join {schema}.queue q on q.no = h.queue
    where ((i.state = 2 and i.lease_until is null) or (i.state = 1 and i.due_at is null and i.hold_by is null))
      and i.seq < $2 order by i.seq desc limit $3`,
  '$1',
)

type CountRow = [queue: string, type: string, word: ItemState, n: string]

// By item_list and ended_item_list, without reading rows where vacuum has been.
const COUNTS = withOneNow(
  `select q.name, h.type, c.word, sum(c.n) from (
     select i.queue_type, ${ITEM_STATE} as word, count(*) as n from {schema}.item i where i.queue_type > 0 group by 1, 2
     union all
     select f.queue_type, case f.state when 5 then 'completed' when 6 then 'dead' else 'cancelled' end, count(*)
       from {schema}.ended_item f where f.queue_type > 0 and f.keep_until > {now} group by 1, 2
   ) c join {schema}.queue_type h on h.no = c.queue_type join {schema}.queue q on q.no = h.queue group by 1, 2, 3`,
  '$1',
)

function counted(rows: readonly CountRow[]): TypeCounts[] {
  const found = new Map<string, { queue: string; type: string; counts: Partial<Record<ItemState, number>> }>()
  for (const [queue, type, word, n] of rows) {
    const key = JSON.stringify([queue, type])
    const entry = found.get(key) ?? { queue, type, counts: {} }
    entry.counts[word] = Number(n)
    found.set(key, entry)
  }
  return [...found.values()]
}
