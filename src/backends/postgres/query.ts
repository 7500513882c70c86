import type { SqlValue } from '../../drivers/postgres/index.js'
import type { Inspect, ItemQuery, ItemSummary } from '../../ports/inspect.js'
import { MAX_SCANNED } from '../../ports/limits.js'
import { type ItemState, itemState } from '../../ports/words.js'
import { readNumberCursor } from '../shared/cursor.js'
import { matchesQuery, narrowestIndex } from '../shared/item-query.js'
import type { Connection } from './connection.js'
import { ENDED_SUMMARY, ITEM_SUMMARY, LISTED_OUTCOME, summaryFrom, type ViewRow, withNow, withOneNow } from './read.js'
import { isUnstorable } from './storable.js'

type Filters = Omit<ItemQuery, 'cursor' | 'limit'>

/** The codes of `item.state` that a state can have. Due time, attempt and hold distinguish states of one code. */
const ITEM_CODES: Readonly<Partial<Record<ItemState, readonly number[]>>> = {
  waiting: [0, 1, 3],
  scheduled: [1],
  retrying: [1],
  blocked: [1, 3],
  active: [2],
}
const ENDED_CODES: Readonly<Partial<Record<ItemState, number>>> = { completed: 5, dead: 6, cancelled: 7 }

/** The state of a row of `item`. */
export const ITEM_STATE = `case when i.state = 2 then 'active'
  when i.state = 3 and exists (select from {schema}.pause p where p.key = i.hold_key and not p.is_resumed) then 'blocked'
  when i.state <> 1 or i.due_at <= {now} then 'waiting'
  when i.hold_by is not null then 'blocked' when i.due_at is null then 'waiting'
  when i.attempt > 1 then 'retrying' else 'scheduled' end`

/** How many items match a query. */
export async function count(connection: Connection, query: Filters): Promise<number> {
  if (namesUnstorable(query)) return 0
  const { driver, sql } = await connection.ready()
  const statement = countStatement(query, connection.now())
  if (statement === undefined) return 0
  const [row] = await driver.query<[string]>(sql(statement.name, statement.text, statement.values))
  return Number(row?.[0] ?? 0)
}

/**
 * The statement that counts what a query matches, and its values. It uses the indexes that a list of the same query uses: item_list and
 * ended_item_list, or those of a tag, a group, a class or a fingerprint. No row is sent. Undefined: nothing can match.
 */
function countStatement(
  query: Filters,
  now: number | null,
): { readonly name: string; readonly text: string; readonly values: readonly SqlValue[] } | undefined {
  const { state, type, queue, groupId, tag, class: of, fingerprint, before, after } = query
  const values: SqlValue[] = [now]
  const given = (value: SqlValue): string => `$${values.push(value)}`
  const items = ['i.queue_type > 0']
  const ended = ['f.queue_type > 0', 'f.keep_until > {now}']
  const both = (text: (row: 'i' | 'f') => string): void => {
    items.push(text('i'))
    ended.push(text('f'))
  }
  if (queue !== undefined || type !== undefined) {
    const named = [
      ...(queue === undefined ? [] : [`q.name = ${given(queue)}`]),
      ...(type === undefined ? [] : [`h.type = ${given(type)}`]),
    ].join(' and ')
    const queueTypes = `array(select h.no from {schema}.queue_type h join {schema}.queue q on q.no = h.queue where ${named})`
    both((row) => `${row}.queue_type = any(${queueTypes})`)
  }
  if (groupId !== undefined) {
    const id = given(groupId)
    // The row of a root has no group_id: its group has its own id.
    both((row) => `(${row}.group_id = ${id} or ${row}.id = ${id} and ${row}.group_id is null)`)
  }
  if (tag !== undefined) {
    const name = given(tag)
    both((row) => `${row}.id in (select t.id from {schema}.item_tag t where t.tag = ${name})`)
  }
  if (fingerprint !== undefined) {
    const print = given(fingerprint)
    both((row) => `${row}.fingerprint = ${print}`)
  }
  // Only what has ended has a class.
  if (of !== undefined) ended.push(`f.class = ${given(of)}`)
  if (before !== undefined) {
    const at = given(before)
    items.push(`i.queue_at < ${at}::float8`)
    ended.push(`f.end_at < ${at}::float8`)
  }
  if (after !== undefined) {
    const at = given(after)
    items.push(`i.queue_at >= ${at}::float8`)
    ended.push(`f.end_at >= ${at}::float8`)
  }
  const codes = state === undefined ? [0, 1, 2, 3] : (ITEM_CODES[state] ?? [])
  items.push(`i.state in (${codes.join(', ')})`)
  if (state !== undefined) items.push(`${ITEM_STATE} = '${state}'`)
  const endedCodes = state === undefined ? [5, 6, 7] : [ENDED_CODES[state]].flatMap((code) => code ?? [])
  ended.push(`f.state in (${endedCodes.join(', ')})`)
  const parts = [
    ...(codes.length > 0 && of === undefined
      ? [`(select count(*) from {schema}.item i where ${items.join(' and ')})`]
      : []),
    ...(endedCodes.length > 0 ? [`(select count(*) from {schema}.ended_item f where ${ended.join(' and ')})`] : []),
  ]
  if (parts.length === 0) return undefined
  // The time is a parameter of every statement, whether it uses it or not.
  const text = withOneNow(`select ${parts.join(' + ')} from t`, '$1')
  // A short name: the server cuts long ones.
  const filters = [type, queue, groupId, tag, of, fingerprint, before, after].map((value) =>
    Number(value !== undefined),
  )
  return { name: `count_${state ?? 'all'}_${filters.join('')}`, text, values }
}

