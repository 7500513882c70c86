import type { CrawlResult } from '../api.js'
import type { SpiderContext } from '../context.js'
import { endCancelled } from './cancel-rigs.js'
import { isGateStuck, releaseWaiting, waitFor } from './dispatch-queue.js'
import { linkGateOf } from './link-gate.js'
import { type SpiderWritStatus, spiderStatusOf } from './writ-status.js'

/** Frees a writ that a gate made stuck, when the reason is gone. */
export async function unstickNext(context: SpiderContext): Promise<CrawlResult | null> {
  await endCancelled(context)
  await releaseWaiting(context)
  for (;;) {
    const [first] = await context.dispatch.find({
      where: [['state', '=', 'recheck']],
      orderBy: ['at', 'asc'],
      limit: 1,
    })
    if (first === undefined) return null
    const result = await context.change(() => recheck(context, first.id))
    if (result !== null) return result
  }
}

async function recheck(context: SpiderContext, writId: string): Promise<CrawlResult | null> {
  const row = await context.dispatch.get(writId)
  if (row?.state !== 'recheck') return null
  const writ = await context.writs.get(writId)
  if (writ === null || !isGateStuck(writ)) {
    await context.dispatch.delete(writId)
    return null
  }
  const { stuckCause, blockerIds = [] } = spiderStatusOf(writ)
  const gate = await linkGateOf(context, writ)
  const isSameCause =
    (gate.kind === 'failed' && stuckCause === 'failed-blocker') || (gate.kind === 'cycle' && stuckCause === 'cycle')
  if (isSameCause && !(await isOver(context, writId, stuckCause, blockerIds))) {
    await waitFor(context, row, 'stuck', blockerIds)
    return null
  }
  await context.clerk.transition(writId, 'open')
  await context.clerk.setWritStatus(writId, 'spider', {})
  return { action: 'writ-unstuck', writId }
}

async function isOver(
  context: SpiderContext,
  writId: string,
  cause: SpiderWritStatus['stuckCause'],
  blockerIds: readonly string[],
): Promise<boolean> {
  for (const id of blockerIds) {
    if (id === writId) continue
    const phase = (await context.writs.get(id))?.phase
    if (cause === 'cycle' && phase !== 'open' && phase !== 'stuck') return true
    if (cause === 'failed-blocker' && phase !== undefined && phase !== 'completed' && phase !== 'cancelled')
      return false
  }
  return cause === 'failed-blocker'
}
