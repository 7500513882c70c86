import { cancelReason } from '../../../work/control/item-actions.js'
import type { WorkSystem } from '../../../work/create-work.js'
import type { WorkState } from '../../../work/define/work.js'
import type { SpiderContext } from '../context.js'
import { record } from '../engines/settle-engine.js'
import type { EngineRow } from '../rigs/rig.js'
import { RigTransaction } from '../rigs/rig-transaction.js'

/** `rigId/engineId/attempt`, and how often that attempt was resumed: each of these is one item. */
export function itemId({ rigId, engineId, resumes = 0 }: EngineRow, attempt: number): string {
  return `${rigId}/${engineId}/${attempt}${resumes === 0 ? '' : `+${resumes}`}`
}

/** The item of an engine's present try. */
export const itemOf = (engine: EngineRow): string => itemId(engine, (engine.attemptCount ?? 0) + 1)

/** Why a rig was cancelled with its item, where no reason was given. */
export const ITEM_CANCELLED = 'The work item was cancelled'
const ITEM_GONE = 'The work item is gone before it ran: it was discarded, or the work system has lost it'

/**
 * Settles engines whose items ended without a run: cancelled while they waited, or dead-lettered. Such an engine would keep its
 * slot forever, so it ends as its item did.
 * `seen` are items that this process has seen in the work system: only one of these can be gone from it, and not from plain ports,
 * which forget the state of what waits or runs for long. True: something was done.
 */
export async function settleEndedItems(
  context: SpiderContext,
  work: Pick<WorkSystem, 'states' | 'capabilities'>,
  seen: Set<string>,
): Promise<boolean> {
  // As many as may run at the same time.
  const rows = await context.queue.find({ where: [['kind', '=', 'item']] })
  // One question for all of them: a row has the id of its engine.
  const ids = rows.map(({ id }) => id)
  const engines = ids.length === 0 ? [] : await context.engines.find({ where: [['id', 'IN', ids]] })
  const items = new Map(engines.flatMap((engine) => (engine.item === 'pushed' ? [[itemOf(engine), engine]] : [])))
  for (const id of seen) if (!items.has(id)) seen.delete(id)
  if (items.size === 0) return false
  const states = await work.states([...items.keys()])
  let hasActed = false
  for (const [at, [id, { rigId, engineId }]] of [...items].entries()) {
    const state = states[at]
    const isGone = state === undefined && seen.has(id) && work.capabilities.atomic
    if (state !== undefined) seen.add(id)
    if (isGone || state?.status === 'dead' || state?.status === 'success')
      hasActed = (await context.change(() => settleFromItem(context, rigId, engineId, id, state))) || hasActed
  }
  return hasActed
}

/** The outcome of a run is recorded before its item ends: an engine that still waits for this item had no run that was recorded. */
async function settleFromItem(
  context: SpiderContext,
  rigId: string,
  engineId: string,
  id: string,
  state: WorkState | undefined,
): Promise<boolean> {
  const tx = await RigTransaction.load(context, rigId)
  const engine = tx?.engine(engineId)
  if (tx === undefined || engine?.status !== 'running' || engine.item !== 'pushed' || itemOf(engine) !== id)
    return false
  // Running it again could be what a person has just prevented, and cancelling its writ what no one asked for: a person decides.
  if (state === undefined) await record(context, tx, engine, { kind: 'failed', error: ITEM_GONE, retryable: false })
  else if (state.status === 'success') {
    // For example, the books were restored to an earlier time than the items. The same run once more, as another item.
    tx.set(engineId, { item: 'due', claim: undefined, resumes: (engine.resumes ?? 0) + 1 })
    await tx.save()
  } else if (state.ending === 'cancelled')
    await record(context, tx, engine, { kind: 'cancelled', reason: cancelReason(state.error) || ITEM_CANCELLED })
  else {
    const error = `The work item died (${state.ending ?? 'dead'}): ${state.error ?? 'nothing is known of why'}`
    await record(context, tx, engine, { kind: 'failed', error, retryable: true })
  }
  return true
}
