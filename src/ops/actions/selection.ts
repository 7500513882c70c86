import {
  booleanOption,
  integerOption,
  numberOption,
  OptionTypeError,
  optionsObject,
  stringOption,
} from '../../core/options.js'
import { listener, signal } from '../../core/read-options.js'
import type { Ms } from '../../core/time/time.js'
import type { ItemQuery } from '../../ports/inspect.js'
import type { ItemState } from '../../ports/words.js'
import type { Actor, BulkVerb, ItemSelector, RedriveOptions, Watching } from '../api.js'
import { FILTER_NAMES, readFilters } from '../items/item-query.js'
import { WrongQueryError } from './errors.js'
import { VERBS } from './verbs.js'

/** What an action applies to: one item, or everything that a query matches, state by state. */
export type Selection =
  | { readonly kind: 'one'; readonly id: string }
  | { readonly kind: 'all'; readonly query: BulkQuery; readonly states: readonly ItemState[] }

/** A query without state and paging, which the action itself decides. */
export type BulkQuery = Omit<ItemQuery, 'state' | 'cursor' | 'limit'>

export interface ReadOptions extends Watching {
  readonly who: string
  readonly why: string
  readonly isDryRun: boolean
  readonly pageSize: number
  readonly canaryWaitMs: Ms | undefined
}

const PAGE_SIZE = 500
const CANARY_WAIT_MS = 60_000

const ACTION_NAMES = ['who', 'why', 'onProgress', 'signal', 'dryRun', 'pageSize'] as const
const REDRIVE_NAMES = [...ACTION_NAMES, 'canary', 'canaryWaitMs'] as const

/** Reads who acts, and why. */
export function readActor(owner: string, by: Actor): { readonly who: string; readonly why: string } {
  const { who, why } = optionsObject(owner, by, ['who', 'why'])
  return { who: stringOption(`${owner}.who`, who), why: whyOf(owner, why) }
}

function whyOf(owner: string, why: unknown): string {
  if (why === undefined) return ''
  if (typeof why === 'string') return why
  throw new OptionTypeError(`${owner}.why`, 'a string', why)
}

export function readWatching(owner: string, given: Watching): Watching {
  const onProgress = listener(`${owner}.onProgress`, given.onProgress)
  const by = signal(`${owner}.signal`, given.signal)
  return { ...(onProgress === undefined ? {} : { onProgress }), ...(by === undefined ? {} : { signal: by }) }
}

/** Reads what to act on. Bad input is rejected before anything is counted or written. */
export function readSelector(verb: BulkVerb, target: ItemSelector): Selection {
  if (typeof target === 'string') return { kind: 'one', id: stringOption(`${verb}(id)`, target) }
  if (target === undefined) throw new OptionTypeError(`${verb}(target)`, 'an id, or a query', target)
  const owner = `${verb}(query)`
  const { state, ...query } = readFilters(owner, optionsObject(owner, target, FILTER_NAMES))
  const { states, onRequest } = VERBS[verb]
  if (state !== undefined && ![...states, ...onRequest].includes(state)) throw new WrongQueryError(verb, state)
  return { kind: 'all', query, states: state === undefined ? states : [state] }
}

export function readActionOptions(verb: BulkVerb, options: RedriveOptions): ReadOptions {
  const names = verb === 'redrive' ? REDRIVE_NAMES : ACTION_NAMES
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
