import type { Ms } from '../../src/core/time/time.js'
import type { ClaimedItem, Envelope, Hold } from '../../src/ports/item.js'
import type { ClaimRequest } from '../../src/ports/ledger.js'
import type { Effect, Settlement } from '../../src/ports/settlement.js'

/** Settlements as the engine makes them, for tests. */

const DAY: Ms = 86_400_000
export const START = 1_780_000_000_000

/** A root is the only member of a group that has its own id, unless it is given another. */
export function item(id: string, over: Partial<Envelope> = {}): Envelope {
  return {
    id,
    type: 'resize',
    groupId: id,
    input: `{"of":"${id}"}`,
    queueAt: START,
    startAt: START,
    attempt: 1,
    priority: 0,
    ...over,
  }
}

export interface PushHow {
  readonly queue?: string
  readonly delayMs?: Ms
  readonly hold?: Hold
}

function push(envelope: Envelope, how: PushHow = {}): Extract<Effect, { do: 'enqueue' }> {
  const { queue = 'default', delayMs = 0, hold } = how
  return { do: 'enqueue', item: envelope, queue, delayMs, ...(hold && { hold }) }
}

export function enqueue(envelope: Envelope, how: PushHow = {}, more: readonly Effect[] = []): Settlement {
  return {
    guard: { by: 'absent', id: envelope.id },
    effects: [push(envelope, how), { do: 'joinGroup', groupId: envelope.groupId, count: 1 }, ...more],
  }
}

function byLease(claimed: ClaimedItem, effects: readonly Effect[]): Settlement {
  return { guard: { by: 'lease', lease: claimed.lease }, effects }
}

const notices = (claimed: ClaimedItem, completed: boolean): Effect[] =>
  (claimed.envelope.gates ?? []).map((key) => ({ do: 'notifyGate', key, member: claimed.envelope.id, completed }))

export function finish(claimed: ClaimedItem, more: readonly Effect[] = [], result?: string): Settlement {
  const { id, groupId } = claimed.envelope
  return byLease(claimed, [
    { do: 'complete', id, ending: 'completed', keepMs: DAY, ...(result === undefined ? {} : { result }) },
    { do: 'leaveGroup', groupId, count: 1 },
    ...notices(claimed, true),
    ...more,
  ])
}

export function deadLetter(claimed: ClaimedItem, more: readonly Effect[] = []): Settlement {
  const { id, groupId } = claimed.envelope
  return byLease(claimed, [
    { do: 'deadLetter', id, ending: 'exhausted', class: 'retryable', error: 'Error: boom', keepMs: 30 * DAY },
    { do: 'leaveGroup', groupId, count: 1 },
    ...notices(claimed, false),
    ...more,
  ])
}

export function retry(claimed: ClaimedItem, delayMs: Ms): Settlement {
  const { id, attempt } = claimed.envelope
  return byLease(claimed, [{ do: 'retry', id, attempt: attempt + 1, delayMs, reason: 'retry' }])
}

/** Children of a run: pushed into its group, which they hold open. */
export function children(claimed: ClaimedItem, envelopes: readonly Envelope[], how: PushHow = {}): Effect[] {
  const { id, groupId } = claimed.envelope
  return [
    ...envelopes.map((envelope) => push({ ...envelope, groupId, parent: id }, how)),
    { do: 'joinGroup', groupId, count: envelopes.length },
  ]
}

/** A gate and the item that it holds, in the group of that item. */
export function gate(
  envelope: Envelope,
  members: readonly string[],
  need = members.length,
  of: 'done' | 'success' = 'success',
): Effect[] {
  const key = `gate ${envelope.id}`
  return [
    push(envelope, { delayMs: Infinity, hold: { by: 'gate', key } }),
    { do: 'joinGroup', groupId: envelope.groupId, count: 1 },
    { do: 'openGate', key, heldId: envelope.id, members, need, of },
  ]
}

export const contribute = (groupId: string, value: string, final = false, expect?: number): Effect => ({
  do: 'setGroupValue',
  groupId,
  value,
  final,
  ...(expect === undefined ? {} : { ifVersion: expect }),
})

export function ask(max: number, over: Partial<ClaimRequest> = {}): ClaimRequest {
  return { queues: [{ queue: 'default', max }], leaseMs: 30_000, worker: 'w1', ...over }
}

export const times = <T>(n: number, make: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => make(i))
