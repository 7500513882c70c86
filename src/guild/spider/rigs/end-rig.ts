import type { Verdict } from '../../../core/failure/failure.js'
import { errorMessage, MAX_ERROR_TEXT_BYTES, truncateUtf8 } from '../../../core/text/error-text.js'
import { peekString } from '../../../core/text/safe-read.js'
import { TransactionDoomedError } from '../../stacks/errors.js'
import type { CrawlResult } from '../api.js'
import type { SpiderContext } from '../context.js'
import type { SpiderWritStatus } from '../dispatch/writ-status.js'
import type { EngineRow } from './rig.js'
import type { RigTransaction } from './rig-transaction.js'

/** Why an engine failed, and whether a fresh attempt may succeed. */
export interface EngineFailure {
  readonly error: string
  readonly retryable: boolean
  /** What happened, in words, where that is more than the error. */
  readonly detail?: string
  /** What the classifier said: it may ask for a wait. */
  readonly verdict?: Verdict
}

/**
 * The engine has failed, and with it the rig: both are written in the caller's transaction, together with the writ becoming stuck and
 * what Spider observed about it. So a watcher of writs sees one change, with the reason in it. Engines that run beside it are left
 * to come to their end, each with its slot; only then may the writ get another rig.
 */
export async function failEngine(
  context: SpiderContext,
  tx: RigTransaction,
  engineId: string,
  failure: EngineFailure,
): Promise<CrawlResult> {
  const { error, retryable } = failure
  if (!tx.isActive) return endBeside(context, tx, engineId, { status: 'failed', error })
  const observedAt = context.now()
  tx.set(engineId, { ...OVER, status: 'failed', error, completedAt: observedAt, block: undefined })
  const detail = `Engine "${engineId}" failed: ${failure.detail ?? (error || 'no reason was given')}`
  // Whatever asked to be left alone means every attempt, and not only those of this rig.
  const floorMs = retryable ? (failure.verdict?.floorMs ?? 0) : 0
  const wait = floorMs > 0 ? { retryAt: context.later(floorMs) } : {}
  return stickRig(context, tx, { stuckCause: 'engine-failure', retryable, detail, observedAt, ...wait })
}

/**
 * The work was done, and a watcher in the transaction that was to record the end of the rig threw: what the engines yielded is
 * kept, and the writ is stuck with what that watcher said. Opening it tries to end the rig once more, without running an engine.
 */
export async function endRefused(
  context: SpiderContext,
  tx: RigTransaction,
  refusal: WriteRefusal,
): Promise<CrawlResult> {
  tx.setRig({ refusal: refusal.text })
  return stickRig(context, tx, refusedStatus(context, refusal))
}

/** What a watcher threw inside the transaction in which something was to be recorded. */
export interface WriteRefusal {
  readonly text: string
  /** The code of the error, if it has one. */
  readonly code?: string
}

export function writeRefusalOf(error: unknown): WriteRefusal {
  const cause = error instanceof TransactionDoomedError ? error.cause : error
  const code = peekString(cause, 'code')
  const text = truncateUtf8(errorMessage(cause), MAX_ERROR_TEXT_BYTES) || 'no reason was given'
  return code === undefined ? { text } : { text, code }
}

export function refusedStatus(context: SpiderContext, { text, code }: WriteRefusal): SpiderWritStatus {
  const by = code === undefined ? {} : { refusedBy: code }
  const detail = `What its rig came to could not be recorded: ${text}`
  return { stuckCause: 'refused', retryable: false, detail, observedAt: context.now(), ...by }
}

/** The rig is stuck, and its writ with it, for this reason. */
async function stickRig(context: SpiderContext, tx: RigTransaction, status: SpiderWritStatus): Promise<CrawlResult> {
  for (const engine of tx.engines) if (isWaiting(engine)) cancelWaiting(tx, engine)
  tx.setRig({ pendingGrafts: undefined })
  tx.end('stuck')
  const { id: rigId, writId } = tx.rig
  const before = await context.writs.get(writId)
  await tx.save()
  const after = await context.writs.get(writId)
  const isMoved = before?.phase !== 'stuck' && after?.phase === 'stuck'
  if (isMoved) await context.clerk.setWritStatus(writId, 'spider', { ...status, rigId })
  return { action: 'rig-completed', rigId, writId, outcome: 'stuck' }
}

/** The end of an engine whose rig is stuck because of another one: it is kept, and changes nothing else. */
export async function endBeside(
  context: SpiderContext,
  tx: RigTransaction,
  engineId: string,
  end: {
    readonly status: 'completed' | 'failed' | 'cancelled'
    readonly yields?: unknown
    readonly error?: string
  },
): Promise<CrawlResult> {
  tx.set(engineId, { ...OVER, ...end, completedAt: context.now(), priorBlock: undefined })
  await tx.save()
  return { action: 'engine-ended', rigId: tx.rig.id, engineId, status: end.status }
}

/** Ends a rig on request. Its sessions and runs are cancelled after the commit. */
export async function cancelRig(context: SpiderContext, tx: RigTransaction, reason: string): Promise<void> {
  const active = activeEngine(tx.engines)
  if (active !== undefined) tx.set(active.engineId, { error: reason, completedAt: context.now() })
  await endCancelled(context, tx)
}

/** Everything in the rig that has not ended is cancelled, and the rig with it. */
export async function endCancelled(context: SpiderContext, tx: RigTransaction): Promise<void> {
  for (const engine of tx.engines) if (isWaiting(engine) || engine.status === 'running') cancelWaiting(tx, engine)
  tx.setRig({ pendingGrafts: undefined })
  tx.end('cancelled')
  await tx.save()
  await rejectInputRequests(context, tx.rig.id)
}

/** What an engine that has ended no longer has. */
export const OVER = { claim: undefined, isSessionOver: undefined, item: undefined, lapses: undefined } as const

/** No process runs it; one that was handed to the work engine waits there until its item is claimed. */
const isWaiting = ({ status, item, claim }: EngineRow): boolean =>
  status === 'pending' || status === 'blocked' || (status === 'running' && item !== undefined && claim === undefined)

function cancelWaiting(tx: RigTransaction, { engineId }: EngineRow): void {
  tx.set(engineId, { ...OVER, status: 'cancelled', block: undefined, holdUntil: undefined })
}

/** The engine that the rig is working on, as a person would see it. */
function activeEngine(engines: readonly EngineRow[]): EngineRow | undefined {
  const first = (test: (engine: EngineRow) => boolean) => engines.find(test)
  return (
    first(({ status, sessionId }) => status === 'running' && sessionId !== undefined) ??
    first(({ status }) => status === 'running') ??
    first(({ status }) => status === 'blocked') ??
    first(({ status }) => status === 'pending')
  )
}

async function rejectInputRequests(context: SpiderContext, rigId: string): Promise<void> {
  const pending = await context.inputRequests.find({
    where: [
      ['rigId', '=', rigId],
      ['status', '=', 'pending'],
    ],
  })
  for (const { id } of pending) await context.inputRequests.patch(id, { status: 'rejected', message: 'Rig cancelled' })
}
