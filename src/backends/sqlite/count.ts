import type { At } from '../../core/time/time.js'
import type { SqliteValue } from '../../drivers/sqlite/database.js'
import type { ItemQuery } from '../../ports/inspect.js'
import { ITEM_STATES } from '../../ports/words.js'
import { ACTIVE, COMPLETED, WAITING } from '../shared/state-codes.js'
import { queueTypesOf } from './queue-types.js'
import type { Statements } from './sql.js'
import type { Tables } from './tables.js'

type Query = Omit<ItemQuery, 'cursor' | 'limit'>

/** How many items fit, counted by the index that `list` walks for the same query. What is over and not yet swept is taken off. */
export function countOf(sql: Statements, query: Query, now: At): number {
  const states = query.state === undefined ? [...ITEM_STATES.keys()] : [ITEM_STATES.indexOf(query.state)]
  const all = states.reduce((sum, state) => sum + inState(sql, query, state), 0)
  if (states.at(-1)! < COMPLETED || sql.anyGone.get(now)?.[0] !== 1) return all
  const { item, named } = sql.tables
  const { text, values } = conditions(sql.tables, query)
  const gone = `select count(*) from ${item} i indexed by ${named('item_keep_until')} where i.keep_until <= ?${text}`
  return states.reduce((sum, state) => sum - sql.count(`${gone} and i.state = ?`, [now, ...values, state]), all)
}

function inState(sql: Statements, query: Query, state: number): number {
  const { item, item_tag } = sql.tables
  const { groupId, ...ofMany } = query
  const { tag, ...others } = ofMany
  const { text, values } = conditions(sql.tables, query)
  const rest = conditions(sql.tables, others)
  const here = isIn(sql.tables, state)
  // By item_grouped, and the root by its id.
  if (groupId !== undefined) {
    const root = conditions(sql.tables, ofMany)
    return (
      sql.count(`select count(*) from ${item} i where ${here}${text}`, values) +
      sql.count(`select count(*) from ${item} i where i.id = ? and i.group_id is null and ${here}${root.text}`, [
        groupId,
        ...root.values,
      ])
    )
  }
  // By item_fingerprint or item_class.
  if (query.fingerprint !== undefined || (tag === undefined && query.class !== undefined))
    return sql.count(`select count(*) from ${item} i where ${here}${text}`, values)
  if (tag === undefined) return inQueueTypes(sql, query, state)
  // By item_tag_listed. The row of the item is only read where the query asks for more.
  const from = rest.text === '' ? `${item_tag} g` : `${item_tag} g cross join ${item} i on i.seq = g.item`
  return sql.count(`select count(*) from ${from} where g.tag = ? and g.state = ?${rest.text}`, [
    tag,
    state,
    ...rest.values,
  ])
}

/** By item_listed or by ready, one queue and type after the other; what is held is looked through. */
function inQueueTypes(sql: Statements, { queue: ofQueue, type: ofType, before, after }: Query, state: number): number {
  const { item, ready, held } = sql.tables
  const { text, values } = conditions(sql.tables, {
    ...(before === undefined ? {} : { before }),
    ...(after === undefined ? {} : { after }),
  })
  const joined = ` cross join ${item} i on i.seq = r.seq`
  const from =
    state === ACTIVE
      ? `${held} r${joined} where i.queue = ? and i.type = ?`
      : state === WAITING
        ? `${ready} r${text === '' ? '' : joined} where r.queue = ? and r.type = ?`
        : `${item} i where i.state = ${state} and i.queue = ? and i.type = ?`
  let sum = 0
  for (const [queue, type] of queueTypesOf(sql, state)) {
    if ((ofQueue !== undefined && ofQueue !== queue) || (ofType !== undefined && ofType !== type)) continue
    sum += sql.count(`select count(*) from ${from}${text}`, [queue, type, ...values])
  }
  return sum
}

/** The condition that an item `i` is in this state. */
function isIn({ held }: Tables, state: number): string {
  if (state !== WAITING && state !== ACTIVE) return `i.state = ${state}`
  return `i.state is null and ${state === WAITING ? 'not ' : ''}exists (select 1 from ${held} h where h.seq = i.seq)`
}

/** What a query asks of the row of an item, its state apart. */
function conditions(
  t: Tables,
  { type, queue, groupId, class: of, fingerprint, tag, before, after }: Query,
): { readonly text: string; readonly values: readonly SqliteValue[] } {
  const all: readonly (readonly [string, SqliteValue | undefined])[] = [
    ['i.fingerprint = ?', fingerprint],
    ['i.class = ?', of],
    ['i.group_id = ?', groupId],
    ['i.queue = ?', queue],
    ['i.type = ?', type],
    [`exists (select 1 from ${t.item_tag} h where h.item = i.seq and h.tag = ?)`, tag],
    ['coalesce(i.end_at, i.queue_at) < ?', before],
    ['coalesce(i.end_at, i.queue_at) >= ?', after],
  ]
  const given = all.flatMap(([text, value]) => (value === undefined ? [] : [{ text, value }]))
  return { text: given.map(({ text }) => ` and ${text}`).join(''), values: given.map(({ value }) => value) }
}
