import type { EnvelopeHead } from '../ports/item.js'
import type { Effect } from '../ports/settlement.js'
import { treeId } from '../ports/tree.js'
import type { OpenGate } from './outcome.js'

/**
 * What an end means to others: its group has one less open, and the gates that count it hear of it. A tree that goes on
 * below it is told of by whoever ends last there. `opened`: gates that this very item opens over itself.
 */
export function tells(
  envelope: EnvelopeHead,
  ok: boolean,
  isTreeGoingOn = false,
  opened: readonly OpenGate[] = [],
): readonly Effect[] {
  const { id, groupId, gates = [], trees = [] } = envelope
  const effects: Effect[] = [{ do: 'closeGroup', groupId, by: 1 }]
  for (const key of gates) effects.push({ do: 'tellGate', key, member: id, ok })
  for (const { key, members } of opened) if (members.includes(id)) effects.push({ do: 'tellGate', key, member: id, ok })
  if (!isTreeGoingOn) for (const { key, of } of trees) effects.push({ do: 'tellGate', key, member: treeId(id, of), ok })
  return effects
}
