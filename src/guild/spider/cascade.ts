import type { ChangeHandler } from '../stacks/events.js'
import type { Floor } from './floor.js'
import type { EngineRow, RigRow } from './rig.js'

/**
 * What a rig comes to, its writ comes to, in the same transaction. Only the newest rig of a writ speaks for it: an old one that is
 * cancelled later must not end a writ whose retry is running.
 */
export function rigCascade(floor: Floor): ChangeHandler<RigRow> {
  return async (event) => {
    if (event.type !== 'update' || event.prev.status === event.entry.status) return
    const rig = event.entry
    const writ = await floor.writs.get(rig.writId)
    if (writ === null || floor.clerk.isTerminal(writ)) return
    if ((await newestRig(floor, rig.writId))?.id !== rig.id) return
    switch (rig.status) {
      case 'running':
      case 'blocked':
        return
      case 'stuck':
        if (writ.phase === 'open')
          await floor.clerk.transition(writ.id, 'stuck', { resolution: failureText(await enginesOf(floor, rig.id)) })
        return
      case 'completed':
        // A writ that somebody stuck by hand while its rig went on has no step to the end.
        if (writ.phase === 'stuck') await floor.clerk.transition(writ.id, 'open')
        await floor.clerk.transition(writ.id, 'completed', {
          resolution: resolutionOf(rig, await enginesOf(floor, rig.id)),
        })
        return
      case 'failed':
        await floor.clerk.transition(writ.id, 'failed', { resolution: failureText(await enginesOf(floor, rig.id)) })
        return
      case 'cancelled': {
        const engines = await enginesOf(floor, rig.id)
        const reason = engines.find(({ status, error }) => status === 'cancelled' && error !== undefined)?.error
        await floor.clerk.transition(writ.id, 'cancelled', { resolution: reason || 'Rig cancelled' })
        return
      }
    }
  }
}

/** The rig that speaks for a writ. */
export async function newestRig(floor: Floor, writId: string): Promise<RigRow | undefined> {
  const [rig] = await floor.rigs.find({ where: [['writId', '=', writId]], orderBy: ['attempt', 'desc'], limit: 1 })
  return rig
}

function enginesOf(floor: Floor, rigId: string): Promise<EngineRow[]> {
  return floor.engines.find({ where: [['rigId', '=', rigId]], orderBy: ['place', 'asc'] })
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
