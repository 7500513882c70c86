import type { CrawlResult } from '../api.js'
import type { SpiderContext } from '../context.js'
import { endedOr } from '../engines/claim-engine.js'
import { changeRig } from './change-rig.js'
import { engineOnCycle, engineProblem } from './check-engines.js'
import { failEngine } from './end-rig.js'
import type { PendingGraft } from './rig.js'
import { RigTransaction } from './rig-transaction.js'
import { engineRow } from './spawn.js'

/** Adds the engines of the next graft to their rig. */
export async function graftNext(context: SpiderContext): Promise<CrawlResult | null> {
  const [first] = await context.queue.find({ where: [['kind', '=', 'graft']], orderBy: ['at', 'asc'], limit: 1 })
  if (first === undefined) return null
  const change = async (): Promise<CrawlResult | null> => {
    const tx = await RigTransaction.load(context, first.rigId)
    const [graft, ...rest] = tx?.rig.pendingGrafts ?? []
    if (tx === undefined || graft === undefined || !tx.isActive) return null
    const { engineId } = graft
    const problem = graftProblem(context, tx, graft)
    if (problem !== undefined)
      return failEngine(context, tx, engineId, { error: `Graft validation failed: ${problem}`, retryable: false })
    tx.setRig({ pendingGrafts: rest.length === 0 ? undefined : rest })
    await addEngines(context, tx, graft)
    await tx.save()
    const graftedEngineIds = graft.engines.map(({ id }) => id)
    return endedOr(tx, { action: 'engine-grafted', rigId: tx.rig.id, engineId, graftedEngineIds })
  }
  return changeRig(context, first.rigId, change, (result) => result)
}

async function addEngines(
  context: SpiderContext,
  tx: RigTransaction,
  { engineId, engines, tail }: PendingGraft,
): Promise<void> {
  const { id: rigId, writId } = tx.rig
  const writ = await context.writs.get(writId)
  if (writ === null) throw new Error(`Writ ${writId} of rig ${rigId} is gone.`)
  const there = tx.engines
  for (const [i, engine] of engines.entries()) tx.add(engineRow(context, rigId, there.length + i, engine, writ))
  if (tail === undefined) return
  for (const { engineId: id, upstream, status } of there)
    if (upstream.includes(engineId) && status === 'pending') tx.set(id, { upstream: [...upstream, tail] })
}

function graftProblem(
  context: SpiderContext,
  tx: RigTransaction,
  { engineId, engines, tail }: PendingGraft,
): string | undefined {
  if (!Array.isArray(engines)) return 'graft must be a list of engines'
  const max = context.config.maxEnginesPerRig
  const total = tx.engines.length + engines.length
  if (total > max) return `the rig would have ${total} engines, and ${max} are allowed`
  const existing = new Map(tx.engines.map((engine) => [engine.engineId, engine.upstream]))
  const problem = engineProblem(engines, {
    existing,
    designProblem: (id) => (context.design(id) === undefined ? `unknown design "${id}"` : undefined),
  })
  if (problem !== undefined || tail === undefined) return problem
  if (!engines.some(({ id }) => id === tail)) return `graftTail "${tail}" is none of the grafted engines`
  // Those downstream will wait for the tail: that must not make the tail wait for itself.
  const joined = new Map<string, readonly string[]>(
    tx.engines.map(({ engineId: id, upstream }) => [id, upstream.includes(engineId) ? [...upstream, tail] : upstream]),
  )
  for (const { id, upstream = [] } of engines) joined.set(id, upstream)
  const onCycle = engineOnCycle(joined)
  return onCycle === undefined ? undefined : `with graftTail "${tail}", engine "${onCycle}" is upstream of itself`
}
