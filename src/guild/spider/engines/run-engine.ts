import { classify } from '../../../core/failure/classify.js'
import { NonRetryableError } from '../../../core/failure/failure-errors.js'
import { errorMessage, MAX_ERROR_TEXT_BYTES, truncateUtf8 } from '../../../core/text/error-text.js'
import { keepLease } from '../../../core/time/lease.js'
import { withTimeout } from '../../../core/time/with-timeout.js'
import type { EngineRunContext, EngineRunResult, RigTemplateEngine } from '../../fabricator/engine-design.js'
import { collected } from '../../fabricator/yields.js'
import type { SpiderContext } from '../context.js'
import { EngineTimeoutError } from '../errors.js'
import { RigTransaction } from '../rigs/rig-transaction.js'
import type { ClaimedEngine } from './claim-engine.js'
import { sessionYields } from './sessions.js'
import type { EngineOutcome, RunOutcome } from './settle-engine.js'

/** Why a run is aborted whose claim was lost: its rig was ended, or another process may have taken over. */
const LOST = 'The engine is no longer this process’s to run.'

/** Runs an engine, or collects its session, outside of any transaction. Never throws: a failure is an outcome. */
export async function runEngine(
  spider: SpiderContext,
  claimed: ClaimedEngine,
  outer?: AbortSignal,
): Promise<RunOutcome> {
  const { rigId, engineId, token } = claimed
  const controller = new AbortController()
  const onAbort = () => controller.abort(outer?.reason)
  outer?.addEventListener('abort', onAbort, { once: true })
  if (outer?.aborted === true) onAbort()
  spider.runs.set(token, { rigId, engineId, token, controller })
  let isLost = false
  const stopRenewing = keepClaim(spider, claimed, outer !== undefined, () => {
    isLost = true
    controller.abort(new Error(LOST))
  })
  try {
    const context = { ...claimed.context, signal: controller.signal }
    const running = (claimed.sessionId === undefined ? run : collect)(spider, claimed, context)
    const outcome = await inTime(spider, claimed.designId, running, controller).catch((error) => thrown(spider, error))
    // What an aborted run fails with says nothing about the engine.
    return isLost && outcome.kind === 'failed' ? { kind: 'lost' } : outcome
  } finally {
    stopRenewing()
    spider.runs.delete(token)
    outer?.removeEventListener('abort', onAbort)
  }
}

/** Fails a run that takes too long, whether or not it listens to its signal: what it comes to later is discarded. */
function inTime(
  { clock, design }: SpiderContext,
  designId: string,
  running: Promise<EngineOutcome>,
  controller: AbortController,
): Promise<EngineOutcome> {
  const timeoutMs = design(designId)?.timeoutMs
  if (timeoutMs === undefined) return running
  return withTimeout(clock, timeoutMs, running, () => {
    const error = new EngineTimeoutError(designId, timeoutMs)
    controller.abort(error)
    throw error
  })
}

async function run(
  spider: SpiderContext,
  { designId, givens }: ClaimedEngine,
  context: EngineRunContext,
): Promise<EngineOutcome> {
  const design = spider.design(designId)
  if (design === undefined)
    return { kind: 'failed', error: `No engine design found for "${designId}"`, retryable: false }
  return outcomeOf(await design.run(givens, context))
}

function outcomeOf(result: EngineRunResult): EngineOutcome {
  switch (result?.status) {
    case 'completed': {
      const { yields, graft, graftTail } = result
      return { kind: 'completed', yields, of: 'Engine', ...plainGraft({ graft, graftTail }) }
    }
    case 'launched':
      if (typeof result.sessionId === 'string' && result.sessionId !== '')
        return { kind: 'launched', sessionId: result.sessionId }
      return { kind: 'failed', error: 'The engine launched a session without an id', retryable: false }
    case 'blocked': {
      const { blockType, condition, message } = result
      return { kind: 'blocked', blockType, condition, ...(message !== undefined && { message }) }
    }
    case 'failed': {
      const retryable = result.retryable === true
      const { retryAfterMs: floorMs } = result
      const wait = typeof floorMs === 'number' && floorMs > 0 ? { floorMs } : {}
      return {
        kind: 'failed',
        error: truncateUtf8(String(result.error), MAX_ERROR_TEXT_BYTES),
        retryable,
        verdict: { class: retryable ? 'retryable' : 'poison', rule: 'engine', ...wait },
      }
    }
    default:
      // Plain JavaScript can return anything at all.
      return { kind: 'failed', error: 'The engine returned no result that Spider knows', retryable: false }
  }
}

