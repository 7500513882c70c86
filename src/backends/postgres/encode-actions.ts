import { unreachable } from '../../core/unreachable.js'
import type { Settlement } from '../../ports/settlement.js'
import type { SortedEffects } from '../shared/sort-effects.js'
import { storable, wholeMs } from './storable.js'

/** What only people and schedules do: guards by status and schedule, and effects that no run has. */
export function encodeActions(
  batch: readonly Settlement[],
  sorted: readonly SortedEffects[],
  next: () => number,
  locks: Set<string>,
): object | undefined {
  const found: Record<string, object[]> = {}
  const add = (kind: string, row: object): void => {
    const rows = found[kind]
    if (rows === undefined) found[kind] = [row]
    else rows.push(row)
  }
  for (const [i, { guard }] of batch.entries()) {
    const s = i + 1
    if (guard.by === 'status') add('guards', { s, kind: 'status', id: guard.id, statuses: guard.in })
    else if (guard.by === 'schedule') add('guards', { s, kind: 'schedule', name: guard.name, at: guard.at })
    const { outcomes, cancels, controls, notices } = sorted[i]!
    for (const effect of [...outcomes, ...cancels, ...controls, ...notices]) {
      switch (effect.do) {
        case 'redrive':
          add('redrive', { s, n: next(), id: effect.id, ms: wholeMs(effect.delayMs) })
          locks.add(effect.id)
          break
        case 'delete':
          add('delete', { s, id: effect.id })
          locks.add(effect.id)
          break
        case 'requestCancel':
          add('requestCancel', { s, id: effect.id, reason: storable(effect.reason) })
          locks.add(effect.id)
          break
        case 'schedule':
          add('schedule', { s, name: effect.name, spec: effect.spec, next_at: Math.round(effect.nextAt) })
          break
        case 'pause':
        case 'resume':
          add('pause', { s, pause: effect.do === 'pause', key: `${effect.what}:${effect.name}` })
          break
        case 'log': {
          const { who, why, what } = effect
          add('log', { s, n: next(), who: storable(who), why: storable(why), what: storable(what) })
          break
        }
        case 'notify':
          add('notify', { s, inbox: effect.inbox, ids: effect.ids })
          break
        case 'complete':
        case 'deadLetter':
        case 'retry':
        case 'release':
          // `encodeBatch` has these.
          break
        default:
          unreachable(effect)
      }
    }
  }
  return Object.keys(found).length === 0 ? undefined : found
}
