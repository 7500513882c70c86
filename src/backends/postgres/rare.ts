import { unreachable } from '../../core/unreachable.js'
import type { Settlement } from '../../ports/settlement.js'
import { wholeMs } from './durations.js'
import { storable } from './refusal.js'
import type { SortedEffects } from './sorted-effects.js'

/** What people's settlements hold beside the rest: guards by status and schedule, and effects that no run has. */
export function encodeRare(
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
    else if (guard.by === 'fire') add('guards', { s, kind: 'fire', name: guard.name, at: guard.at })
    for (const effect of sorted[i]!.rare) {
      switch (effect.do) {
        case 'reopen':
          add('reopen', { s, n: next(), id: effect.id, ms: wholeMs(effect.delayMs) })
          locks.add(effect.id)
          break
        case 'erase':
          add('erase', { s, id: effect.id })
          locks.add(effect.id)
          break
        case 'cancel':
          add('cancel', { s, id: effect.id, reason: storable(effect.reason) })
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
          add('notify', { s, to: effect.to, ids: effect.ids })
          break
        default:
          unreachable(effect)
      }
    }
  }
  return Object.keys(found).length === 0 ? undefined : found
}
