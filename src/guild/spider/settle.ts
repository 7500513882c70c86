import { errorMessage } from '../../core/error-text.js'
import type { RigTemplateEngine } from '../fabricator/engine-design.js'
import { lostInJson } from '../fabricator/yields.js'
import { StacksValueError } from '../stacks/errors.js'
import type { CrawlResult } from './api.js'
import { endedOr } from './claim.js'
import { type EngineFailure, endBeside, endCancelled, failEngine, OVER } from './end-rig.js'
import type { Floor } from './floor.js'
import type { EngineRow } from './rig.js'
import { isSessionEnded } from './session.js'
import { Sheet } from './sheet.js'

/** What a run or a session came to. */
export type Outcome =
  | {
      readonly kind: 'completed'
      readonly yields: unknown
      readonly graft?: readonly RigTemplateEngine[]
      readonly graftTail?: string
      readonly of: 'Engine' | 'Session'
    }
  | { readonly kind: 'launched'; readonly sessionId: string }
  | { readonly kind: 'blocked'; readonly blockType: string; readonly condition: unknown; readonly message?: string }
  | ({ readonly kind: 'failed' } & EngineFailure)
  | { readonly kind: 'cancelled'; readonly reason?: string }

/**
 * Records an outcome, if whoever brings it still holds the engine: a run that was cancelled or taken over meanwhile changes
 * nothing. Null: it was not listened to.
 */
export async function settle(
  floor: Floor,
  { rigId, engineId, token }: { readonly rigId: string; readonly engineId: string; readonly token: string },
  outcome: Outcome,
): Promise<CrawlResult | null> {
  const result = await recorded(floor, rigId, engineId, token, outcome)
  if (result === null) {
    const message = `The result of engine ${rigId}/${engineId} is discarded: its rig was ended, or another process took it over.`
    floor.warn({ code: 'RESULT_DISCARDED', message })
  }
  return result
}

async function recorded(
  floor: Floor,
  rigId: string,
  engineId: string,
  token: string,
  outcome: Outcome,
): Promise<CrawlResult | null> {
  try {
    return await attempted(floor, rigId, engineId, token, outcome)
  } catch (error) {
    // Something that JSON can carry and the store cannot: too large, or characters that no database takes.
    if (!(error instanceof StacksValueError) || outcome.kind === 'failed') throw error
    const what = outcome.kind === 'completed' ? `${outcome.of} yields` : 'What the engine returned'
    const failure = { kind: 'failed', error: `${what} cannot be stored: ${error.message}`, retryable: false } as const
    return attempted(floor, rigId, engineId, token, failure)
  }
}

function attempted(
  floor: Floor,
  rigId: string,
  engineId: string,
  token: string,
  outcome: Outcome,
): Promise<CrawlResult | null> {
  return floor.change(async () => {
    const sheet = await Sheet.load(floor, rigId)
    const engine = sheet?.engine(engineId)
    if (sheet === undefined || engine === undefined) return null
    if (engine.status !== 'running' || engine.claim?.token !== token) return null
    return record(floor, sheet, engine, outcome)
  })
}

