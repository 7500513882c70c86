import { backoff, doublingDelay } from '../../../core/retry/backoff.js'
import { decideRetry } from '../../../core/retry/decide-retry.js'
import { errorMessage } from '../../../core/text/error-text.js'
import type { RigTemplateEngine } from '../../fabricator/engine-design.js'
import { lostInJson } from '../../fabricator/yields.js'
import { StacksValueError } from '../../stacks/errors.js'
import { isVeto } from '../../stacks/transaction/veto.js'
import type { CrawlResult } from '../api.js'
import type { SpiderContext } from '../context.js'
import {
  type EngineFailure,
  endBeside,
  endCancelled,
  endRefused,
  failEngine,
  OVER,
  type WriteRefusal,
  writeRefusalOf,
} from '../rigs/end-rig.js'
import type { EngineRow } from '../rigs/rig.js'
import { RigTransaction } from '../rigs/rig-transaction.js'
import { endedOr } from './claim-engine.js'
import { isSessionEnded } from './sessions.js'

/** What came of running an engine; `lost`: it was aborted because this process no longer holds the claim. */
export type RunOutcome = EngineOutcome | { readonly kind: 'lost' }

/** The outcome of a run or a session. */
export type EngineOutcome =
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
 * Records an outcome if its run still holds the engine: a run that was cancelled or taken over meanwhile changes nothing.
 * Null: the outcome was discarded.
 */
export async function settleEngine(
  context: SpiderContext,
  { rigId, engineId, token }: { readonly rigId: string; readonly engineId: string; readonly token: string },
  outcome: RunOutcome,
): Promise<CrawlResult | null> {
  const recordIfHeld = (held: EngineOutcome, refusal?: WriteRefusal): Promise<CrawlResult | null> =>
    context.change(async () => {
      const tx = await RigTransaction.load(context, rigId)
      const engine = tx?.engine(engineId)
      if (tx === undefined || engine === undefined) return null
      if (engine.status !== 'running' || engine.claim?.token !== token) return null
      return record(context, tx, engine, held, refusal)
    })
  /**
   * A watcher in that transaction threw, and would throw again. Keep what the engine yielded, with its rig stuck; if that is what
   * the watcher refuses, the engine has failed. Either way it does not run again, and the writ says why.
   */
  const recordRefused = (held: EngineOutcome, refusal: WriteRefusal): Promise<CrawlResult | null> => {
    const failed = () => recordIfHeld({ kind: 'failed', error: refusal.text, retryable: false })
    if (held.kind !== 'completed') return failed()
    return recordIfHeld(held, refusal).catch((error: unknown) => {
      if (!isVeto(error)) throw error
      return failed()
    })
  }
  const result =
    outcome.kind === 'lost'
      ? null
      : await recordIfHeld(outcome).catch(async (error: unknown) => {
          if (isVeto(error)) return recordRefused(outcome, writeRefusalOf(error))
          // Something that JSON can carry and the store cannot: too large, or characters that no database takes.
          if (!(error instanceof StacksValueError) || outcome.kind === 'failed') throw error
          const what = outcome.kind === 'completed' ? `${outcome.of} yields` : 'What the engine returned'
          const text = `${what} cannot be stored: ${error.message}`
          return recordIfHeld({ kind: 'failed', error: text, retryable: false })
        })
  if (result === null) {
    const message = `The result of engine ${rigId}/${engineId} is discarded: its rig was ended, or another process took it over.`
    context.warn({ code: 'RESULT_DISCARDED', message })
  }
  return result
}

/** How often a crawl writes a result that the store does not take, and the longest pause between two tries. */
const SETTLE_TRIES = 5
const SETTLE_MAX_PAUSE_MS = 5_000

/**
 * Settles while the run still holds its engine: a store that cannot be reached for a moment does not make the engine run again.
 * With a signal, which is that of a work item, it is tried until the item is taken away, also where a watcher refuses even the
 * failure.
 */
export async function settleHeld(
  context: SpiderContext,
  claimed: Parameters<typeof settleEngine>[1],
  outcome: RunOutcome,
  signal?: AbortSignal,
): Promise<CrawlResult | null> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await settleEngine(context, claimed, outcome)
    } catch (error) {
      const isOver = signal === undefined && (isVeto(error) || tries >= SETTLE_TRIES - 1)
      if (isOver || signal?.aborted === true || context.isStopping) throw error
      const message = `What engine ${claimed.rigId}/${claimed.engineId} came to could not be recorded; this is tried again: ${errorMessage(error)}`
      context.warn({ code: 'SETTLE_FAILED', message, error })
      await context.clock.sleep(doublingDelay(tries, { baseMs: 20, maxMs: SETTLE_MAX_PAUSE_MS }))
    }
  }
}

/**
 * Writes an outcome in the caller's transaction. In a rig that is stuck it ends only the engine. `refusal`: a watcher does not let
 * the rig go on from here.
 */
