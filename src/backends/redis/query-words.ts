import { MillraceError } from '../../core/error.js'
import { isWellFormed } from '../../core/well-formed.js'
import type { ItemQuery } from '../../ports/ledger.js'
import type { ItemStateWord } from '../../ports/words.js'

/** The letters that records.lua files items under. */
export const LETTERS: Readonly<Record<ItemStateWord, string>> = {
  waiting: 'w',
  scheduled: 's',
  retrying: 'r',
  blocked: 'b',
  active: 'a',
  completed: 'c',
  dead: 'd',
  cancelled: 'k',
}

/** `<score>:<id>` of the last entry that a page looked at. */
const CURSOR = /^\d+:/

/** A query as query.lua reads it. `scan`: how many entries may be looked at beyond those that fit. */
export function queryWords(query: ItemQuery, scan: number): (string | number)[] {
  const { cursor = '', limit } = query
  if (cursor !== '' && !CURSOR.test(cursor))
    throw new MillraceError(
      'BAD_CURSOR',
      `list({ cursor }): "${cursor}" is not a cursor. Give back \`next\` of the last page.`,
    )
  const filter = (value: string | number | undefined) => (value === undefined ? '' : `=${value}`)
  return [
    ...[Math.max(1, Math.floor(limit)), scan, cursor, lettersOf(query), traitOf(query)],
    ...[query.queue, query.type, query.groupId, query.tag, query.class, query.fingerprint].map(filter),
    ...[query.before, query.after].map(filter),
  ]
}

export function lettersOf({ state }: Pick<ItemQuery, 'state'>): string {
  return state === undefined ? Object.values(LETTERS).join('') : LETTERS[state]
}

/** The index that narrows most: there are more items of a class than of a fingerprint. */
export function traitOf({ fingerprint, tag, class: kind }: Omit<ItemQuery, 'limit'>): string {
  if (fingerprint !== undefined) return `f:${fingerprint}`
  if (tag !== undefined) return `t:${tag}`
  return kind === undefined ? '' : `c:${kind}`
}

/** Names a text with half of a surrogate pair: no item has one, and on its way to the server it would become another text. */
export function namesIllFormed(query: Omit<ItemQuery, 'limit'>): boolean {
  const { queue, type, groupId, tag, class: kind, fingerprint } = query
  return [queue, type, groupId, tag, kind, fingerprint].some((text) => text !== undefined && !isWellFormed(text))
}
