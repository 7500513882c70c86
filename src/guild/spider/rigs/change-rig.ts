import { isVeto } from '../../stacks/transaction/veto.js'
import type { CrawlResult } from '../api.js'
import type { SpiderContext } from '../context.js'
import { endRefused, writeRefusalOf } from './end-rig.js'
import { RigTransaction } from './rig-transaction.js'

/**
 * Runs a change of a rig that no engine's outcome hangs on. If a watcher refuses it, the rig is stuck with what the watcher said: it
 * would be asked again and again otherwise, and nothing else in the guild would go on. `ended`: what to return then.
 */
export function changeRig<R>(
  context: SpiderContext,
  rigId: string,
  change: () => Promise<R>,
  ended: (result: CrawlResult | null) => R,
): Promise<R> {
  return context.change(change).catch((error: unknown) => {
    if (!isVeto(error)) throw error
    return context.change(async () => {
      const tx = await RigTransaction.load(context, rigId)
      return ended(tx?.isActive === true ? await endRefused(context, tx, writeRefusalOf(error)) : null)
    })
  })
}