export async function record(
  context: SpiderContext,
  tx: RigTransaction,
  engine: EngineRow,
  outcome: EngineOutcome,
  refusal?: WriteRefusal,
): Promise<CrawlResult> {
  const { engineId } = engine
  const { id: rigId, writId } = tx.rig
  switch (outcome.kind) {
    case 'completed': {
      const { yields, graft, graftTail } = outcome
      const lost = lostInJson(yields)
      if (lost !== undefined) {
        const error = `${outcome.of} yields are not JSON-serializable`
        return fail(context, tx, engine, { error, retryable: false, detail: `${error}: ${lost}` })
      }
      if (!tx.isActive) return endBeside(context, tx, engineId, { status: 'completed', yields })
      tx.set(engineId, { ...OVER, status: 'completed', yields, completedAt: context.now(), priorBlock: undefined })
      if (refusal !== undefined) return endRefused(context, tx, refusal)
      if (graft !== undefined && (!Array.isArray(graft) || graft.length > 0)) {
        const tail = graftTail === undefined ? {} : { tail: graftTail }
        tx.set(engineId, { hasGrafted: true })
        tx.setRig({ pendingGrafts: [...(tx.rig.pendingGrafts ?? []), { engineId, engines: graft, ...tail }] })
      }
      await tx.save()
      return endedOr(tx, { action: 'engine-completed', rigId, engineId })
    }
    case 'launched': {
      const session = await context.sessions.get(outcome.sessionId)
      const isSessionOver = session !== null && isSessionEnded(session)
      tx.set(engineId, { ...OVER, sessionId: outcome.sessionId, isSessionOver, priorBlock: undefined })
      await tx.save()
      return { action: 'engine-started', rigId, engineId }
    }
    case 'blocked':
      // A stuck rig unblocks nothing.
      if (!tx.isActive) return endBeside(context, tx, engineId, { status: 'cancelled' })
      return block(context, tx, engine, outcome)
    case 'failed':
      return fail(context, tx, engine, outcome)
    case 'cancelled': {
      const error = outcome.reason === undefined ? {} : { error: outcome.reason }
      if (!tx.isActive) return endBeside(context, tx, engineId, { status: 'cancelled', ...error })
      tx.set(engineId, { ...error, completedAt: context.now() })
      await endCancelled(context, tx)
      return { action: 'rig-completed', rigId, writId, outcome: 'cancelled' }
    }
  }
}

async function block(
  context: SpiderContext,
  tx: RigTransaction,
  engine: EngineRow,
  { blockType, condition: given, message }: Extract<EngineOutcome, { kind: 'blocked' }>,
): Promise<CrawlResult> {
  const { engineId } = engine
  const { id: rigId, writId } = tx.rig
  const type = context.blockTypes.get(blockType)
  if (type === undefined)
    return fail(context, tx, engine, { error: `Unknown block type: "${blockType}"`, retryable: false })
  let condition: unknown
  try {
    condition = type.conditionSchema.parse(given)
    const lost = lostInJson(condition, 'condition')
    if (lost !== undefined) throw new TypeError(lost)
  } catch (error) {
    const reason = `Block type "${blockType}" rejected condition: ${errorMessage(error)}`
    return fail(context, tx, engine, { error: reason, retryable: false })
  }
  if (type.prepare !== undefined) condition = await type.prepare(condition)
  const text = message === undefined ? {} : { message }
  tx.set(engineId, {
    status: 'blocked',
    block: { type: blockType, condition, blockedAt: context.now(), ...text },
    ...OVER,
    priorBlock: undefined,
  })
  await tx.save()
  return tx.rig.status === 'blocked'
    ? { action: 'rig-blocked', rigId, writId }
    : { action: 'engine-blocked', rigId, engineId, blockType }
}

/** A failure: another attempt inside the rig where the design allows it and one may help, else the end of the rig. */
export async function fail(
  context: SpiderContext,
  tx: RigTransaction,
  engine: EngineRow,
  failure: EngineFailure,
): Promise<CrawlResult> {
  const { engineId, designId, attemptCount = 0, attempts = [], startedAt, sessionId } = engine
  const { maxAttempts, backoff: wait } = context.retryOf(designId)
  const policy = { base: wait.initialMs, factor: wait.factor, max: wait.maxMs, jitter: 0 }
  const decision = decideRetry({
    verdict: failure.verdict ?? { class: failure.retryable ? 'retryable' : 'poison', rule: 'engine' },
    attempt: attemptCount + 1,
    // A design counts the attempts after the first.
    maxAttempts: maxAttempts + 1,
    delayMs: (attempt) => backoff(attempt, policy),
    now: context.clock.now(),
  })
  // A rig that is stuck tries nothing again.
  if (!tx.isActive || (decision.kind !== 'retry' && decision.kind !== 'defer'))
    return failEngine(context, tx, engineId, failure)
  const again = {
    status: 'pending',
    holdUntil: context.later(decision.delayMs),
    ...OVER,
    startedAt: undefined,
    sessionId: undefined,
  } as const
  if (decision.kind === 'defer') {
    // The same attempt, with the same key, as another item.
    tx.set(engineId, { ...again, resumes: (engine.resumes ?? 0) + 1 })
    await tx.save()
    return { action: 'engine-retrying', rigId: tx.rig.id, engineId, attemptCount }
  }
  const count = attemptCount + 1
  const endedAt = context.now()
  const session = sessionId === undefined ? {} : { sessionId }
  const closed = {
    startedAt: startedAt ?? endedAt,
    endedAt,
    status: 'failed' as const,
    error: failure.error,
    ...session,
  }
  tx.set(engineId, { ...again, attempts: [...attempts, closed], attemptCount: count, resumes: undefined })
  await tx.save()
  return { action: 'engine-retrying', rigId: tx.rig.id, engineId, attemptCount: count }
}
