import type { Guard } from '../../ports/settlement.js'

/** The item that a guard is about; '' where it is about none. */
export function guardedId(guard: Guard): string {
  return guard.by === 'lease' ? guard.lease.id : guard.by === 'absent' || guard.by === 'status' ? guard.id : ''
}
