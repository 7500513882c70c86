import { cancelReason } from '../../work/cancel-text.js'
import type { WorkSystem } from '../../work/create-work.js'
import type { WorkState } from '../../work/work.js'
import type { Floor } from './floor.js'
import { itemOf } from './item-id.js'
import { record } from './settle.js'
import { Sheet } from './sheet.js'

/** Why a rig was cancelled whose item was, when whoever did it gave no reason. */
export const ITEM_CANCELLED = 'The work item was cancelled'
const ITEM_GONE = 'The work item is gone before it ran: it was discarded, or the work system has lost it'

/**
 * Looks after the engines that were handed to the work engine: an item may end without anybody running it. Somebody cancelled it
 * while it waited, or it was given up. Its engine would wait for ever, with its slot, so it is told what its item came to.
 * `seen` are items that this process has seen in the work system: only one of these can be gone from it, and not from plain ports,
 * which forget the state of what waits or runs for long. True: something was done.
 */
export async function lookAfterItems(
  floor: Floor,
  work: Pick<WorkSystem, 'states' | 'capabilities'>,
  seen: Set<string>,
): Promise<boolean> {
  // As many as may run at once.
  const rows = await floor.queue.find({ where: [['kind', '=', 'item']] })
  // One question for all of them: a row has the id of its engine.
  const ids = rows.map(({ id }) => id)
  const engines = ids.length === 0 ? [] : await floor.engines.find({ where: [['id', 'IN', ids]] })
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
      hasActed = (await floor.change(() => told(floor, rigId, engineId, id, state))) || hasActed
  }
  return hasActed
}

/** The outcome of a run is recorded before its item ends: an engine that still waits for this item had no run that told of itself. */
async function told(
  floor: Floor,
  rigId: string,
  engineId: string,
  id: string,
  state: WorkState | undefined,
): Promise<boolean> {
  const sheet = await Sheet.load(floor, rigId)
  const engine = sheet?.engine(engineId)
  if (sheet === undefined || engine?.status !== 'running' || engine.item !== 'pushed' || itemOf(engine) !== id)
    return false
  // To run it again could be what somebody has just prevented, to cancel its writ what nobody wanted: a person knows.
  if (state === undefined) await record(floor, sheet, engine, { kind: 'failed', error: ITEM_GONE, retryable: false })
  else if (state.status === 'success') {
    // Books that were put back to an earlier time than the items, say. The same run once more, as another item.
    sheet.set(engineId, { item: 'due', claim: undefined, resumes: (engine.resumes ?? 0) + 1 })
    await sheet.save()
  } else if (state.ending === 'cancelled')
    await record(floor, sheet, engine, { kind: 'cancelled', reason: cancelReason(state.error) || ITEM_CANCELLED })
  else {
    const error = `The work item was given up (${state.ending ?? 'dead'}): ${state.error ?? 'nothing is known of why'}`
    await record(floor, sheet, engine, { kind: 'failed', error, retryable: true })
  }
  return true
}
