import { errorMessage } from '../../../core/text/error-text.js'
import type { Guild } from '../../host/guild.js'
import type { ChangeHandler } from '../../stacks/watch/events.js'
import type { SpiderContext } from '../context.js'
import { isActive, type RigRow } from '../rigs/rig.js'
import { RigTransaction } from '../rigs/rig-transaction.js'

/** A session, as its provider keeps it in a book. */
export interface SessionDoc {
  readonly id: string
  readonly status: string
  readonly error?: string
  readonly output?: unknown
  readonly conversationId?: string
}

/** What a provider of sessions may offer: the apparatus that owns the book of sessions. */
export interface SessionCanceller {
  cancel(sessionId: string, options: { readonly reason: string }): Promise<unknown> | unknown
}

const ENDED: readonly string[] = ['completed', 'failed', 'timeout', 'cancelled']

export const isSessionEnded = (session: SessionDoc): boolean => ENDED.includes(session.status)

/** The yields of a session whose design has no `collect`. */
export function sessionYields(session: SessionDoc): Readonly<Record<string, unknown>> {
  const { id, status, output, conversationId } = session
  return {
    sessionId: id,
    sessionStatus: status,
    ...(output === undefined ? {} : { output }),
    ...(conversationId === undefined ? {} : { conversationId }),
  }
}

/** When a session ends, the engine that waits for it is ready to be collected, without polling. */
export function sessionWatcher(context: SpiderContext): ChangeHandler<SessionDoc> {
  return async (event) => {
    // A deleted session will never end.
    if (event.type !== 'delete' && !isSessionEnded(event.entry)) return
    const id = event.type === 'delete' ? event.id : event.entry.id
    const waiting = await context.queue.find({ where: [['sessionId', '=', id]] })
    for (const { kind, rigId, engineId } of waiting) {
      if (kind !== 'session') continue
      const tx = await RigTransaction.load(context, rigId)
      if (tx?.engine(engineId)?.status !== 'running') continue
      tx.set(engineId, { isSessionOver: true })
      await tx.save()
    }
  }
}

/** After a rig has ended, aborts its runs in this process; if it was cancelled, also cancels its sessions. */
export function endedRigWatcher(context: SpiderContext, guild: Pick<Guild, 'tryApparatus'>): ChangeHandler<RigRow> {
  return async (event) => {
    if (event.type !== 'update' || event.entry.status === event.prev.status || isActive(event.entry.status)) return
    const { id: rigId, status, writId } = event.entry
    for (const { engineId, token, controller, ...run } of context.runs.values()) {
      if (run.rigId !== rigId) continue
      // Beside one that failed, others are left to come to their end.
      const engine = await context.engines.get(`${rigId}/${engineId}`)
      if (engine?.status === 'running' && engine.claim?.token === token) continue
      controller.abort(new Error(`Rig ${rigId} is ${status}.`))
    }
    if (status !== 'cancelled') return
    const engines = await context.engines.find({
      where: [
        ['rigId', '=', rigId],
        ['status', '=', 'cancelled'],
      ],
    })
    for (const { sessionId, error } of engines) {
      if (sessionId === undefined) continue
      const session = await context.sessions.get(sessionId)
      if (session !== null && isSessionEnded(session)) continue
      await cancelSession(context, guild, sessionId, error ?? `Rig ${rigId} of writ ${writId} cancelled`)
    }
  }
}

async function cancelSession(
  context: SpiderContext,
  guild: Pick<Guild, 'tryApparatus'>,
  sessionId: string,
  reason: string,
) {
  // Looked up when it is needed: it may start later than Spider, or not be there.
  const provider = guild.tryApparatus<SessionCanceller>(context.config.sessions.ownerId)
  try {
    await provider?.cancel?.(sessionId, { reason })
  } catch (error) {
    const message = `Session ${sessionId} could not be cancelled: ${errorMessage(error)}`
    context.warn({ code: 'SESSION_CANCEL_FAILED', message, error })
  }
}
