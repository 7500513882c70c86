import type { At } from '../../core/time/time.js'
import { needOf } from '../define/condition.js'
import { DEPENDENCY_TYPE, type DependencyInput } from '../define/dependency.js'
import type { Work, WorkInstanceOptions } from '../define/work.js'
import { itemFromStored, type StoredWork, storable } from '../settle/stored-tree.js'
import { type ItemOrigin, type ItemRules, type ResolvedItem, resolveItem } from './resolve-item.js'

/** Turns work of any type into an item. A gate is held until its counts decide, or its time is up. */
export function resolveWork(
  rules: ItemRules,
  work: Work,
  options: WorkInstanceOptions | undefined,
  origin: ItemOrigin,
  now: At,
): ResolvedItem {
  if (work.type !== DEPENDENCY_TYPE) return resolveItem(rules, work, options, origin, now)
  const { id, type, input } = storable(rules, work, now)
  const timed = timedFrom(input as DependencyInput, now)
  return held(resolveItem(rules, { id, type, input: timed }, options, origin, now), timed, now)
}

/** The same for work that a gate queues. */
export function resolveStored(rules: ItemRules, stored: StoredWork, origin: ItemOrigin, now: At): ResolvedItem {
  if (stored.type !== DEPENDENCY_TYPE) return itemFromStored(rules, stored, origin, now)
  const timed = timedFrom(JSON.parse(stored.input) as DependencyInput, now)
  return held(itemFromStored(rules, { ...stored, input: JSON.stringify(timed) }, origin, now), timed, now)
}

/** Its time counts from now, whenever it was built. */
function timedFrom(input: DependencyInput, now: At): DependencyInput {
  return input.timeout === undefined ? input : { ...input, deadline: now + input.timeout }
}

function held(resolved: ResolvedItem, input: DependencyInput, now: At): ResolvedItem {
  const { key, on, members = on, config, poll, deadline = Infinity } = input
  const { item } = resolved
  // A millisecond later: an item whose deadline is this very moment is still in time.
  const until = Math.min(deadline, (item.deadline ?? Infinity) + 1)
  return {
    ...resolved,
    // Not its start: a gate that is decided before its start waits for that itself.
    delayMs: until === Infinity ? Infinity : Math.max(0, until - now),
    skipQueue: false,
    hold: { by: 'gate', key, pollMs: poll },
    gate: { do: 'openGate', key, heldId: item.id, members, ...needOf(config, members.length) },
  }
}
