import type { ItemSummary } from '../../ports/inspect.js'
import type { WorkerRecord } from '../../ports/ledger.js'
import { KEEP_COMPLETED_MS, KEEP_DEAD_MS } from '../../ports/limits.js'
import type { Effect, Settlement } from '../../ports/settlement.js'
import { act } from '../../work/control/item-actions.js'
import type { Retention } from '../../work/settle/settle.js'
import type { BulkVerb } from '../api.js'

/** How long the fleet keeps ended items. Items that a person ends are kept as long. */
export function retentionOf(workers: readonly WorkerRecord[]): Retention {
  const kept = workers.flatMap(({ settings }) => settings?.keepMs ?? [])
  if (kept.length === 0) return { completedMs: KEEP_COMPLETED_MS, deadMs: KEEP_DEAD_MS }
  return {
    completedMs: Math.max(...kept.map(({ completed }) => completed)),
    deadMs: Math.max(...kept.map(({ dead }) => dead)),
  }
}

/**
 * The name of a group without members: its open count is the number of items that a bulk action has changed. It changes in the
 * same commit as the item, so it stays exact when an answer is lost or the process dies.
 */
export const counterOf = (actionId: string): string => `@ops/${actionId}`

/** What a bulk action writes for one item: the same as an action on a single item, but counted instead of logged. */
export function countedChange(
  view: ItemSummary,
  verb: BulkVerb,
  action: { readonly id: string; readonly who: string; readonly why: string; readonly keep: Retention },
): Settlement | undefined {
  const settlement = act(view, verb, action)
  if (settlement === undefined) return undefined
  const count: Effect = { do: 'joinGroup', groupId: counterOf(action.id), count: 1 }
  // The log gets one line for the start of the action and one for its end, not one for each item.
  return { guard: settlement.guard, effects: [...settlement.effects.filter((effect) => effect.do !== 'log'), count] }
}
