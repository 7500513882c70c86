import { integerOption, OptionTypeError, oneOfOption } from '../core/options.js'
import { unreachable } from '../core/unreachable.js'
import type { DependencyCondition, StateCondition, WorkStatus } from './work.js'

/** The part of a state that a condition looks at. Undefined: nothing is known of the item, so it is not done. */
type Seen = { readonly status: WorkStatus } | undefined

/** A condition as a gate keeps it: how many must end, or end well. */
export interface Need {
  readonly need: number
  readonly of: 'done' | 'success'
}

/**
 * Whether these states meet a condition. An item without a state is not done; over no items at all both `all-` conditions
 * hold.
 *
 * @example
 * ```ts
 * conditionMet({ count: 1, of: 'success' }, await ctx.states(ids))
 * ```
 */
export function conditionMet(condition: StateCondition, states: readonly Seen[]): boolean {
  return verdictOn(condition, states) === true
}

/** True: met. False: no future state can meet it. Undefined: wait on. */
export function verdictOn(condition: DependencyCondition, states: readonly Seen[]): boolean | undefined {
  const { need, of } = needOf(condition, states.length)
  const ended = states.filter(hasEnded)
  const counted = of === 'done' ? ended.length : ended.filter((state) => state?.status === 'success').length
  if (counted >= need) return true
  return need - counted > states.length - ended.length ? false : undefined
}

/** Every condition is a pair of counts: that is what a backend can compare in the same step in which they move. */
export function needOf(condition: DependencyCondition, members: number): Need {
  if (condition === 'all-done') return { need: members, of: 'done' }
  if (condition === 'all-success') return { need: members, of: 'success' }
  if ('count' in condition) return { need: condition.count, of: condition.of ?? 'done' }
  return needOf(condition.when ?? 'all-success', members)
}

export function isTreeCondition(condition: DependencyCondition): boolean {
  return typeof condition === 'object' && !('count' in condition)
}

/** Reads a condition; what makes no sense is refused where it is given. */
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

function hasEnded(seen: Seen): boolean {
  if (seen === undefined) return false
  switch (seen.status) {
    case 'success':
    case 'failed':
    case 'dead':
      return true
    case 'pending':
    case 'running':
      return false
    default:
      return unreachable(seen.status)
  }
}
