import { unreachable } from '../../core/unreachable.js'
import type { ItemSummary } from '../../ports/inspect.js'
import { actOnItem, type ItemAccess } from '../../work/control/item-actions.js'
import type { Retention } from '../../work/settle/settle.js'
import type { ActionReport, BulkVerb } from '../api.js'
import type { OpsContext } from '../context.js'
import { ContendedError, NoItemError, wrongState } from './errors.js'
import type { ReadOptions } from './selection.js'
import { doesTake } from './verbs.js'

/**
 * Applies an action to one item. It is one commit, which also writes the log, so there is nothing to continue and no action
 * record.
 */
export async function runSingleAction(
  { ledger, now, summaries }: OpsContext,
  verb: BulkVerb,
  id: string,
  how: ReadOptions & { readonly actionId: string; readonly keep: Retention },
): Promise<ActionReport> {
  const { who, why, keep } = how
  const startedAt = await now()
  const report = (done: number): ActionReport => {
    const passed = how.isDryRun ? 0 : 1 - done
    return { id: how.actionId, verb, target: id, who, why, startedAt, total: 1, done, passed, state: 'done' }
  }
  const check = async (view: ItemSummary): Promise<boolean> => {
    if (verb === 'cancel' && isCancelled(view)) return false
    const at = await now()
    if (!doesTake(verb, view, at)) throw wrongState(verb, view, at)
    return !how.isDryRun
  }
  const access: ItemAccess<ItemSummary> = {
    read: async () => (await summaries([id]))[0],
    commit: async (settlement) => (await ledger.commit([settlement]))[0]!,
  }
  const result = await actOnItem(access, id, verb, { who, why, keep, check })
  switch (result.kind) {
    case 'applied': {
      const applied = report(1)
      how.onProgress?.(applied)
      return applied
    }
    case 'unchanged':
      return report(0)
    case 'unknown':
      throw new NoItemError(verb, id)
    case 'contended':
      throw new ContendedError(verb, id)
    default:
      return unreachable(result)
  }
}

/** Already cancelled, or about to be: what the caller asked for. */
function isCancelled({ ending, status, cancelReason }: ItemSummary): boolean {
  return ending === 'cancelled' || (status === 'running' && cancelReason !== undefined)
}
