import type { Ms } from '../core/time.js'
import { unreachable } from '../core/unreachable.js'
import type { ItemSummary } from '../ports/ledger.js'
import type { Effect, Settlement } from '../ports/settlement.js'
import { cancelText } from './cancel-text.js'
import type { Retention } from './settle.js'
import { tells } from './tells.js'

/** What a person can do to an item. */
export type Action = 'cancel' | 'redrive' | 'discard' | 'runNow'

/** Who acts, why, and how. */
export interface ActOptions {
  readonly who: string
  readonly why: string
  readonly keep: Retention
  /** A redriven item starts after this long. Default 0. */
  readonly delayMs?: Ms
}

/**
 * Turns an act of a person into what is to be written, given how the item was last seen. Guarded by that status: when it
 * has moved on, nothing happens, and the caller looks again and chooses again.
 */
export function act(
  view: ItemSummary,
  action: Action,
  { who, why, keep, delayMs = 0 }: ActOptions,
): Settlement | undefined {
  const { envelope, status } = view
  const log: Effect = { do: 'log', who, why, what: `${action} ${envelope.id}` }
  switch (action) {
    case 'cancel':
      if (status === 'running') {
        return guarded(view, [{ do: 'cancel', id: envelope.id, reason: why }, log])
      }
      if (status !== 'pending') return undefined
      return guarded(view, [
        {
          do: 'park',
          id: envelope.id,
          ending: 'cancelled',
          class: 'retryable',
          error: cancelText(why),
          keepMs: keep.successMs,
        },
        ...tells(envelope, false),
        log,
      ])
    case 'redrive':
      if (status !== 'dead') return undefined
      return guarded(view, [
        { do: 'openGroup', groupId: envelope.groupId, by: 1 },
        { do: 'reopen', id: envelope.id, delayMs },
        log,
      ])
    case 'discard':
      if (status !== 'dead') return undefined
      return guarded(view, [{ do: 'erase', id: envelope.id }, log])
    case 'runNow':
      if (status !== 'pending') return undefined
      return guarded(view, [{ do: 'release', id: envelope.id, delayMs: 0 }, log])
    default:
      return unreachable(action)
  }
}

function guarded(view: ItemSummary, effects: readonly Effect[]): Settlement {
  return { guard: { by: 'status', id: view.envelope.id, in: [view.status] }, effects }
}
