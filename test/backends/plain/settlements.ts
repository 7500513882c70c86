import type { ClaimedItem, Envelope, Lease } from '../../../src/ports/item.js'
import type { Effect, Settlement } from '../../../src/ports/settlement.js'

export const DAY = 86_400_000

export function item(id: string, over: Partial<Envelope> = {}): Envelope {
  const base = { id, type: 't', groupId: `g-${id}`, input: 'null', queueAt: 0, startAt: 0, attempt: 1, priority: 0 }
  return { ...base, ...over }
}

export const push = (envelope: Envelope, delayMs = 0): Effect => ({
  do: 'enqueue',
  item: envelope,
  queue: 'default',
  delayMs,
})

export const enqueue = (envelope: Envelope, delayMs = 0, more: readonly Effect[] = []): Settlement => ({
  guard: { by: 'absent', id: envelope.id },
  effects: [{ do: 'joinGroup', groupId: envelope.groupId, count: 1 }, push(envelope, delayMs), ...more],
})

export const byLease = (lease: Lease, effects: readonly Effect[]): Settlement => ({
  guard: { by: 'lease', lease },
  effects,
})

export function complete({ lease, envelope }: ClaimedItem, result?: string, more: readonly Effect[] = []): Settlement {
  return byLease(lease, [
    ...more,
    { do: 'complete', id: lease.id, ending: 'completed', keepMs: DAY, ...(result === undefined ? {} : { result }) },
    { do: 'leaveGroup', groupId: envelope.groupId, count: 1 },
  ])
}

export function deadLetter({ lease, envelope }: ClaimedItem, error = 'Error: boom'): Settlement {
  return byLease(lease, [
    { do: 'deadLetter', id: lease.id, ending: 'exhausted', class: 'retryable', error, keepMs: 30 * DAY },
    { do: 'leaveGroup', groupId: envelope.groupId, count: 1 },
  ])
}

export const retry = ({ lease, envelope }: ClaimedItem, delayMs: number): Settlement =>
  byLease(lease, [{ do: 'retry', id: lease.id, attempt: envelope.attempt + 1, delayMs, reason: 'retry' }])

export const defer = ({ lease, envelope }: ClaimedItem, delayMs: number): Settlement =>
  byLease(lease, [{ do: 'retry', id: lease.id, attempt: envelope.attempt, delayMs, reason: 'deferred' }])

export const release = ({ lease }: ClaimedItem, delayMs?: number): Settlement =>
  byLease(lease, [{ do: 'release', id: lease.id, ...(delayMs === undefined ? {} : { delayMs }) }])

/** The effects of a fan-out of these children into the parent's group. */
export function children({ envelope }: ClaimedItem, ids: readonly string[]): readonly Effect[] {
  const { groupId, id: parent } = envelope
  return [{ do: 'joinGroup', groupId, count: ids.length }, ...ids.map((id) => push(item(id, { groupId, parent })))]
}

export const setGroupValue = (
  groupId: string,
  value: string,
  more: { final?: boolean; ifVersion?: number } = {},
): Effect => ({
  do: 'setGroupValue',
  groupId,
  value,
  final: false,
  ...more,
})

/** A hand-written body as the scenarios have it. */
export const env = (id: string, over: Partial<Envelope> = {}): string =>
  JSON.stringify({ ...item(id, { type: 'noop', groupId: 'g', retry: { attempts: 1 } }), ...over })
