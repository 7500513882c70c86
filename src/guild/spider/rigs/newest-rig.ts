import type { SpiderContext } from '../context.js'
import type { EngineRow, RigRow } from './rig.js'

/** The rig that decides what becomes of its writ. */
export async function newestRig(context: SpiderContext, writId: string): Promise<RigRow | undefined> {
  const [rig] = await context.rigs.find({ where: [['writId', '=', writId]], orderBy: ['attempt', 'desc'], limit: 1 })
  return rig
}

/** What the writ of a completed rig says of its end. */
export function resolutionOf({ resolutionEngineId }: RigRow, engines: readonly EngineRow[]): string {
  const completed = engines.filter(({ status }) => status === 'completed')
  const chosen =
    completed.find(({ engineId }) => engineId === resolutionEngineId) ??
    completed.find(({ engineId }) => engineId === 'seal') ??
    completed.at(-1)
  return chosen === undefined ? 'Rig completed' : JSON.stringify(chosen.yields)
}
