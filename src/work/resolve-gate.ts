import type { At } from '../core/time.js'
import { needOf } from './condition.js'
import { DEPENDENCY_TYPE, type DependencyInput } from './dependency.js'
import { type ItemRules, type Place, type ResolvedItem, resolveItem } from './resolve-item.js'
import { bornFrom, type StoredWork, storable } from './stored-tree.js'
import type { Work, WorkInstanceOptions } from './work.js'

/** Turns work of any type into an item. A gate becomes one that is held until its counts decide, or its time is up. */
export function resolveWork(
  rules: ItemRules,
  work: Work,
  options: WorkInstanceOptions | undefined,
  place: Place,
  now: At,
): ResolvedItem {
  if (work.type !== DEPENDENCY_TYPE) return resolveItem(rules, work, options, place, now)
  const { id, type, input } = storable(rules, work, now)
  const timed = timedFrom(input as DependencyInput, now)
  return held(resolveItem(rules, { id, type, input: timed }, options, place, now), timed, now)
}

/** The same for work that a gate queues. */
export function resolveStored(rules: ItemRules, stored: StoredWork, place: Place, now: At): ResolvedItem {
  if (stored.type !== DEPENDENCY_TYPE) return bornFrom(rules, stored, place, now)
  const timed = timedFrom(JSON.parse(stored.input) as DependencyInput, now)
  return held(bornFrom(rules, { ...stored, input: JSON.stringify(timed) }, place, now), timed, now)
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
    // Its start is not when it is free at the latest: a gate that fires before its start waits for that itself.
    delayMs: until === Infinity ? Infinity : Math.max(0, until - now),
    skipQueue: false,
    hold: { by: 'gate', key, pollMs: poll },
    gate: { do: 'openGate', key, holds: item.id, members, ...needOf(config, members.length) },
  }
}
