import type { ChangeHandler } from '../../stacks/watch/events.js'
import type { SpiderContext } from '../context.js'
import type { EngineRow, RigRow } from '../rigs/rig.js'
import { enginesOf } from '../rigs/rig-transaction.js'

/**
 * A writ ends as its rig does, in the same transaction. Only the newest rig of a writ counts: an old one that is
 * cancelled later must not end a writ whose retry is running.
 */
export function writFollowsRig(context: SpiderContext): ChangeHandler<RigRow> {
  return async (event) => {
    if (event.type !== 'update' || event.prev.status === event.entry.status) return
    const rig = event.entry
    const writ = await context.writs.get(rig.writId)
    if (writ === null || context.clerk.isTerminal(writ)) return
    if ((await newestRig(context, rig.writId))?.id !== rig.id) return
    switch (rig.status) {
      case 'running':
      case 'blocked':
        return
      case 'stuck':
        if (writ.phase === 'open')
          await context.clerk.transition(writ.id, 'stuck', {
            resolution: failureText(await enginesOf(context, rig.id)),
          })
        return
      case 'completed':
        // A writ that a person stuck while its rig went on has no step to its end.
        if (writ.phase === 'stuck') await context.clerk.transition(writ.id, 'open')
        await context.clerk.transition(writ.id, 'completed', {
          resolution: resolutionOf(rig, await enginesOf(context, rig.id)),
        })
        return
      case 'failed':
        await context.clerk.transition(writ.id, 'failed', { resolution: failureText(await enginesOf(context, rig.id)) })
        return
      case 'cancelled': {
        const engines = await enginesOf(context, rig.id)
        const reason = engines.find(({ status, error }) => status === 'cancelled' && error !== undefined)?.error
        await context.clerk.transition(writ.id, 'cancelled', { resolution: reason || 'Rig cancelled' })
        return
      }
    }
  }
}

/** The rig that decides what becomes of its writ. */
export async function newestRig(context: SpiderContext, writId: string): Promise<RigRow | undefined> {
  const [rig] = await context.rigs.find({ where: [['writId', '=', writId]], orderBy: ['attempt', 'desc'], limit: 1 })
  return rig
}

function failureText(engines: readonly EngineRow[]): string {
  return engines.find(({ status }) => status === 'failed')?.error || 'Engine failure'
}

function resolutionOf({ resolutionEngineId }: RigRow, engines: readonly EngineRow[]): string {
  const completed = engines.filter(({ status }) => status === 'completed')
  const chosen =
    completed.find(({ engineId }) => engineId === resolutionEngineId) ??
    completed.find(({ engineId }) => engineId === 'seal') ??
    completed.at(-1)
  return chosen === undefined ? 'Rig completed' : JSON.stringify(chosen.yields)
}
