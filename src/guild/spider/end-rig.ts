import type { CrawlResult } from './api.js'
import type { Floor } from './floor.js'
import type { EngineRow } from './rig.js'
import type { Sheet } from './sheet.js'
import type { SpiderWritStatus } from './writ-status.js'

/** Why an engine failed, and whether a fresh attempt may succeed. */
export interface EngineFailure {
  readonly error: string
  readonly retryable: boolean
  /** What happened, in words, where that is more than the error. */
  readonly detail?: string
}

/**
 * The engine has failed, and with it the rig: both are written in the caller's transaction, together with the writ becoming stuck and
 * what Spider observed about it. So whoever watches writs sees one change, with the reason in it. Engines that run beside it are left
 * to come to their end, each with its slot; only then may the writ get another rig.
 */
export async function failEngine(
  floor: Floor,
  sheet: Sheet,
  engineId: string,
  failure: EngineFailure,
): Promise<CrawlResult> {
  const { error, retryable } = failure
  if (!sheet.isActive) return endBeside(floor, sheet, engineId, { status: 'failed', error })
  const observedAt = floor.now()
  sheet.set(engineId, { ...OVER, status: 'failed', error, completedAt: observedAt, block: undefined })
  for (const engine of sheet.engines) if (isWaiting(engine)) cancelWaiting(sheet, engine)
  sheet.setRig({ pendingGrafts: undefined })
  sheet.end('stuck')
  const { id: rigId, writId } = sheet.rig
  const before = await floor.writs.get(writId)
  await sheet.save()
  const after = await floor.writs.get(writId)
  const result: CrawlResult = { action: 'rig-completed', rigId, writId, outcome: 'stuck' }
  if (before?.phase === 'stuck' || after?.phase !== 'stuck') return result
  const detail = `Engine "${engineId}" failed: ${failure.detail ?? (error || 'no reason was given')}`
  const status: SpiderWritStatus = { stuckCause: 'engine-failure', retryable, detail, observedAt, rigId }
  await floor.clerk.setWritStatus(writId, 'spider', status)
  return result
}

/** The end of an engine whose rig is stuck because of another one: it is kept, and changes nothing else. */
export async function endBeside(
  floor: Floor,
  sheet: Sheet,
  engineId: string,
  end: {
    readonly status: 'completed' | 'failed' | 'cancelled'
    readonly yields?: unknown
    readonly error?: string
  },
): Promise<CrawlResult> {
  sheet.set(engineId, { ...OVER, ...end, completedAt: floor.now(), priorBlock: undefined })
  await sheet.save()
  return { action: 'engine-ended', rigId: sheet.rig.id, engineId, status: end.status }
}

/** Ends a rig on somebody's word. Sessions and runs are told after the commit. */
export async function cancelRig(floor: Floor, sheet: Sheet, reason: string): Promise<void> {
  const active = activeEngine(sheet.engines)
  if (active !== undefined) sheet.set(active.engineId, { error: reason, completedAt: floor.now() })
  await endCancelled(floor, sheet)
}

/** Everything in the rig that has not ended is cancelled, and the rig with it. */
export async function endCancelled(floor: Floor, sheet: Sheet): Promise<void> {
  for (const engine of sheet.engines) if (isWaiting(engine) || engine.status === 'running') cancelWaiting(sheet, engine)
  sheet.setRig({ pendingGrafts: undefined })
  sheet.end('cancelled')
  await sheet.save()
  await rejectInputRequests(floor, sheet.rig.id)
}

/** What an engine that has ended no longer has. */
export const OVER = { claim: undefined, isSessionOver: undefined, item: undefined, lapses: undefined } as const

/** Nobody has begun it; one that was handed to the work engine waits there until somebody claims it. */
const isWaiting = ({ status, item, claim }: EngineRow): boolean =>
  status === 'pending' || status === 'blocked' || (status === 'running' && item !== undefined && claim === undefined)

function cancelWaiting(sheet: Sheet, { engineId }: EngineRow): void {
  sheet.set(engineId, { ...OVER, status: 'cancelled', block: undefined, holdUntil: undefined })
}

/** The one that a person would say is at work. */
function activeEngine(engines: readonly EngineRow[]): EngineRow | undefined {
  const first = (test: (engine: EngineRow) => boolean) => engines.find(test)
  return (
    first(({ status, sessionId }) => status === 'running' && sessionId !== undefined) ??
    first(({ status }) => status === 'running') ??
    first(({ status }) => status === 'blocked') ??
    first(({ status }) => status === 'pending')
  )
}

async function rejectInputRequests(floor: Floor, rigId: string): Promise<void> {
  const pending = await floor.inputRequests.find({
    where: [
      ['rigId', '=', rigId],
      ['status', '=', 'pending'],
    ],
  })
  for (const { id } of pending) await floor.inputRequests.patch(id, { status: 'rejected', message: 'Rig cancelled' })
}
