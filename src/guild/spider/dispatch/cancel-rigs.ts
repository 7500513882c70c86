import { errorMessage } from '../../../core/text/error-text.js'
import { isVeto } from '../../stacks/transaction/veto.js'
import type { SpiderContext } from '../context.js'
import { cancelRig } from '../rigs/end-rig.js'
import { newestRig } from '../rigs/newest-rig.js'
import { RigTransaction } from '../rigs/rig-transaction.js'

/** A writ that has ended takes its newest rig along, if that is still going on. */
export async function cancelNewest(context: SpiderContext, writId: string, reason: string): Promise<void> {
  const rig = await newestRig(context, writId)
  const tx = rig === undefined ? undefined : await RigTransaction.load(context, rig.id)
  if (tx?.isBusy === true) await cancelRig(context, tx, reason)
}

/** When the rig of a cancelled writ is tried again that could not be ended. */
const AGAIN_MS = 60_000

/** Ends the rigs of writs that were cancelled by processes which cannot do it themselves: those that run no engines. */
export async function endCancelled(context: SpiderContext): Promise<void> {
  for (;;) {
    const due = [
      ['state', '=', 'cancelling'],
      ['dueAt', '<=', context.now()],
    ] as const
    const [first] = await context.dispatch.find({ where: [...due], orderBy: ['dueAt', 'asc'], limit: 1 })
    if (first === undefined) return
    try {
      await context.change(() => endOne(context, first.id))
    } catch (error) {
      if (!isVeto(error)) throw error
      // A plugin objects. The other writs must not wait for it.
      const message = `The rig of the cancelled writ ${first.id} could not be ended: ${errorMessage(error)}`
      context.warn({ code: 'CANCEL_FAILED', message, error })
      await context.change(async () => {
        if ((await context.dispatch.get(first.id))?.state === 'cancelling')
          await context.dispatch.patch(first.id, { dueAt: context.later(AGAIN_MS) })
      })
    }
  }
}

async function endOne(context: SpiderContext, id: string): Promise<void> {
  const row = await context.dispatch.get(id)
  if (row?.state !== 'cancelling') return
  await cancelNewest(context, id, cancelledText(id))
  // A rig that has ended meanwhile has left the queue already.
  await context.dispatch.delete(id)
}

export const cancelledText = (writId: string): string => `Writ ${writId} cancelled`
