import type { ItemSummary } from '../../ports/ledger.js'
import type { Desk } from '../desk.js'
import { pausedBy } from '../explain.js'
import { type Found, onlyIfStill } from './suspicion.js'

/** A resume gives places back in steps, with every look that is taken at the queues: so many looks are taken here first. */
const LOOKS = 50

/** Items that stand aside for a pause that is over. */
export async function forgottenByPauses(desk: Desk, views: readonly ItemSummary[]): Promise<readonly Found[]> {
  const { ledger } = desk
  const aside = views.filter(({ hold }) => hold?.by === 'pause')
  if (aside.length === 0 || ledger.paused === undefined) return []
  let left = aside.filter((view) => view !== undefined)
  for (let look = 0; look < LOOKS && left.length > 0; look += 1) {
    if (look > 0) await desk.now()
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
    const again = await desk.summaries(over.map(({ envelope }) => envelope.id))
    left = over.filter((view, i) => again[i]?.hold?.by === 'pause' && again[i].hold.key === view.hold?.key)
  }
  return left.map((view): Found => {
    const { id, type } = view.envelope
    const { what, name } = pausedBy(view.hold!)
    return {
      code: 'pause-over',
      id,
      text: `${id} (${type}) stands aside for a pause of ${what} "${name}" that is over.`,
      repair: 'Give it its old place back.',
      // Without a delay it keeps its due time; one that has none is ready now.
      mend: onlyIfStill(view, [view.dueAt === undefined ? { do: 'release', id, delayMs: 0 } : { do: 'release', id }]),
    }
  })
}
