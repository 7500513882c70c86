import type { Claimed, Envelope, Lease } from '../../../src/ports/item.js'
import type { Effect, Settlement } from '../../../src/ports/settlement.js'

export const DAY = 86_400_000

export function item(id: string, over: Partial<Envelope> = {}): Envelope {
  const base = { id, type: 't', groupId: `g-${id}`, input: 'null', queueAt: 0, startAt: 0, attempt: 1, priority: 0 }
  return { ...base, ...over }
}

export const push = (envelope: Envelope, delayMs = 0): Effect => ({
  do: 'push',
  item: envelope,
  queue: 'default',
  delayMs,
})

export const enqueue = (envelope: Envelope, delayMs = 0, more: readonly Effect[] = []): Settlement => ({
  guard: { by: 'absent', id: envelope.id },
  effects: [{ do: 'openGroup', groupId: envelope.groupId, by: 1 }, push(envelope, delayMs), ...more],
})

export const byLease = (lease: Lease, effects: readonly Effect[]): Settlement => ({
  guard: { by: 'lease', lease },
  effects,
})

export function finish({ lease, envelope }: Claimed, result?: string, more: readonly Effect[] = []): Settlement {
  return byLease(lease, [
    ...more,
    { do: 'finish', id: lease.id, ending: 'done', keepMs: DAY, ...(result === undefined ? {} : { result }) },
    { do: 'closeGroup', groupId: envelope.groupId, by: 1 },
  ])
}

export function park({ lease, envelope }: Claimed, error = 'Error: boom'): Settlement {
  return byLease(lease, [
    { do: 'park', id: lease.id, ending: 'exhausted', class: 'retryable', error, keepMs: 30 * DAY },
    { do: 'closeGroup', groupId: envelope.groupId, by: 1 },
  ])
}

export const retryAt = ({ lease, envelope }: Claimed, delayMs: number): Settlement =>
  byLease(lease, [{ do: 'retryAt', id: lease.id, attempt: envelope.attempt + 1, delayMs, why: 'retry' }])

export const defer = ({ lease, envelope }: Claimed, delayMs: number): Settlement =>
  byLease(lease, [{ do: 'retryAt', id: lease.id, attempt: envelope.attempt, delayMs, why: 'deferred' }])

export const release = ({ lease }: Claimed, delayMs?: number): Settlement =>
  byLease(lease, [{ do: 'release', id: lease.id, ...(delayMs === undefined ? {} : { delayMs }) }])

/** The effects of a fan-out of these children into the parent's group. */
export function children({ envelope }: Claimed, ids: readonly string[]): readonly Effect[] {
  const { groupId, id: parent } = envelope
  return [{ do: 'openGroup', groupId, by: ids.length }, ...ids.map((id) => push(item(id, { groupId, parent })))]
}

export const contribute = (
  groupId: string,
  value: string,
  more: { final?: boolean; expect?: number } = {},
): Effect => ({
  do: 'contribute',
  groupId,
  value,
  final: false,
  ...more,
})

/** A hand-written body as the scenarios have it. */
export const env = (id: string, over: Partial<Envelope> = {}): string =>
  JSON.stringify({ ...item(id, { type: 'noop', groupId: 'g', retry: { attempts: 1 } }), ...over })