async function collect(
  spider: SpiderContext,
  claimed: ClaimedEngine,
  context: EngineRunContext,
): Promise<EngineOutcome> {
  const { designId, givens, sessionId = '' } = claimed
  const session = await spider.sessions.get(sessionId)
  if (session === null) return { kind: 'failed', error: `Session ${sessionId} is missing`, retryable: true }
  if (session.status === 'cancelled') return { kind: 'cancelled' }
  if (session.status !== 'completed')
    return { kind: 'failed', error: session.error || `Session ${session.status}`, retryable: true }
  const design = spider.design(designId)
  if (design === undefined)
    return { kind: 'failed', error: `No engine design found for "${designId}"`, retryable: false }
  if (design.collect === undefined) return { kind: 'completed', yields: sessionYields(session), of: 'Session' }
  const result = collected(await design.collect(sessionId, givens, context))
  return { kind: 'completed', yields: result.yields, of: 'Session', ...('graft' in result && plainGraft(result)) }
}

/** A graft as JSON, which is what is kept of it until it is applied. */
function plainGraft({ graft, graftTail }: { readonly graft?: unknown; readonly graftTail?: unknown }): {
  readonly graft?: readonly RigTemplateEngine[]
  readonly graftTail?: string
} {
  if (graft === undefined || graft === null) return {}
  return {
    graft: asJson(graft),
    ...(graftTail === undefined ? {} : { graftTail: String(graftTail) }),
  }
}

function asJson(graft: unknown): readonly RigTemplateEngine[] {
  try {
    return JSON.parse(JSON.stringify(graft)) as readonly RigTemplateEngine[]
  } catch (error) {
    throw new NonRetryableError(`Graft validation failed: ${errorMessage(error)}`)
  }
}

/** The classifier decides whether a new attempt may succeed, as everywhere. */
function thrown(spider: SpiderContext, error: unknown): EngineOutcome {
  const verdict = classify(error, { now: spider.clock.now() })
  const { class: kind, rule } = verdict
  const retryable = kind !== 'poison' && kind !== 'invalidForState'
  const text = truncateUtf8(errorMessage(error), MAX_ERROR_TEXT_BYTES)
  const detail = `${text || 'no reason was given'} (${kind}, by ${rule})`
  return { kind: 'failed', error: text, retryable, detail, verdict }
}

/**
 * Keeps the claim while its engine runs. Under a work system the lease of the item is the only one: there the claim is only
 * checked, and a store that does not answer takes nothing away.
 */
function keepClaim(
  spider: SpiderContext,
  { rigId, engineId, token }: ClaimedEngine,
  isItem: boolean,
  onLost: () => void,
): () => void {
  const { clock, config } = spider
  const leaseMs = config.engineLeaseMs
  const renew = (): Promise<boolean> =>
    spider.change(async () => {
      const tx = await RigTransaction.load(spider, rigId)
      const { claim, status } = tx?.engine(engineId) ?? {}
      if (tx === undefined || status !== 'running' || claim?.token !== token) return false
      if (claim.leaseUntil === undefined) return true
      tx.set(engineId, { claim: { ...claim, leaseUntil: spider.later(leaseMs) } })
      await tx.save()
      return true
    })
  const check = (): Promise<boolean> => withTimeout(clock, leaseMs / 3, renew(), () => true).catch(() => true)
  return keepLease({ clock, leaseMs, renew: isItem ? check : renew, onLost })
}