/** A text that PostgreSQL cannot store matches nothing. Sent, it would be refused, or become another text. */
function namesUnstorable(query: Filters): boolean {
  const { queue, type, tag, class: of, fingerprint, groupId } = query
  return [queue, type, tag, of, fingerprint, groupId].some((text) => text !== undefined && isUnstorable(text))
}

/** A page of a list, the newest items first. */
export async function list(connection: Connection, query: ItemQuery): ReturnType<Inspect['list']> {
  const { driver, sql } = await connection.ready()
  const from = readNumberCursor('list', query.cursor)
  if (namesUnstorable(query)) return { items: [] }
  // Only what has ended has a class.
  if (query.class !== undefined && query.state !== undefined && ENDED_CODES[query.state] === undefined)
    return { items: [] }
  const { name, text, isExact } = listStatement(query)
  const limit = Math.max(1, Math.floor(query.limit))
  // One more than is shown, where the index finds exactly the matches; otherwise as many as a page may read.
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
  for (const [json, fingerprint, at, isExpired] of rows) {
    const row = JSON.parse(json) as ViewRow
    if (items.length >= limit || scanned >= MAX_SCANNED) return { items, next: String(last) }
    last = row.seq
    const view = summaryFrom(row)
    const state = itemState({ ...view, attempt: view.envelope.attempt }, Number(at))
    if (!isExpired && matchesQuery({ ...view, queue: row.queue_name, fingerprint }, query, state)) items.push(view)
    else scanned += 1
  }
  // As many rows as requested: there may be more.
  return rows.length >= most ? { items, next: String(last) } : { items }
}

/** Filters that have their own index. */
const INDEXED = ['groupId', 'fingerprint', 'tag', 'class'] as const

/**
 * The statement for a query: each list that can hold a match, from its newest row below the cursor on. By item_grouped and
 * ended_item_grouped, item_failed and ended_item_failed, item_tag_list, or ended_item_class, where the query names one of those;
 * otherwise by item_list and ended_item_list, one queue type after the other.
 */
