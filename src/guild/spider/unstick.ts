import type { CrawlResult } from './api.js'
import type { Floor } from './floor.js'
import { gateOf } from './gate.js'
import { isGateStuck, releaseWaiting, waitFor } from './line.js'
import type { SpiderWritStatus } from './writ-status.js'

/** Frees a writ that a gate made stuck, when the reason is gone. */
export async function unstickNext(floor: Floor): Promise<CrawlResult | null> {
  await releaseWaiting(floor)
  for (;;) {
    const [first] = await floor.dispatch.find({ where: [['state', '=', 'recheck']], orderBy: ['at', 'asc'], limit: 1 })
    if (first === undefined) return null
    const result = await floor.change(() => recheck(floor, first.id))
    if (result !== null) return result
  }
}

async function recheck(floor: Floor, writId: string): Promise<CrawlResult | null> {
  const row = await floor.dispatch.get(writId)
  if (row?.state !== 'recheck') return null
  const writ = await floor.writs.get(writId)
  if (writ === null || !isGateStuck(writ)) {
    await floor.dispatch.delete(writId)
    return null
  }
  const { stuckCause, blockerIds = [] } = (writ.status?.['spider'] ?? {}) as SpiderWritStatus
  const gate = await gateOf(floor, writ)
  const isSameCause =
    (gate.kind === 'failed' && stuckCause === 'failed-blocker') || (gate.kind === 'cycle' && stuckCause === 'cycle')
  if (isSameCause && !(await isOver(floor, writId, stuckCause, blockerIds))) {
    await waitFor(floor, row, 'stuck', blockerIds)
    return null
  }
  await floor.clerk.transition(writId, 'open')
  await floor.clerk.setWritStatus(writId, 'spider', {})
  return { action: 'writ-unstuck', writId }
}

async function isOver(
  floor: Floor,
  writId: string,
  cause: SpiderWritStatus['stuckCause'],
  blockerIds: readonly string[],
): Promise<boolean> {
  for (const id of blockerIds) {
    if (id === writId) continue
    const phase = (await floor.writs.get(id))?.phase
    if (cause === 'cycle' && phase !== 'open' && phase !== 'stuck') return true
    if (cause === 'failed-blocker' && phase !== undefined && phase !== 'completed' && phase !== 'cancelled')
      return false
  }
  return cause === 'failed-blocker'
}
