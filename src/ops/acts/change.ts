import type { ItemSummary, Worker } from '../../ports/ledger.js'
import type { Effect, Settlement } from '../../ports/settlement.js'
import { act } from '../../work/act.js'
import type { Retention } from '../../work/settle.js'
import type { Verb } from '../api.js'

const DAY_MS = 86_400_000
/** What `createWork` keeps unless it is told otherwise. */
const DEFAULT_KEEP: Retention = Object.freeze({ successMs: DAY_MS, deadMs: 30 * DAY_MS })

/** How long the fleet keeps what has ended: what a person ends is kept as long. */
export function retentionOf(workers: readonly Worker[]): Retention {
  const kept = workers.flatMap(({ settings }) => settings?.keepMs ?? [])
  if (kept.length === 0) return DEFAULT_KEEP
  return {
    successMs: Math.max(...kept.map(({ done }) => done)),
    deadMs: Math.max(...kept.map(({ dead }) => dead)),
  }
}

/**
 * The name of a group that nothing belongs to: its open count is how many items a bulk action has changed. It is moved in the
 * same atomic step as the item, so that it is right whatever answer got lost and whenever the acting process died.
 */
export const counterOf = (actionId: string): string => `@ops/${actionId}`

/** What one change of a bulk action writes: the very act of one item, counted instead of logged. */
export function countedChange(
  view: ItemSummary,
  verb: Verb,
  action: { readonly id: string; readonly who: string; readonly why: string; readonly keep: Retention },
): Settlement | undefined {
  const settlement = act(view, verb, action)
  if (settlement === undefined) return undefined
  const count: Effect = { do: 'openGroup', groupId: counterOf(action.id), by: 1 }
  // A log of a hundred thousand lines helps nobody: the action has one for its beginning and one for its end.
  return { guard: settlement.guard, effects: [...settlement.effects.filter((effect) => effect.do !== 'log'), count] }
}
