import type { ItemSummary } from '../../ports/inspect.js'
import type { OpsContext } from '../context.js'
import { pausedBy } from '../items/explain.js'
import { type Found, ifUnchanged } from './found.js'

/** A resume releases items in steps, one with every claim: this many claims are made here first. */
const CLAIMS = 50

/** Items still held by a pause that is over. */
export async function heldAfterResume(context: OpsContext, views: readonly ItemSummary[]): Promise<readonly Found[]> {
  const { ledger } = context
  const held = views.filter(({ hold }) => hold?.by === 'pause')
  if (held.length === 0 || ledger.paused === undefined) return []
  let left = held
  for (let claim = 0; claim < CLAIMS && left.length > 0; claim += 1) {
    if (claim > 0) await context.now()
    const names = left.map(({ hold }) => pausedBy(hold!))
    const paused = await ledger.paused({
      queues: [...new Set(names.flatMap(({ what, name }) => (what === 'queue' ? [name] : [])))],
      types: [...new Set(names.flatMap(({ what, name }) => (what === 'type' ? [name] : [])))],
    })
    const over = left.filter((_, i) => {
      const { what, name } = names[i]!
      return !(what === 'queue' ? paused.queues : paused.types).includes(name)
    })
    if (over.length === 0) return []
    const again = await context.summaries(over.map(({ envelope }) => envelope.id))
    left = over.filter((view, i) => again[i]?.hold?.by === 'pause' && again[i].hold.key === view.hold?.key)
  }
  return left.map((view): Found => {
    const { id, type } = view.envelope
    const { what, name } = pausedBy(view.hold!)
    return {
      code: 'pause-over',
      id,
      text: `${id} (${type}) is still held by a pause of ${what} "${name}" that is over.`,
      repair: 'Release it to its old place.',
      // Without a delay it keeps its due time; an item without one is ready now.
      fix: ifUnchanged(view, [view.dueAt === undefined ? { do: 'release', id, delayMs: 0 } : { do: 'release', id }]),
    }
  })
}
