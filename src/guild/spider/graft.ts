import type { CrawlResult } from './api.js'
import { engineOnCycle, engineProblem } from './check-engines.js'
import { endedOr } from './claim.js'
import { failEngine } from './end-rig.js'
import type { Floor } from './floor.js'
import type { PendingGraft } from './rig.js'
import { Sheet } from './sheet.js'
import { engineRow } from './spawn.js'

/** Adds the engines of the next graft to their rig. */
export async function graftNext(floor: Floor): Promise<CrawlResult | null> {
  const [first] = await floor.queue.find({ where: [['kind', '=', 'graft']], orderBy: ['at', 'asc'], limit: 1 })
  if (first === undefined) return null
  return floor.change(async () => {
    const sheet = await Sheet.load(floor, first.rigId)
    const [graft, ...rest] = sheet?.rig.pendingGrafts ?? []
    if (sheet === undefined || graft === undefined || !sheet.isActive) return null
    const { engineId } = graft
    const problem = graftProblem(floor, sheet, graft)
    if (problem !== undefined)
      return failEngine(floor, sheet, engineId, { error: `Graft validation failed: ${problem}`, retryable: false })
    sheet.setRig({ pendingGrafts: rest.length === 0 ? undefined : rest })
    await addEngines(floor, sheet, graft)
    await sheet.save()
    const graftedEngineIds = graft.engines.map(({ id }) => id)
    return endedOr(sheet, { action: 'engine-grafted', rigId: sheet.rig.id, engineId, graftedEngineIds })
  })
}

async function addEngines(floor: Floor, sheet: Sheet, { engineId, engines, tail }: PendingGraft): Promise<void> {
  const { id: rigId, writId } = sheet.rig
  const writ = await floor.writs.get(writId)
  if (writ === null) throw new Error(`Writ ${writId} of rig ${rigId} is gone.`)
  const there = sheet.engines
  for (const [i, engine] of engines.entries()) sheet.add(engineRow(floor, rigId, there.length + i, engine, writ))
  if (tail === undefined) return
  for (const { engineId: id, upstream, status } of there)
    if (upstream.includes(engineId) && status === 'pending') sheet.set(id, { upstream: [...upstream, tail] })
}

function graftProblem(floor: Floor, sheet: Sheet, { engineId, engines, tail }: PendingGraft): string | undefined {
  if (!Array.isArray(engines)) return 'graft must be a list of engines'
  const max = floor.config.maxEnginesPerRig
  const total = sheet.engines.length + engines.length
  if (total > max) return `the rig would have ${total} engines, and ${max} are allowed`
  const existing = new Map(sheet.engines.map((engine) => [engine.engineId, engine.upstream]))
  const problem = engineProblem(engines, {
    existing,
    designProblem: (id) => (floor.design(id) === undefined ? `unknown design "${id}"` : undefined),
  })
  if (problem !== undefined || tail === undefined) return problem
  if (!engines.some(({ id }) => id === tail)) return `graftTail "${tail}" is none of the grafted engines`
  // Those downstream will wait for the tail: that must not make the tail wait for itself.
  const joined = new Map<string, readonly string[]>(
    sheet.engines.map(({ engineId: id, upstream }) => [
      id,
      upstream.includes(engineId) ? [...upstream, tail] : upstream,
    ]),
  )
  for (const { id, upstream = [] } of engines) joined.set(id, upstream)
  const onCycle = engineOnCycle(joined)
  return onCycle === undefined ? undefined : `with graftTail "${tail}", engine "${onCycle}" is upstream of itself`
}
