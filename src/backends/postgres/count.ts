import type { SqlValue } from '../../drivers/postgres/index.js'
import type { ItemQuery } from '../../ports/ledger.js'
import type { ItemStateWord } from '../../ports/words.js'
import { withOneNow } from './view.js'

/** The codes of `item.state` in which an item of that word can be. Others are told apart by due time, attempt and hold. */
export const ITEM_CODES: Readonly<Partial<Record<ItemStateWord, readonly number[]>>> = {
  waiting: [0, 1, 3],
  scheduled: [1],
  retrying: [1],
  blocked: [1, 3],
  active: [2],
}
export const FINISHED_CODES: Readonly<Partial<Record<ItemStateWord, number>>> = { completed: 5, dead: 6, cancelled: 7 }

/** The word for where a row of `item` stands. */
export const ITEM_WORD = `case when i.state = 2 then 'active'
  when i.state = 3 and exists (select from {schema}.pause p where p.key = i.hold_key and not p.is_over) then 'blocked'
  when i.state <> 1 or i.due_at <= {now} then 'waiting'
  when i.hold_by is not null then 'blocked' when i.due_at is null then 'waiting'
  when i.attempt > 1 then 'retrying' else 'scheduled' end`

/**
 * The statement that counts what a query matches, and its values. By the indexes that a list of the same query walks: item_list and
 * finished_list, or those of a tag, a group, a class or a fingerprint. No row is sent. Undefined: nothing can match.
 */
export function countStatement(
  query: Omit<ItemQuery, 'cursor' | 'limit'>,
  now: number | null,
): { readonly name: string; readonly text: string; readonly values: readonly SqlValue[] } | undefined {
  const { state, type, queue, groupId, tag, class: of, fingerprint, before, after } = query
  const values: SqlValue[] = [now]
  const given = (value: SqlValue): string => `$${values.push(value)}`
  const items = ['i.home > 0']
  const ended = ['f.home > 0', 'f.gone_at > {now}']
  const both = (text: (row: 'i' | 'f') => string): void => {
    items.push(text('i'))
    ended.push(text('f'))
  }
  if (queue !== undefined || type !== undefined) {
    const named = [
      ...(queue === undefined ? [] : [`q.name = ${given(queue)}`]),
      ...(type === undefined ? [] : [`h.type = ${given(type)}`]),
    ].join(' and ')
    const homes = `array(select h.no from {schema}.home h join {schema}.queue q on q.no = h.queue where ${named})`
    both((row) => `${row}.home = any(${homes})`)
  }
  if (groupId !== undefined) {
    const id = given(groupId)
    // A root stands without the name of its group, which is its own.
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
  if (state !== undefined) items.push(`${ITEM_WORD} = '${state}'`)
  const finished = state === undefined ? [5, 6, 7] : [FINISHED_CODES[state]].flatMap((code) => code ?? [])
  ended.push(`f.state in (${finished.join(', ')})`)
  const parts = [
    ...(codes.length > 0 && of === undefined
      ? [`(select count(*) from {schema}.item i where ${items.join(' and ')})`]
      : []),
    ...(finished.length > 0 ? [`(select count(*) from {schema}.finished f where ${ended.join(' and ')})`] : []),
  ]
  // What has not ended has no class.
  if (parts.length === 0) return undefined
  // The time is a parameter of every one of them, whether it looks at it or not.
  const text = withOneNow(`select ${parts.join(' + ')} from t`, '$1')
  // A short name: the server cuts long ones.
  const filters = [type, queue, groupId, tag, of, fingerprint, before, after].map((value) =>
    Number(value !== undefined),
  )
  return { name: `count_${state ?? 'all'}_${filters.join('')}`, text, values }
}
