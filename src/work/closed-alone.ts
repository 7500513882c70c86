import type { EnvelopeHead } from '../ports/item.js'
import type { ClosedGroup, Settlement } from '../ports/settlement.js'

/**
 * The group that an item has closed by its end, when it was alone in it: a root that queued nothing. Then that is certain even
 * where the answer which said so was lost. In other groups somebody else may have been the last, and has told of it.
 *
 * `isFolded`: what it said was folded again before it was sent again, perhaps on itself. Only the backend knows the value.
 */
export function closedAlone(
  { parent, groupId }: EnvelopeHead,
  { effects }: Settlement,
): (ClosedGroup & { readonly isFolded: boolean }) | undefined {
  const hasEnded = effects.some((effect) => effect.do === 'finish' || effect.do === 'park')
  const hasQueued = effects.some((effect) => effect.do === 'push')
  if (!hasEnded || hasQueued || parent !== undefined) return undefined
  const said = effects.findLast((effect) => effect.do === 'contribute')
  // Whether somebody waits elsewhere was part of the answer: nobody calls it an orphan for that.
  const isFolded = said?.expect !== undefined
  return { groupId, watched: true, isFolded, ...(said === undefined ? {} : { value: said.value }) }
}