function listStatement(query: ItemQuery): { readonly name: string; readonly text: string; readonly isExact: boolean } {
  const { state } = query
  const codes = state === undefined ? [0, 1, 2, 3] : (ITEM_CODES[state] ?? [])
  const ended = state === undefined ? [5, 6, 7] : [ENDED_CODES[state]].flatMap((code) => code ?? [])
  const by = narrowestIndex(query, INDEXED)
  // Every statement has the same parameters, whichever it uses, so their numbers mean the same everywhere.
  const given = `select $4::text as queue, $5::text as type, $6::text as tag, $7::text as class, $8::text as fingerprint,
    $9::text as group_id`
  // An array, which the planner assumes to be short. The tables of names are never analyzed: by their pages the planner would expect
  // a thousand rows, and compile the statement, which takes a hundred times as long as running it.
  const queueTypes = `(select unnest(array(select h.no from {schema}.queue_type h join {schema}.queue q on q.no = h.queue
    where ($4::text is null or q.name = $4) and ($5::text is null or h.type = $5))) as no)`
  const items = (where: string) =>
    `(select ${ITEM_LISTED} from {schema}.item i where ${where} and i.seq < $2 order by i.seq desc limit $3)`
  const endedItems = (where: string) =>
    `(select ${ENDED_LISTED} from {schema}.ended_item f where ${where} and f.seq < $2 and f.keep_until > {now} order by f.seq desc limit $3)`
  const parts: { readonly items: string[]; readonly ended: string[] } = { items: [], ended: [] }
  // Only the lists that can hold the state are read, and only those states in them.
  const add = (whereItem: string | undefined, whereEnded: string): void => {
    if (whereItem !== undefined && codes.length > 0)
      parts.items.push(items(`${whereItem} and i.state in (${codes.join(', ')})`))
    if (ended.length > 0) parts.ended.push(endedItems(`${whereEnded} and f.state in (${ended.join(', ')})`))
  }
  if (by === 'tag') {
    const ids = `(select t.id, t.seq from {schema}.item_tag t where t.tag = $6 and t.seq < $2 order by t.seq desc limit $3)`
    parts.items.push(`(select ${ITEM_LISTED} from ${ids} t join {schema}.item i on i.id = t.id)`)
    // Expired items are dropped afterwards: they count as rows that were read, so a page knows whether it was full.
    parts.ended.push(`(select ${ENDED_LISTED} from ${ids} t join {schema}.ended_item f on f.id = t.id)`)
  } else if (by === 'fingerprint') add('i.fingerprint = $8', 'f.fingerprint = $8')
  else if (by === 'groupId') {
    // The row of a root has no group_id: its group has its own id.
    add('i.group_id = $9', 'f.group_id = $9')
    add('i.id = $9 and i.group_id is null', 'f.id = $9 and f.group_id is null')
  } else if (by === 'class') add(undefined, 'f.class = $7')
  else {
    for (const code of codes) {
      const lateral = items(`i.queue_type = m.no and i.state = ${code}`)
      parts.items.push(`(select i.* from ${queueTypes} m cross join lateral ${lateral} i)`)
    }
    for (const code of ended) {
      const lateral = endedItems(`f.queue_type = m.no and f.state = ${code}`)
      parts.ended.push(`(select f.* from ${queueTypes} m cross join lateral ${lateral} f)`)
    }
  }
  const joined = 'join {schema}.queue_type h on h.no = %.queue_type join {schema}.queue q on q.no = h.queue'
  // The list of a tag is in the order of arrivals.
  const seqOf = (table: string) =>
    by === 'tag' ? `(select t.seq from {schema}.item_tag t where t.id = ${table}.id and t.tag = $6)` : `${table}.seq`
  // Only as many rows as wanted, of all lists together, are made into views.
  const newest = (lists: readonly string[]): string[] =>
    lists.length === 0 || by === 'tag'
      ? [...lists]
      : [`(select u.* from (${lists.join(' union all ')}) u order by u.seq desc limit $3)`]
  const selects = [
    ...newest(parts.items).map(
      (part) =>
        `select row_to_json((select v from (select ${ITEM_SUMMARY.replace('i.seq', `${seqOf('i')} as seq`)}) v))::text as json, i.fingerprint, ${seqOf('i')} as seq, false as is_expired
           from ${part} i ${joined.replace('%', 'i')}`,
    ),
    ...newest(parts.ended).map(
      (part) =>
        `select row_to_json((select v from (select ${ENDED_SUMMARY.replace('f.seq', `${seqOf('f')} as seq`)}) v))::text as json, f.fingerprint, ${seqOf('f')} as seq, f.keep_until <= {now} as is_expired
           from ${part} f ${joined.replace('%', 'f')}`,
    ),
  ]
  const text = withNow(
    `with given as (${given}) select x.json, x.fingerprint, {now}, x.is_expired from (${selects.join(' union all ')}) x
      order by x.seq desc limit $3`,
    '$1',
  )
  const { queue, type, tag, class: of, fingerprint, groupId } = query
  const isQueueType = queue !== undefined || type !== undefined
  const kinds = [isQueueType, tag !== undefined, of !== undefined, fingerprint !== undefined, groupId !== undefined]
  // The codes of waiting, scheduled, retrying and blocked items overlap.
  const isOneCode = state === undefined || state === 'active' || ended.length > 0
  const isExact = by !== 'tag' && isOneCode && kinds.filter(Boolean).length <= 1
  return { name: `${by ?? 'queue_type'}_${state ?? 'all'}`, text, isExact }
}

/** What a list reads of a row: never its input, result or progress, nor its attempts. */
const ITEM_LISTED = `i.id, i.seq, i.queue_type, i.group_id, i.priority, i.attempt, i.state, i.queue_at, i.start_at, i.run_at, i.envelope_rest,
  i.lapses, i.crashes, i.due_at, i.hold_by, i.hold_key, i.worker, i.lease_until, i.cancelled, i.running, i.fingerprint`
const ENDED_LISTED = `f.id, f.seq, f.queue_type, f.group_id, f.priority, f.attempt, f.state, f.queue_at, f.start_at, f.run_at, f.envelope_rest,
  f.lapses, f.crashes, f.end_at, f.keep_until, f.ending, f.class, ${LISTED_OUTCOME} as outcome, f.fingerprint`
