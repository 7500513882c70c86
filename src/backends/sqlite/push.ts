import type { Effect } from '../../ports/settlement.js'
import { restOf } from './columns.js'
import type { Pass } from './item-effects.js'
import { ACTIVE, ALONE, BLOCKED, GATED, HAS_GATE, HAS_TAGS, RETRYING, SCHEDULED, WAITING } from './states.js'

type Of<K extends Effect['do']> = Extract<Effect, { do: K }>

/** Pushes, and takes off `moves` what did not come or needs no count: a root that is alone in its group. */
export function pushAll(
  pass: Pass,
  pushes: readonly Of<'push'>[],
  moves: Map<string, number>,
  contributions: readonly Of<'contribute'>[],
): void {
  const { groups, gates } = pass
  for (const push of pushes) {
    const { id, groupId, waiter } = push.item
    const by = moves.get(groupId)
    // A root that comes alone into a group of its own name: the group lives on its row.
    const isAlone =
      id === groupId &&
      by === 1 &&
      !contributions.some((contribution) => contribution.groupId === groupId) &&
      !groups.exists(groupId)
    if (!insert(pass, push, isAlone)) {
      // It is there already, and holds its group open or has done so: counted again it would keep the group open for ever.
      moves.set(groupId, (by ?? 0) - 1)
    } else if (isAlone) moves.delete(groupId)
    else if (waiter !== undefined) groups.watch(groupId, waiter)
    if (push.hold?.by === 'gate') gates.look(push.hold.key)
  }
}

/** False: the id exists. */
function insert({ sql, now, leases, gates, told }: Pass, push: Of<'push'>, isAlone: boolean): boolean {
  const { item, queue, heldBy } = push
  const delayMs = Math.max(0, push.delayMs)
  const dueAt = delayMs === Number.POSITIVE_INFINITY ? null : now + delayMs
  const isDue = dueAt !== null && dueAt <= now
  // A hold without any time left holds nothing.
  const hold = isDue ? undefined : push.hold
  const isGated = (item.gates?.length ?? 0) > 0 || gates.awaits(item.id)
  const hasTags = item.tags !== undefined && item.tags.length > 0
  const later = hold !== undefined ? BLOCKED : item.attempt > 1 ? RETRYING : SCHEDULED
  const state = heldBy !== undefined ? ACTIVE : isDue ? WAITING : later
  const flags =
    (isGated ? GATED : 0) | (hold?.by === 'gate' ? HAS_GATE : 0) | (isAlone ? ALONE : 0) | (hasTags ? HAS_TAGS : 0)
  const changes = sql.insertItem.run(
    item.id,
    queue,
    item.type,
    item.groupId,
    item.priority,
    item.attempt,
    item.queueAt,
    item.startAt,
    item.input,
    restOf(item),
    item.waiter ?? null,
    state,
    dueAt,
    state === ACTIVE || isDue ? null : dueAt,
    hold?.by ?? null,
    hold?.key ?? null,
    flags,
    heldBy?.token ?? null,
    heldBy === undefined ? null : leases.now(sql) + heldBy.leaseMs,
    heldBy?.worker ?? null,
    heldBy === undefined ? null : now,
    heldBy === undefined ? 0 : 1,
    heldBy === undefined ? 0 : 1,
    item.deadline ?? null,
  )
  if (changes === 0) return false
  if (hasTags) {
    const [seq] = sql.itemRow.get(item.id)!
    for (const tag of item.tags) sql.addTag.run(seq, tag, state)
  }
  if (heldBy === undefined && dueAt !== null) told.nudge(queue, dueAt)
  return true
}
