import type { Floor } from './floor.js'
import type { EngineRow } from './rig.js'
import type { Sheet } from './sheet.js'
import type { SpiderWritStatus } from './writ-status.js'

/** Why an engine failed, and whether a fresh attempt may succeed. */
export interface EngineFailure {
  readonly error: string
  readonly retryable: boolean
  /** Which engine, and what happened. Default: made from the error. */
  readonly detail?: string
}

/**
 * The engine has failed, and with it the rig: both are written in the caller's transaction, together with the writ becoming stuck and
 * what Spider observed about it. So whoever watches writs sees one change, with the reason in it.
 */
export async function failEngine(floor: Floor, sheet: Sheet, engineId: string, failure: EngineFailure): Promise<void> {
  const { error, retryable } = failure
  const observedAt = floor.now()
  sheet.set(engineId, { status: 'failed', error, completedAt: observedAt, block: undefined, claim: undefined })
  for (const engine of sheet.engines) if (isWaiting(engine)) cancelWaiting(sheet, engine)
  sheet.setRig({ pendingGrafts: undefined })
  sheet.end('stuck')
  const { id: rigId, writId } = sheet.rig
  const before = await floor.writs.get(writId)
  await sheet.save()
  const after = await floor.writs.get(writId)
  if (before?.phase === 'stuck' || after?.phase !== 'stuck') return
  const detail = failure.detail ?? `Engine "${engineId}" failed: ${error === '' ? 'Engine failure' : error}`
  const status: SpiderWritStatus = { stuckCause: 'engine-failure', retryable, detail, observedAt, rigId }
  await floor.clerk.setWritStatus(writId, 'spider', status)
}

/** Ends an active rig on somebody's word. Sessions and runs are told after the commit. */
export async function cancelRig(floor: Floor, sheet: Sheet, reason: string): Promise<void> {
  const active = activeEngine(sheet.engines)
  for (const engine of sheet.engines) {
    if (isWaiting(engine)) cancelWaiting(sheet, engine)
    else if (engine.status === 'running') sheet.set(engine.engineId, { status: 'cancelled', claim: undefined })
  }
  if (active !== undefined) sheet.set(active.engineId, { error: reason, completedAt: floor.now() })
  sheet.setRig({ pendingGrafts: undefined })
  sheet.end('cancelled')
  await sheet.save()
  await rejectInputRequests(floor, sheet.rig.id)
}

const isWaiting = ({ status }: EngineRow): boolean => status === 'pending' || status === 'blocked'

function cancelWaiting(sheet: Sheet, { engineId }: EngineRow): void {
  sheet.set(engineId, { status: 'cancelled', block: undefined, holdUntil: undefined })
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
