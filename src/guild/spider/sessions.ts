import { errorMessage } from '../../core/error-text.js'
import type { Guild } from '../host/guild.js'
import type { ChangeHandler } from '../stacks/events.js'
import type { Floor } from './floor.js'
import { isActive, type RigRow } from './rig.js'
import { isSessionEnded, type SessionCanceller, type SessionDoc } from './session.js'
import { Sheet } from './sheet.js'

/** A session that ends says so to the engine that waits for it: nobody has to ask. */
export function sessionWatcher(floor: Floor): ChangeHandler<SessionDoc> {
  return async (event) => {
    // One that is gone will never say that it has ended.
    if (event.type !== 'delete' && !isSessionEnded(event.entry)) return
    const id = event.type === 'delete' ? event.id : event.entry.id
    const waiting = await floor.queue.find({ where: [['sessionId', '=', id]] })
    for (const { kind, rigId, engineId } of waiting) {
      if (kind !== 'session') continue
      const sheet = await Sheet.load(floor, rigId)
      if (sheet?.engine(engineId)?.status !== 'running') continue
      sheet.set(engineId, { isSessionOver: true })
      await sheet.save()
    }
  }
}

/** After a rig has ended: runs of this process that are not wanted are told to stop, and sessions of a cancelled one are cancelled. */
export function endedRigWatcher(floor: Floor, guild: Pick<Guild, 'tryApparatus'>): ChangeHandler<RigRow> {
  return async (event) => {
    if (event.type !== 'update' || event.entry.status === event.prev.status || isActive(event.entry.status)) return
    const { id: rigId, status, writId } = event.entry
    for (const { engineId, token, controller, ...run } of floor.runs.values()) {
      if (run.rigId !== rigId) continue
      // Beside one that failed, others are left to come to their end.
      const engine = await floor.engines.get(`${rigId}/${engineId}`)
      if (engine?.status === 'running' && engine.claim?.token === token) continue
      controller.abort(new Error(`Rig ${rigId} is ${status}.`))
    }
    if (status !== 'cancelled') return
    const engines = await floor.engines.find({
      where: [
        ['rigId', '=', rigId],
        ['status', '=', 'cancelled'],
      ],
    })
    for (const { sessionId, error } of engines) {
      if (sessionId === undefined) continue
      const session = await floor.sessions.get(sessionId)
      if (session !== null && isSessionEnded(session)) continue
      await cancelSession(floor, guild, sessionId, error ?? `Rig ${rigId} of writ ${writId} cancelled`)
    }
  }
}

async function cancelSession(floor: Floor, guild: Pick<Guild, 'tryApparatus'>, sessionId: string, reason: string) {
  // Looked up when it is needed: it may start later than Spider, or not be there.
  const provider = guild.tryApparatus<SessionCanceller>(floor.config.sessions.ownerId)
  try {
    await provider?.cancel?.(sessionId, { reason })
  } catch (error) {
    const message = `Session ${sessionId} could not be cancelled: ${errorMessage(error)}`
    floor.warn({ code: 'SESSION_CANCEL_FAILED', message, error })
  }
}
