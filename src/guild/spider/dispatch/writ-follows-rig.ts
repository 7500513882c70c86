import type { ChangeHandler } from '../../stacks/watch/events.js'
import type { SpiderContext } from '../context.js'
import { newestRig } from '../rigs/newest-rig.js'
import type { EngineRow, RigRow } from '../rigs/rig.js'
import { enginesOf } from '../rigs/rig-transaction.js'
import { endWithRig } from './families.js'

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
            resolution: rig.refusal ?? failureText(await enginesOf(context, rig.id)),
          })
        return
      case 'completed':
        await endWithRig(context, writ, rig)
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

function failureText(engines: readonly EngineRow[]): string {
  return engines.find(({ status }) => status === 'failed')?.error || 'Engine failure'
}
