import { isDeepStrictEqual } from 'node:util'
import { defined } from '../../../core/defined.js'
import type { SpiderContext } from '../context.js'
import { newestRig } from './newest-rig.js'
import { type EngineRow, isSettled } from './rig.js'
import { enginesOf } from './rig-transaction.js'

/**
 * The engines of a new rig, with what they came to in the rig before where their designs ask for that. An engine is carried over
 * only together with everything upstream of it, and only if it would be run in the same way.
 */
export async function withCarriedOver(
  context: SpiderContext,
  writId: string,
  engines: readonly EngineRow[],
): Promise<readonly EngineRow[]> {
  if (!engines.some(({ designId }) => context.design(designId)?.carryOver === true)) return engines
  const rig = await newestRig(context, writId)
  if (rig?.status !== 'stuck') return engines
  const before = new Map((await enginesOf(context, rig.id)).map((engine) => [engine.engineId, engine]))
  const carried = carriedFrom(context, engines, before)
  // A rig without an engine to run would have nothing that ends it: its template has changed.
  if (carried.size === engines.length) return engines
  return engines.map((engine) => {
    const old = carried.get(engine.engineId)
    if (old === undefined) return engine
    const { status, yields, startedAt, completedAt } = old
    return { ...engine, status, ...defined({ yields, startedAt, completedAt }), carriedFrom: old.carriedFrom ?? rig.id }
  })
}

function carriedFrom(
  context: SpiderContext,
  engines: readonly EngineRow[],
  before: ReadonlyMap<string, EngineRow>,
): ReadonlyMap<string, EngineRow> {
  const fresh = new Map(engines.map((engine) => [engine.engineId, engine]))
  const known = new Map<string, boolean>()
  const isCarried = (id: string): boolean => {
    const answer = known.get(id) ?? decide(id)
    known.set(id, answer)
    return answer
  }
  const decide = (id: string): boolean => {
    const [engine, old] = [fresh.get(id), before.get(id)]
    if (engine === undefined || old === undefined || !isSettled(old.status)) return false
    // What it grafted is in the rig before, and not in the template.
    if (old.hasGrafted === true || !isSame(engine, old)) return false
    // One that was skipped would be skipped again.
    if (old.status === 'completed' && context.design(engine.designId)?.carryOver !== true) return false
    return engine.upstream.every(isCarried)
  }
  return new Map([...before].filter(([id]) => isCarried(id)))
}

/** Also of the writ: what an engine takes from it was filled in when the rig was spawned. */
function isSame(one: EngineRow, other: EngineRow): boolean {
  const essence = ({ designId, upstream, givensSpec, when }: EngineRow): unknown =>
    JSON.parse(JSON.stringify({ designId, upstream, givensSpec, when }))
  return isDeepStrictEqual(essence(one), essence(other))
}
