import type { EffectOf } from '../../ports/settlement.js'
import type { GroupChange } from '../shared/sort-effects.js'
import { ACTIVE, BLOCKED, RETRYING, SCHEDULED, WAITING } from '../shared/state-codes.js'
import type { CommitContext } from './item-effects.js'
import { GATED, HAS_GATE, HAS_TAGS, SINGLE } from './item-flags.js'
import { holdItems, storedState } from './places.js'

/**
 * Enqueues, and yields what the settlement adds to the open count of each group: without enqueues whose ids exist, and without
 * groups whose only member is their root, which need no row. That saves most items a write (see
 * bench/ledger-on-stores.bench.ts).
 */
export function enqueueAll(
  context: CommitContext,
  enqueues: readonly EffectOf<'enqueue'>[],
  groupChanges: ReadonlyMap<string, GroupChange>,
  groupValues: readonly EffectOf<'setGroupValue'>[],
): ReadonlyMap<string, number> {
  const { groups, gates } = context
  const counts = new Map<string, number>()
  for (const { groupId, joined, left } of groupChanges.values()) counts.set(groupId, joined - left)
  for (const enqueue of enqueues) {
    const { id, groupId, waiter } = enqueue.item
    const count = counts.get(groupId)
    const isSingle =
      id === groupId && count === 1 && !groupValues.some((one) => one.groupId === groupId) && !groups.exists(groupId)
    if (!insert(context, enqueue, isSingle)) {
      // The id exists, and its item holds its group open or has done so: counted again it would keep the group open forever.
      counts.set(groupId, (count ?? 0) - 1)
    } else if (isSingle) counts.delete(groupId)
    else if (waiter !== undefined) groups.watch(groupId, waiter)
    if (enqueue.hold?.by === 'gate') gates.check(enqueue.hold.key)
  }
  return counts
}

/** False: the id exists. */
function insert(
  { sql, now, leases, gates, notifications, profiles }: CommitContext,
  enqueue: EffectOf<'enqueue'>,
  isSingle: boolean,
): boolean {
  const { item, queue, leasedTo } = enqueue
  const delayMs = Math.max(0, enqueue.delayMs)
  const dueAt = delayMs === Number.POSITIVE_INFINITY ? null : now + delayMs
  const isDue = dueAt !== null && dueAt <= now
  // A hold without any time left holds nothing.
  const hold = isDue ? undefined : enqueue.hold
  const isGated = (item.gates?.length ?? 0) > 0 || gates.awaits(item.id)
  const hasTags = item.tags !== undefined && item.tags.length > 0
  const later = hold !== undefined ? BLOCKED : item.attempt > 1 ? RETRYING : SCHEDULED
  const state = leasedTo !== undefined ? ACTIVE : isDue ? WAITING : later
  const flags =
    (isGated ? GATED : 0) | (hold?.by === 'gate' ? HAS_GATE : 0) | (isSingle ? SINGLE : 0) | (hasTags ? HAS_TAGS : 0)
  const found = sql.insertItem.get(
    item.id,
    queue,
    item.type,
    item.groupId === item.id ? null : item.groupId,
    item.priority,
    item.attempt,
    item.queueAt,
    item.startAt,
    item.input,
    ...profiles.columnsOf(item),
    item.waiter ?? null,
    storedState(state),
    dueAt,
    state === ACTIVE || isDue ? null : dueAt,
    hold?.by ?? null,
    hold?.key ?? null,
    flags,
    item.deadline ?? null,
  )
  if (found === undefined) return false
  const [seq] = found
  if (leasedTo !== undefined) {
    const { token, worker, leaseMs } = leasedTo
    holdItems(sql, [seq], { token, queue, until: leases.now(sql) + leaseMs, worker }, now)
  } else if (dueAt !== null && isDue) sql.putReady.run(queue, item.type, -item.priority, dueAt, seq)
  if (hasTags) for (const tag of item.tags) sql.addTag.run(seq, tag, state)
  if (leasedTo === undefined && dueAt !== null) notifications.wake(queue, dueAt)
  return true
}
