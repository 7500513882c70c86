import { type EnvelopeHead, treeId } from '../../ports/item.js'
import type { Effect } from '../../ports/settlement.js'
import type { OpenGate } from './outcome.js'

const NONE: readonly never[] = []

/**
 * What the end of an item means to others: its group has one open item less, and the gates that count it are notified. While
 * the item's tree goes on below it, the last item of the tree notifies the gates that wait for the tree. `opened`: gates that
 * this item opens over itself.
 */
export function endEffects(
  envelope: EnvelopeHead,
  completed: boolean,
  isTreeGoingOn = false,
  opened: readonly OpenGate[] = NONE,
): readonly Effect[] {
  const { id, groupId, gates = NONE, trees = NONE } = envelope
  // Most items: only their group has one less.
  if (gates.length + trees.length + opened.length === 0) return [{ do: 'leaveGroup', groupId, count: 1 }]
  const own = opened.filter(({ members }) => members.includes(id)).map(({ key }) => key)
  const effects: Effect[] = [{ do: 'leaveGroup', groupId, count: 1 }]
  for (const key of [...gates, ...own]) effects.push({ do: 'notifyGate', key, member: id, completed })
  if (!isTreeGoingOn)
    for (const { key, of } of trees) effects.push({ do: 'notifyGate', key, member: treeId(id, of), completed })
  return effects
}
