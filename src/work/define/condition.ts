import { integerOption, OptionTypeError, oneOfOption } from '../../core/options.js'
import { gateVerdict } from '../../ports/gate.js'
import type { ItemStatus } from '../../ports/item.js'
import type { DependencyCondition, StateCondition, WorkStatus } from './work.js'

/** The part of a state that a condition depends on. Undefined: the item is unknown, and so it is not done. */
type Seen = { readonly status: WorkStatus | ItemStatus } | undefined

/** A condition as a gate keeps it: how many must end, or end well. */
export interface Need {
  readonly need: number
  readonly of: 'done' | 'success'
}

/**
 * Whether these states meet a condition. An item without a state is not done; without any items, both `all-` conditions hold.
 *
 * @example
 * ```ts
 * conditionMet({ count: 1, of: 'success' }, await ctx.states(ids))
 * ```
 */
export function conditionMet(condition: StateCondition, states: readonly Seen[]): boolean {
  return verdictOn(condition, states) === true
}

/** True: met. False: it can no longer be met. Undefined: not decided. */
export function verdictOn(condition: DependencyCondition, states: readonly Seen[]): boolean | undefined {
  const { need, of } = needOf(condition, states.length)
  const ended = states.filter(hasEnded)
  const counted = of === 'done' ? ended.length : ended.filter(hasCompleted).length
  return gateVerdict(need - counted, states.length - ended.length)
}

/** Every condition is a pair of counts, which a backend can compare in the commit that changes them. */
export function needOf(condition: DependencyCondition, members: number): Need {
  if (condition === 'all-done') return { need: members, of: 'done' }
  if (condition === 'all-success') return { need: members, of: 'success' }
  if ('count' in condition) return { need: condition.count, of: condition.of ?? 'done' }
  return needOf(condition.when ?? 'all-success', members)
}

export function isTreeCondition(condition: DependencyCondition): boolean {
  return typeof condition === 'object' && !('count' in condition)
}

/** Checks a condition where it is given. */
export function checkedCondition(path: string, given: DependencyCondition | undefined): DependencyCondition {
  if (given === undefined) return 'all-success'
  if (typeof given === 'object' && given !== null) {
    if ('count' in given) {
      const count = integerOption(`${path}.count`, given.count, { min: 0 })
      return { count, of: oneOfOption(`${path}.of`, given.of, ['done', 'success'], 'done') }
    }
    if (given.of === 'tree') {
      return { of: 'tree', when: oneOfOption(`${path}.when`, given.when, ['all-success', 'all-done'], 'all-success') }
    }
  } else if (given === 'all-done' || given === 'all-success') return given
  throw new OptionTypeError(path, "'all-done', 'all-success', { count } or { of: 'tree' }", given)
}

/** `success` is the public word for what a ledger calls completed. */
const hasCompleted = (seen: Seen): boolean => seen?.status === 'success' || seen?.status === 'completed'

const hasEnded = (seen: Seen): boolean => seen !== undefined && seen.status !== 'pending' && seen.status !== 'running'
