import type { WritDoc } from '../../clerk/writs/writ.js'
import type { SpiderContext } from '../context.js'
import { newestRig, resolutionOf } from '../rigs/newest-rig.js'
import type { RigRow } from '../rigs/rig.js'
import { enginesOf } from '../rigs/rig-transaction.js'
import type { DispatchContext } from './dispatch-queue.js'
import { spiderStatusOf } from './writ-status.js'

/**
 * A writ of a mapped type has work of its own, so its children alone do not complete it: it completes when its rig has, and none of
 * its children is open any more.
 */
export function hasOwnWork({ templates }: SpiderContext, { type }: Pick<WritDoc, 'type'>): boolean {
  return templates.mappings.has(type)
}

/** A writ has ended: its parent may have waited for that. `completeParent` is called where the rig of the parent has completed. */
export async function childEnded(
  context: Pick<DispatchContext, 'writs' | 'dispatch' | 'clerk'>,
  parentId: string,
  completeParent: (id: string) => Promise<void>,
): Promise<void> {
  const row = await context.dispatch.get(parentId)
  // Written as it is: of the last child that ends and the rig that completes at the same time, one sees the other.
  if (row?.state === 'active') await context.dispatch.patch(parentId, {})
  if (row?.state === 'children') await completeParent(parentId)
  if (row !== null) return
  const parent = await context.writs.get(parentId)
  if (parent?.phase !== 'stuck' || spiderStatusOf(parent).refusedBy !== 'OPEN_DESCENDANTS') return
  if (!(await context.clerk.hasOpenChildren(parentId))) await context.clerk.transition(parentId, 'open')
}

/** Ends an open writ whose rig has completed, unless one of its children is open. True: it has ended. */
export async function completeWithRig(context: SpiderContext, writId: string): Promise<boolean> {
  const rig = await newestRig(context, writId)
  const writ = await context.writs.get(writId)
  if (rig?.status !== 'completed' || writ?.phase !== 'open') return false
  return endWithRig(context, writ, rig)
}

/** The same for a rig that completes right now, whose writ may be stuck. */
export async function endWithRig(context: SpiderContext, writ: WritDoc, rig: RigRow): Promise<boolean> {
  // A writ that a person stuck while its rig went on has no step to its end.
  if (writ.phase === 'stuck') await context.clerk.transition(writ.id, 'open')
  if (!context.config.isStrict && (await context.clerk.hasOpenChildren(writ.id))) {
    const at = `${writ.createdAt} ${writ.id}`
    await context.dispatch.put({ id: writ.id, type: writ.type, state: 'children', isOpen: true, at, rigId: rig.id })
    return false
  }
  await context.clerk.transition(writ.id, 'completed', {
    resolution: resolutionOf(rig, await enginesOf(context, rig.id)),
  })
  return true
}
