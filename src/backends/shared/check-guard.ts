import type { At } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { ItemStatus } from '../../ports/item.js'
import type { CommitResult, Guard } from '../../ports/settlement.js'

/** The item that a guard names, as it is stored. */
export interface GuardedItem {
  readonly status: ItemStatus
  /** The token of the lease that holds it. */
  readonly leaseToken?: string | null | undefined
  /** The token of the lease that settled it last. */
  readonly settledToken?: string | null | undefined
}

export const STALE: CommitResult = Object.freeze({ kind: 'stale' })

/** Undefined: the guard holds. Otherwise the result of the settlement, none of whose effects happen. */
export function checkGuard(
  guard: Guard,
  item: GuardedItem | undefined,
  /** When the schedule that the guard names fires next. */
  nextAt?: At,
): CommitResult | undefined {
  switch (guard.by) {
    case 'lease':
      if (item === undefined) return STALE
      if (item.leaseToken === guard.lease.token) return undefined
      return item.settledToken === guard.lease.token ? { kind: 'repeated', id: guard.lease.id } : STALE
    case 'absent':
      return item === undefined ? undefined : { kind: 'repeated', id: guard.id }
    case 'status':
      return item !== undefined && guard.in.includes(item.status) ? undefined : STALE
    case 'schedule':
      return nextAt === guard.at ? undefined : STALE
    case 'none':
      return undefined
    default:
      return unreachable(guard)
  }
}

/** The item that a guard names. */
export function guardedId(guard: Guard): string | undefined {
  if (guard.by === 'lease') return guard.lease.id
  return guard.by === 'absent' || guard.by === 'status' ? guard.id : undefined
}
