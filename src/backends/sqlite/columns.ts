import type { Envelope } from '../../ports/item.js'
import { joinEnvelope, restOfEnvelope } from '../shared/envelope-columns.js'

const COLUMNS = new Set(['id', 'type', 'groupId', 'input', 'queueAt', 'startAt', 'attempt', 'priority', 'waiter'])

export const restOf = (envelope: Envelope): string | null => restOfEnvelope(envelope, COLUMNS)

export function withRest<T extends object>(named: T, waiter: string | null, rest: string | null): T {
  return joinEnvelope(waiter === null ? named : Object.assign(named, { waiter }), rest)
}
