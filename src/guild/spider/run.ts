import { classify } from '../../core/classify.js'
import { errorMessage, MAX_ERROR_TEXT_BYTES, truncateUtf8 } from '../../core/error-text.js'
import { NonRetryableError } from '../../core/failure-errors.js'
import type { EngineRunContext, EngineRunResult, RigTemplateEngine } from '../fabricator/engine-design.js'
import { collected } from '../fabricator/yields.js'
import type { Claimed } from './claim.js'
import type { Floor } from './floor.js'
import { sessionYields } from './session.js'
import type { Outcome } from './settle.js'
import { Sheet } from './sheet.js'

/** The claim was lost while the engine ran: its rig was ended, or another process took over. */
const LOST = 'The engine is no longer this process’s to run.'

/** Runs an engine, or collects its session, outside of any transaction. Never throws: a failure is an outcome. */
export async function runEngine(floor: Floor, claimed: Claimed, outer?: AbortSignal): Promise<Outcome> {
  const { rigId, engineId, token } = claimed
  const controller = new AbortController()
  const onAbort = () => controller.abort(outer?.reason)
  outer?.addEventListener('abort', onAbort, { once: true })
  if (outer?.aborted === true) onAbort()
  floor.runs.set(token, { rigId, engineId, token, controller })
  const stopRenewing = renew(floor, claimed, controller)
  try {
    const context = { ...claimed.context, signal: controller.signal }
    return claimed.sessionId === undefined ? await run(floor, claimed, context) : await collect(floor, claimed, context)
  } catch (error) {
    return thrown(floor, error)
  } finally {
    stopRenewing()
    floor.runs.delete(token)
    outer?.removeEventListener('abort', onAbort)
  }
}

async function run(floor: Floor, { designId, givens }: Claimed, context: EngineRunContext): Promise<Outcome> {
  const design = floor.design(designId)
  if (design === undefined)
    return { kind: 'failed', error: `No engine design found for "${designId}"`, retryable: false }
  return outcomeOf(await design.run(givens, context))
}

function outcomeOf(result: EngineRunResult): Outcome {
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
    case 'failed':
      return {
        kind: 'failed',
        error: truncateUtf8(String(result.error), MAX_ERROR_TEXT_BYTES),
        retryable: result.retryable === true,
      }
    default:
      // Plain JavaScript can return anything at all.
      return { kind: 'failed', error: 'The engine returned no result that Spider knows', retryable: false }
  }
}

async function collect(floor: Floor, claimed: Claimed, context: EngineRunContext): Promise<Outcome> {
  const { designId, givens, sessionId = '' } = claimed
  const session = await floor.sessions.get(sessionId)
  if (session === null) return { kind: 'failed', error: `Session ${sessionId} is missing`, retryable: true }
  if (session.status === 'cancelled') return { kind: 'cancelled' }
  if (session.status !== 'completed')
    return { kind: 'failed', error: session.error || `Session ${session.status}`, retryable: true }
  const design = floor.design(designId)
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

/** Whether a fresh attempt may succeed is the classifier's to say, as everywhere. */
function thrown(floor: Floor, error: unknown): Outcome {
  const { class: kind, rule } = classify(error, { now: floor.clock.now() })
  const retryable = kind !== 'poison' && kind !== 'invalidForState'
  const text = truncateUtf8(errorMessage(error), MAX_ERROR_TEXT_BYTES)
  return { kind: 'failed', error: text, retryable, detail: `${text || 'no reason was given'} (${kind}, by ${rule})` }
}

/** Renews the claim of a crawl while its engine runs, and notices when it is lost. */
function renew(floor: Floor, { rigId, engineId, token }: Claimed, controller: AbortController): () => void {
  let isOver = false
  let cancel = () => {}
  const everyMs = floor.config.engineLeaseMs / 3
  const arm = (): void => {
    cancel = floor.clock.after(everyMs, () => {
      renewOnce()
        .then((isOurs) => isOurs || isOver || controller.abort(new Error(LOST)))
        // A store that cannot be reached now is asked again at the next turn; until then the lease runs.
        .catch(() => undefined)
        .finally(() => isOver || arm())
    })
  }
  const renewOnce = (): Promise<boolean> =>
    floor.change(async () => {
      if (isOver) return true
      const sheet = await Sheet.load(floor, rigId)
      const { claim, status } = sheet?.engine(engineId) ?? {}
      if (sheet === undefined || status !== 'running' || claim?.token !== token) return false
      if (claim.leaseUntil === undefined) return true
      sheet.set(engineId, { claim: { ...claim, leaseUntil: floor.later(floor.config.engineLeaseMs) } })
      await sheet.save()
      return true
    })
  arm()
  return () => {
    isOver = true
    cancel()
  }
}
