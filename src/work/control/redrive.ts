import type { Ms } from '../../core/time/time.js'
import type { EnvelopeHead } from '../../ports/item.js'
import type { Effect } from '../../ports/settlement.js'

// Who may redrive what, one item or many: ops/actions. At a terminal: cli/commands/redrive.ts.

/**
 * What a redrive of a dead item writes, under the guard that it is dead: it runs again with the same id and history, from its first
 * attempt, and its group, which may have closed, is open again. What its envelope keeps: `redrivenEnvelope` of ports/envelope.ts.
 */
export function redriveEffects({ id, groupId }: EnvelopeHead, delayMs: Ms): readonly Effect[] {
  return [
    { do: 'joinGroup', groupId, count: 1 },
    { do: 'redrive', id, delayMs },
  ]
}
