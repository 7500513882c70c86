import { readEndless } from '../../core/endless-json.js'
import { MillraceError } from '../../core/error.js'
import { LISTED_ERROR_CHARACTERS, listedError } from '../../core/error-text.js'
import type { FailureClass } from '../../core/failure.js'
import type { At } from '../../core/time.js'
import type { SqlValue } from '../../drivers/postgres/index.js'
import type { Attempt } from '../../ports/item.js'
import type { Counted, Inspect, ItemQuery, ItemSummary, Worker } from '../../ports/ledger.js'
import { type ItemStateWord, stateWord } from '../../ports/words.js'
import type { Connection } from './connection.js'
import { countStatement, FINISHED_CODES, ITEM_CODES, ITEM_WORD } from './count.js'
import { wholeMs } from './durations.js'
import { isUnstorable } from './refusal.js'
import {
  FINISHED_SUMMARY,
  ITEM_SUMMARY,
  LISTED_OUTCOME,
  summaryFrom,
  type ViewRow,
  withNow,
  withOneNow,
} from './view.js'

/** A page looks at no more than this many rows of each list, when filters have no index of their own. */
const MAX_SCANNED = 1_000

/** What people can ask of a schema. The newest of a list come first. */
export function inspectSchema(connection: Connection): Inspect {
  return {
    list: (query) => page(connection, query),
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
    openCounts: async (ids) => {
      const { driver, sql } = await connection.ready()
      const wanted = ids.filter((id) => !isUnstorable(id))
      const rows = await driver.query<[string, number]>(sql('open_counts', OPEN_COUNTS, [wanted, connection.now()]))
      const found = new Map(rows)
      return ids.map((id) => found.get(id))
    },
    count: async (query) => {
      if (namesUnstorable(query)) return 0
      const { driver, sql } = await connection.ready()
      const counting = countStatement(query, connection.now())
      if (counting === undefined) return 0
      const { name, text, values } = counting
      const [row] = await driver.query<[string]>(sql(name, text, values))
      return Number(row?.[0] ?? 0)
    },
    flow: async (windowMs) => {
      const { driver, sql } = await connection.ready()
      const rows = await driver.query<FlowRow>(sql('flow', FLOW, [connection.now(), wholeMs(windowMs)]))
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
    strays: async (ask) => {
      const { driver, sql } = await connection.ready()
      const limit = Math.max(1, Math.floor(ask.limit))
      const rows = await driver.query<[string]>(sql('strays', STRAYS, [connection.now(), cursorOf(ask), limit + 1]))
      const found = rows.slice(0, limit).map(([json]) => JSON.parse(json) as ViewRow)
      const items = found.map(summaryFrom)
      return rows.length > limit ? { items, next: String(found.at(-1)?.seq) } : { items }
    },
    attempts: async (id) => {
      if (isUnstorable(id)) return []
      const { driver, sql } = await connection.ready()
      const rows = await driver.query<[string | null]>(sql('attempts', ATTEMPTS, [id, connection.now()]))
      const history = rows[0]?.[0]
      return typeof history === 'string' ? (JSON.parse(`[${history}]`) as Attempt[]) : []
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
      const [holds, need, of, waiting] = row
      return { key, holds, need, of, waiting }
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
      return rows.map(([id, told, seenAt]) => ({
        id,
        ...readEndless<Omit<Worker, 'id'>>(told),
        seenAt: Number(seenAt),
      }))
    },
  }
}

// By the primary keys.
const ATTEMPTS = withNow(
  `select history from {schema}.item where id = $1
   union all select history from {schema}.finished where id = $1 and gone_at > {now}`,
  '$2',
)
const WORKERS = withNow(
  'select id, told, seen_at from {schema}.worker where seen_at > {now} - 3600000 order by seen_at',
  '$1',
)

const SCHEDULES = 'select name, spec, next_at from {schema}.schedule order by name'
const INPUT = withNow(
  `select input from {schema}.item where id = $1
   union all select input from {schema}.finished where id = $1 and gone_at > {now}`,
  '$2',
)
// By the primary key, and by gate_member_gate.
const GATE = `select g.holds, g.need, g."of", array(select m.member from {schema}.gate_member m where m.gate = g.key order by 1)
  from {schema}.gate g where g.key = $1`
const LOG = 'select at, who, why, what from {schema}.audit_log order by no desc limit $1'

type FlowRow = [queue: string, type: string, completed: string, failed: string, oldestDueAt: string | null]
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

const FLOW = 'select * from {schema}.flow_after($1, $2)'
const FAILURES = `select fingerprint, class, type, dead, retrying, first_at, last_at, sample_id,
  left(sample_error, ${LISTED_ERROR_CHARACTERS + 1}) from {schema}.failure_groups($1, $2)`
// By the primary keys, one id after the other: a plan made while the tables are empty must not read them whole when they are large.
const SUMMARIES = withNow(
  `select x.json from unnest($1::text[]) w(id) cross join lateral (
     (select row_to_json((select v from (select ${ITEM_SUMMARY}) v))::text as json
        from {schema}.item i join {schema}.home h on h.no = i.home join {schema}.queue q on q.no = h.queue where i.id = w.id)
     union all
     (select row_to_json((select v from (select ${FINISHED_SUMMARY}) v))::text
        from {schema}.finished f join {schema}.home h on h.no = f.home join {schema}.queue q on q.no = h.queue
       where f.id = w.id and f.gone_at > {now})
   ) x`,
  '$2',
)
const OPEN_COUNTS = 'select id, open from {schema}.read_groups($1, $2)'
// By item_stray.
const STRAYS = withNow(
  `select row_to_json((select v from (select ${ITEM_SUMMARY}) v))::text
     from {schema}.item i join {schema}.home h on h.no = i.home join {schema}.queue q on q.no = h.queue
    where ((i.state = 2 and i.lease_until is null) or (i.state = 1 and i.due_at is null and i.hold_by is null))
      and i.seq < $2 order by i.seq desc limit $3`,
  '$1',
)

type CountRow = [queue: string, type: string, word: ItemStateWord, n: string]

// By item_list and finished_list, without reading rows where vacuum has been.
const COUNTS = withOneNow(
  `select q.name, h.type, c.word, sum(c.n) from (
     select i.home, ${ITEM_WORD} as word, count(*) as n from {schema}.item i where i.home > 0 group by 1, 2
     union all
     select f.home, case f.state when 5 then 'completed' when 6 then 'dead' else 'cancelled' end, count(*)
       from {schema}.finished f where f.home > 0 and f.gone_at > {now} group by 1, 2
   ) c join {schema}.home h on h.no = c.home join {schema}.queue q on q.no = h.queue group by 1, 2, 3`,
  '$1',
)

function counted(rows: readonly CountRow[]): Counted[] {
  const found = new Map<string, { queue: string; type: string; counts: Partial<Record<ItemStateWord, number>> }>()
  for (const [queue, type, word, n] of rows) {
    const key = JSON.stringify([queue, type])
    const entry = found.get(key) ?? { queue, type, counts: {} }
    entry.counts[word] = Number(n)
    found.set(key, entry)
  }
  return [...found.values()]
}

/** Names something that PostgreSQL cannot store: nothing matches. Sent all the same, it would be refused, or taken for another text. */
function namesUnstorable(query: Omit<ItemQuery, 'cursor' | 'limit'>): boolean {
  const { queue, type, tag, class: of, fingerprint, groupId } = query
  return [queue, type, tag, of, fingerprint, groupId].some((text) => text !== undefined && isUnstorable(text))
}

async function page(connection: Connection, query: ItemQuery): ReturnType<Inspect['list']> {
  const { driver, sql } = await connection.ready()
  const from = cursorOf(query)
  if (namesUnstorable(query)) return { items: [] }
  // Only what has ended has a class.
  if (query.class !== undefined && query.state !== undefined && FINISHED_CODES[query.state] === undefined)
    return { items: [] }
  const { name, text, isExact } = listStatement(query)
  const limit = Math.max(1, Math.floor(query.limit))
  // One more than is shown, where the index finds just what is asked for; otherwise as many as a page may look at.
  const isTimeless = query.before === undefined && query.after === undefined
  const most = isExact && isTimeless ? limit + 1 : MAX_SCANNED + limit
  const values: SqlValue[] = [
    connection.now(),
    from,
    most,
    query.queue ?? null,
    query.type ?? null,
    query.tag ?? null,
    query.class ?? null,
    query.fingerprint ?? null,
    query.groupId ?? null,
  ]
  const rows = await driver.query<[string, string | null, string, boolean]>(sql(`list_${name}`, text, values))
  const items: ItemSummary[] = []
  let last = from
  let scanned = 0
  for (const [json, fingerprint, at, isOver] of rows) {
    const row = JSON.parse(json) as ViewRow
    if (items.length >= limit || scanned >= MAX_SCANNED) return { items, next: String(last) }
    last = row.seq
    const view = summaryFrom(row)
    if (!isOver && fits(view, fingerprint, query, Number(at))) items.push(view)
    else scanned += 1
  }
  // As many rows as were asked for: there may be more behind them.
  return rows.length >= most ? { items, next: String(last) } : { items }
}

/**
 * The statement for a query: each list that can hold what it asks for, from its newest row below the cursor on. By item_grouped and
 * finished_grouped, item_tag_list, item_failed and finished_failed, or finished_class where the query names one of those; otherwise by item_list and
 * finished_list, home by home.
 */
function listStatement(query: ItemQuery): { readonly name: string; readonly text: string; readonly isExact: boolean } {
  const { state } = query
  const codes = state === undefined ? [0, 1, 2, 3] : (ITEM_CODES[state] ?? [])
  const ended = state === undefined ? [5, 6, 7] : [FINISHED_CODES[state]].flatMap((code) => code ?? [])
  const by =
    query.groupId !== undefined
      ? 'group'
      : query.tag !== undefined
        ? 'tag'
        : query.fingerprint !== undefined
          ? 'fingerprint'
          : query.class !== undefined
            ? 'class'
            : 'home'
  // Every statement has the same parameters, whichever it uses, so that their numbers mean the same everywhere.
  const given = `select $4::text as queue, $5::text as type, $6::text as tag, $7::text as class, $8::text as fingerprint,
    $9::text as group_id`
  // As an array, of which the planner takes for granted that it is short. The tables of names are never analyzed: by their pages it would
  // expect a thousand homes, and compile the statement, which takes a hundred times as long as running it.
  const homes = `(select unnest(array(select h.no from {schema}.home h join {schema}.queue q on q.no = h.queue
    where ($4::text is null or q.name = $4) and ($5::text is null or h.type = $5))) as no)`
  const items = (where: string) =>
    `(select ${ITEM_LISTED} from {schema}.item i where ${where} and i.seq < $2 order by i.seq desc limit $3)`
  const finished = (where: string) =>
    `(select ${FINISHED_LISTED} from {schema}.finished f where ${where} and f.seq < $2 and f.gone_at > {now} order by f.seq desc limit $3)`
  const parts: { readonly items: string[]; readonly finished: string[] } = { items: [], finished: [] }
  // Only the lists that can hold such a state are looked at, and only those states in them.
  const add = (whereItem: string | undefined, whereFinished: string): void => {
    if (whereItem !== undefined && codes.length > 0)
      parts.items.push(items(`${whereItem} and i.state in (${codes.join(', ')})`))
    if (ended.length > 0) parts.finished.push(finished(`${whereFinished} and f.state in (${ended.join(', ')})`))
  }
  if (by === 'tag') {
    const ids = `(select t.id, t.seq from {schema}.item_tag t where t.tag = $6 and t.seq < $2 order by t.seq desc limit $3)`
    parts.items.push(`(select ${ITEM_LISTED} from ${ids} t join {schema}.item i on i.id = t.id)`)
    // What is over is told apart afterwards: it counts as a row that was looked at, so that a page knows whether it was full.
    parts.finished.push(`(select ${FINISHED_LISTED} from ${ids} t join {schema}.finished f on f.id = t.id)`)
  } else if (by === 'fingerprint') add('i.fingerprint = $8', 'f.fingerprint = $8')
  else if (by === 'group') {
    // A root stands without the name of its group, which is its own.
    add('i.group_id = $9', 'f.group_id = $9')
    add('i.id = $9 and i.group_id is null', 'f.id = $9 and f.group_id is null')
  } else if (by === 'class') add(undefined, 'f.class = $7')
  else {
    for (const code of codes) {
      const lateral = items(`i.home = m.no and i.state = ${code}`)
      parts.items.push(`(select i.* from ${homes} m cross join lateral ${lateral} i)`)
    }
    for (const code of ended) {
      const lateral = finished(`f.home = m.no and f.state = ${code}`)
      parts.finished.push(`(select f.* from ${homes} m cross join lateral ${lateral} f)`)
    }
  }
  const joined = 'join {schema}.home h on h.no = %.home join {schema}.queue q on q.no = h.queue'
  // A tag's list has an order of its own: that of arrivals.
  const seqOf = (table: string) =>
    by === 'tag' ? `(select t.seq from {schema}.item_tag t where t.id = ${table}.id and t.tag = $6)` : `${table}.seq`
  // Of all lists together only as many rows as are wanted are made into views.
  const newest = (lists: readonly string[]): string[] =>
    lists.length === 0 || by === 'tag'
      ? [...lists]
      : [`(select u.* from (${lists.join(' union all ')}) u order by u.seq desc limit $3)`]
  const selects = [
    ...newest(parts.items).map(
      (part) =>
        `select row_to_json((select v from (select ${ITEM_SUMMARY.replace('i.seq', `${seqOf('i')} as seq`)}) v))::text as json, i.fingerprint, ${seqOf('i')} as seq, false as is_over
           from ${part} i ${joined.replace('%', 'i')}`,
    ),
    ...newest(parts.finished).map(
      (part) =>
        `select row_to_json((select v from (select ${FINISHED_SUMMARY.replace('f.seq', `${seqOf('f')} as seq`)}) v))::text as json, f.fingerprint, ${seqOf('f')} as seq, f.gone_at <= {now} as is_over
           from ${part} f ${joined.replace('%', 'f')}`,
    ),
  ]
  const text = withNow(
    `with given as (${given}) select x.json, x.fingerprint, {now}, x.is_over from (${selects.join(' union all ')}) x
      order by x.seq desc limit $3`,
    '$1',
  )
  const { queue, type, tag, class: of, fingerprint, groupId } = query
  const isHome = queue !== undefined || type !== undefined
  const kinds = [isHome, tag !== undefined, of !== undefined, fingerprint !== undefined, groupId !== undefined]
  // Waiting, scheduled, retrying and blocked are told apart by more than their code.
  const isWord = state === undefined || state === 'active' || ended.length > 0
  const isExact = by !== 'tag' && isWord && kinds.filter(Boolean).length <= 1
  return { name: `${by}_${state ?? 'all'}`, text, isExact }
}

/** What a list reads of a row: never its input, result or progress, nor its history. */
const ITEM_LISTED = `i.id, i.seq, i.home, i.group_id, i.priority, i.attempt, i.state, i.queue_at, i.start_at, i.run_at, i.rest,
  i.lapses, i.crashes, i.due_at, i.hold_by, i.hold_key, i.worker, i.lease_until, i.cancelled, i.running, i.fingerprint`
const FINISHED_LISTED = `f.id, f.seq, f.home, f.group_id, f.priority, f.attempt, f.state, f.queue_at, f.start_at, f.run_at, f.rest,
  f.lapses, f.crashes, f.end_at, f.gone_at, f.ending, f.class, ${LISTED_OUTCOME} as outcome, f.fingerprint`

function fits(view: ItemSummary, fingerprint: string | null, query: ItemQuery, now: At): boolean {
  const { envelope } = view
  return (
    (query.state === undefined || stateWord({ ...view, attempt: envelope.attempt }, now) === query.state) &&
    (query.type === undefined || envelope.type === query.type) &&
    (query.queue === undefined || view.queue === query.queue) &&
    (query.groupId === undefined || envelope.groupId === query.groupId) &&
    (query.tag === undefined || envelope.tags?.includes(query.tag) === true) &&
    (query.class === undefined || view.class === query.class) &&
    (query.fingerprint === undefined || fingerprint === query.fingerprint) &&
    (query.before === undefined || (view.endAt ?? envelope.queueAt) < query.before) &&
    (query.after === undefined || (view.endAt ?? envelope.queueAt) >= query.after)
  )
}

function cursorOf({ cursor }: { readonly cursor?: string }): number {
  if (cursor === undefined) return Number.MAX_SAFE_INTEGER
  const at = Number(cursor)
  if (cursor.trim() !== '' && Number.isSafeInteger(at)) return at
  throw new MillraceError(
    'BAD_CURSOR',
    `list({ cursor }): "${cursor}" is not a cursor. Give back \`next\` of the last page.`,
  )
}
