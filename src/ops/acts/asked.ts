import {
  booleanOption,
  functionOption,
  integerOption,
  numberOption,
  OptionTypeError,
  optionsObject,
  stringOption,
} from '../../core/options.js'
import type { Ms } from '../../core/time.js'
import type { ItemQuery } from '../../ports/ledger.js'
import type { ItemStateWord } from '../../ports/words.js'
import type { By, RedriveOptions, Target, Verb, Watching } from '../api.js'
import { FILTER_NAMES, readFilters } from '../item-query.js'
import { WrongQueryError } from './errors.js'
import { VERBS } from './verbs.js'

/** What an action is to take: one item, or all that a query matches, state by state. */
export type Asked =
  | { readonly kind: 'one'; readonly id: string }
  | { readonly kind: 'all'; readonly query: BulkQuery; readonly states: readonly ItemStateWord[] }

/** A query without what the action itself decides: the state, the page. */
export type BulkQuery = Omit<ItemQuery, 'state' | 'cursor' | 'limit'>

export interface HowAsked extends Watching {
  readonly who: string
  readonly why: string
  readonly isDryRun: boolean
  readonly pageSize: number
  readonly canaryWaitMs: Ms | undefined
}

const PAGE_SIZE = 500
const CANARY_WAIT_MS = 60_000

const ACT_NAMES = ['who', 'why', 'onProgress', 'signal', 'dryRun', 'pageSize'] as const
const REDRIVE_NAMES = [...ACT_NAMES, 'canary', 'canaryWaitMs'] as const

/** Reads who acts and why. */
export function readBy(owner: string, by: By): { readonly who: string; readonly why: string } {
  const { who, why } = optionsObject(owner, by, ['who', 'why'])
  return { who: stringOption(`${owner}.who`, who), why: whyOf(owner, why) }
}

function whyOf(owner: string, why: unknown): string {
  if (why === undefined) return ''
  if (typeof why === 'string') return why
  throw new OptionTypeError(`${owner}.why`, 'a string', why)
}

export function readWatching(owner: string, given: Watching): Watching {
  const { onProgress, signal } = given
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new OptionTypeError(`${owner}.signal`, 'an AbortSignal', signal)
  }
  return {
    ...(onProgress === undefined ? {} : { onProgress: functionOption(`${owner}.onProgress`, onProgress) }),
    ...(signal === undefined ? {} : { signal }),
  }
}

/** Reads what to act on. Nonsense is refused before anything is counted or written. */
export function readTarget(verb: Verb, target: Target): Asked {
  if (typeof target === 'string') return { kind: 'one', id: stringOption(`${verb}(id)`, target) }
  if (target === undefined) throw new OptionTypeError(`${verb}(target)`, 'an id, or a query', target)
  const owner = `${verb}(query)`
  const { state, ...query } = readFilters(owner, optionsObject(owner, target, FILTER_NAMES))
  const { states, onRequest } = VERBS[verb]
  if (state !== undefined && ![...states, ...onRequest].includes(state)) throw new WrongQueryError(verb, state)
  return { kind: 'all', query, states: state === undefined ? states : [state] }
}

export function readHow(verb: Verb, options: RedriveOptions): HowAsked {
  const names = verb === 'redrive' ? REDRIVE_NAMES : ACT_NAMES
  const given = optionsObject(verb, options, names)
  const isCanary = booleanOption(`${verb}.canary`, given.canary, false)
  return {
    ...readWatching(verb, given),
    who: stringOption(`${verb}.who`, given.who),
    why: whyOf(verb, given.why),
    isDryRun: booleanOption(`${verb}.dryRun`, given.dryRun, false),
    pageSize: integerOption(`${verb}.pageSize`, given.pageSize, { min: 1, max: 10_000, default: PAGE_SIZE }),
    canaryWaitMs: isCanary
      ? numberOption(`${verb}.canaryWaitMs`, given.canaryWaitMs, { above: 0, default: CANARY_WAIT_MS })
      : undefined,
  }
}
