import { FAILURE_CLASSES } from '../../core/failure/failure.js'
import { closestHint } from '../../core/text/did-you-mean.js'
import type { At } from '../../core/time/time.js'
import type { ItemSelector } from '../../ops/api.js'
import { ITEM_STATES } from '../../ports/words.js'
import { UsageError } from '../usage-error.js'
import { type Flags, readFlag, type Values } from './flags.js'

/** The filters. Each can also be typed as a search word: `state:dead type:charge`. */
export const FILTER_FLAGS = {
  state: { kind: 'word', value: '<state>', words: ITEM_STATES, about: 'in this state' },
  type: { kind: 'text', value: '<type>', about: 'of this work type' },
  queue: { kind: 'text', value: '<queue>', about: 'on this queue' },
  tag: { kind: 'text', value: '<tag>', about: 'with this tag' },
  class: { kind: 'word', value: '<class>', words: FAILURE_CLASSES, about: 'whose failure has this class' },
  fingerprint: {
    kind: 'text',
    value: '<fingerprint>',
    about: 'that failed this way; millrace failures shows the fingerprints',
  },
  group: { kind: 'text', value: '<id>', about: 'of this group' },
  before: {
    kind: 'instant',
    value: '<time>',
    about: 'that ended (or, if unfinished, were enqueued) before this time; 2h means two hours ago',
  },
  after: {
    kind: 'instant',
    value: '<time>',
    about: 'the same, at or after this time: after:02:00 before:03:00',
  },
} as const satisfies Flags

type FilterName = keyof typeof FILTER_FLAGS
const NAMES = Object.keys(FILTER_FLAGS) as FilterName[]

export type Query = Exclude<ItemSelector, string>

/** Whether a word is a filter such as `state:dead`, and not an id. */
export function isFilterWord(word: string): boolean {
  const colon = word.indexOf(':')
  return colon > 0 && (NAMES as readonly string[]).includes(word.slice(0, colon))
}

/** Combines flags and search words into one query. */
export function readFilters(flags: Values<typeof FILTER_FLAGS>, words: readonly string[], now: At): Query {
  const found: Record<string, string | number> = {}
  for (const name of NAMES) if (flags[name] !== undefined) found[name] = flags[name]
  for (const word of words) {
    const [name, value] = readWord(word, now)
    if (found[name] !== undefined && found[name] !== value)
      throw new UsageError(`${name} was given twice, with different values.`)
    found[name] = value
  }
  const { group, ...rest } = found
  // Each value was parsed by the kind of its flag.
  return { ...rest, ...(group === undefined ? {} : { groupId: String(group) }) } as Query
}

function readWord(word: string, now: At): readonly [FilterName, string | number] {
  const colon = word.indexOf(':')
  const name = word.slice(0, Math.max(0, colon))
  if (colon <= 0)
    throw new UsageError(`"${word}" is not a filter: write for example state:dead or type:charge.${wordHint(word)}`)
  const known = NAMES.find((one) => one === name)
  if (known === undefined)
    throw new UsageError(`"${name}" is not a filter. Filters are ${NAMES.join(', ')}.${closestHint(name, NAMES)}`)
  const read = readFlag(FILTER_FLAGS[known], word.slice(colon + 1), now)
  if ('problem' in read) throw new UsageError(`${known}: ${read.problem}`)
  return [known, read.value]
}

function wordHint(word: string): string {
  return (ITEM_STATES as readonly string[]).includes(word) ? ` Did you mean state:${word}?` : ''
}

/** A selector as search words, for people. */
export function selectorText(target: ItemSelector): string {
  if (typeof target === 'string') return target
  const words = Object.entries(target).flatMap(([name, value]) =>
    value === undefined
      ? []
      : [
          `${name === 'groupId' ? 'group' : name}:${name === 'before' || name === 'after' ? new Date(Number(value)).toISOString() : value}`,
        ],
  )
  return words.length === 0 ? 'all' : words.join(' ')
}