/** Writes an outcome into the sheet of the caller's transaction. In a rig that is stuck it is the end of the engine alone. */
export async function record(floor: Floor, sheet: Sheet, engine: EngineRow, outcome: Outcome): Promise<CrawlResult> {
  const { engineId } = engine
  const { id: rigId, writId } = sheet.rig
  switch (outcome.kind) {
    case 'completed': {
      const { yields, graft, graftTail } = outcome
      const lost = lostInJson(yields)
      if (lost !== undefined) {
        const error = `${outcome.of} yields are not JSON-serializable`
        return fail(floor, sheet, engine, { error, retryable: false, detail: `${error}: ${lost}` })
      }
      if (!sheet.isActive) return endBeside(floor, sheet, engineId, { status: 'completed', yields })
      sheet.set(engineId, { ...OVER, status: 'completed', yields, completedAt: floor.now(), priorBlock: undefined })
      if (graft !== undefined && (!Array.isArray(graft) || graft.length > 0)) {
        const tail = graftTail === undefined ? {} : { tail: graftTail }
        sheet.setRig({ pendingGrafts: [...(sheet.rig.pendingGrafts ?? []), { engineId, engines: graft, ...tail }] })
      }
      await sheet.save()
      return endedOr(sheet, { action: 'engine-completed', rigId, engineId })
    }
    case 'launched': {
      const session = await floor.sessions.get(outcome.sessionId)
      const isSessionOver = session !== null && isSessionEnded(session)
      sheet.set(engineId, { ...OVER, sessionId: outcome.sessionId, isSessionOver, priorBlock: undefined })
      await sheet.save()
      return { action: 'engine-started', rigId, engineId }
    }
    case 'blocked':
      // Nobody would go on with it.
      if (!sheet.isActive) return endBeside(floor, sheet, engineId, { status: 'cancelled' })
      return block(floor, sheet, engine, outcome)
    case 'failed':
      return fail(floor, sheet, engine, outcome)
    case 'cancelled': {
      const error = outcome.reason === undefined ? {} : { error: outcome.reason }
      if (!sheet.isActive) return endBeside(floor, sheet, engineId, { status: 'cancelled', ...error })
      sheet.set(engineId, { ...error, completedAt: floor.now() })
      await endCancelled(floor, sheet)
      return { action: 'rig-completed', rigId, writId, outcome: 'cancelled' }
    }
  }
}

async function block(
  floor: Floor,
  sheet: Sheet,
  engine: EngineRow,
  { blockType, condition: given, message }: Extract<Outcome, { kind: 'blocked' }>,
): Promise<CrawlResult> {
  const { engineId } = engine
  const { id: rigId, writId } = sheet.rig
  const type = floor.blockTypes.get(blockType)
  if (type === undefined)
    return fail(floor, sheet, engine, { error: `Unknown block type: "${blockType}"`, retryable: false })
  let condition: unknown
  try {
    condition = type.conditionSchema.parse(given)
    const lost = lostInJson(condition, 'condition')
    if (lost !== undefined) throw new TypeError(lost)
  } catch (error) {
    const reason = `Block type "${blockType}" rejected condition: ${errorMessage(error)}`
    return fail(floor, sheet, engine, { error: reason, retryable: false })
  }
  if (type.prepare !== undefined) condition = await type.prepare(condition)
  const text = message === undefined ? {} : { message }
  sheet.set(engineId, {
    status: 'blocked',
    block: { type: blockType, condition, blockedAt: floor.now(), ...text },
    ...OVER,
    priorBlock: undefined,
  })
  await sheet.save()
  return sheet.rig.status === 'blocked'
    ? { action: 'rig-blocked', rigId, writId }
    : { action: 'engine-blocked', rigId, engineId, blockType }
}

/** A failure: another try inside the rig where the design allows it and one may help, else the end of the rig. */
export async function fail(
  floor: Floor,
  sheet: Sheet,
  engine: EngineRow,
  failure: EngineFailure,
): Promise<CrawlResult> {
  const { engineId, designId, attemptCount = 0, attempts = [], startedAt, sessionId } = engine
  const { maxAttempts, backoff } = floor.retryOf(designId)
  // A rig that is stuck tries nothing again.
  if (!failure.retryable || attemptCount >= maxAttempts || !sheet.isActive)
    return failEngine(floor, sheet, engineId, failure)
  const count = attemptCount + 1
  const waitMs = Math.min(Math.floor(backoff.initialMs * backoff.factor ** (count - 1)), backoff.maxMs)
  const endedAt = floor.now()
  const session = sessionId === undefined ? {} : { sessionId }
  const closed = {
    startedAt: startedAt ?? endedAt,
    endedAt,
    status: 'failed' as const,
    error: failure.error,
    ...session,
  }
  sheet.set(engineId, {
    status: 'pending',
    attempts: [...attempts, closed],
    attemptCount: count,
    holdUntil: floor.later(waitMs),
    ...OVER,
    startedAt: undefined,
    resumes: undefined,
    sessionId: undefined,
  })
  await sheet.save()
  return { action: 'engine-retrying', rigId: sheet.rig.id, engineId, attemptCount: count }
}
