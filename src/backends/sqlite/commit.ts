import { toWellFormed } from '../../core/text/well-formed.js'
import type { At } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { CommitResult, Settlement } from '../../ports/settlement.js'
import { checkGuard, guardedId, STALE } from '../shared/check-guard.js'
import type { Notifications } from '../shared/notifications.js'
import { keepsUtf8, refusalOf, type StorageLimits } from '../shared/refusal.js'
import { type ControlEffect, type SortedEffects, sortEffects } from '../shared/sort-effects.js'
import { COMPLETED, statusOf } from '../shared/state-codes.js'
import { Profiles } from './columns.js'
import { enqueueAll } from './enqueue.js'
import { GateTable } from './gate-table.js'
import { GroupTable } from './group-table.js'
import { HotPath } from './hot-path.js'
import { applyToItem, type CommitContext, type ItemEffect, present } from './item-effects.js'
import type { Leases } from './lease.js'
import { freePaused } from './pauses.js'
import type { ItemRow, Statements } from './sql.js'

const NONE: never[] = []
const LIMITS: StorageLimits = { ...keepsUtf8, item: ({ id, input }) => keepsUtf8.text('input', id, input) }

/**
 * Applies a batch inside the caller's write transaction, one settlement after the other. Nothing else writes meanwhile, so a
 * guard goes on holding, and group and gate counts are kept in memory and written once.
 */
export function commitBatch(
  sql: Statements,
  batch: readonly Settlement[],
  now: At,
  leases: Leases,
  maxItemBytes: number,
  notifications: Notifications,
): CommitResult[] {
  const groups = new GroupTable(sql, now, notifications)
  const gates = new GateTable(sql, now, notifications)
  const context: CommitContext = { sql, now, leases, notifications, groups, gates, profiles: new Profiles(sql) }
  const results = new Array<CommitResult>(batch.length)
  const hot = new HotPath(context, results)
  const commitSlowly = (index: number): void => {
    results[index] = commitOne(context, batch[index]!, index)
  }
  for (let index = 0; index < batch.length; index += 1) {
    const settlement = batch[index]!
    const stopped = refused(settlement, maxItemBytes)
    if (stopped !== undefined) results[index] = stopped
    else if (!hot.take(settlement, index)) {
      for (const known of hot.flush()) commitSlowly(known)
      commitSlowly(index)
    }
  }
  for (const known of hot.flush()) commitSlowly(known)
  gates.close()
  for (const { groupId, value, isWatched, settlement } of groups.close()) {
    const result = results[settlement]
    if (result?.kind !== 'applied') continue
    const closed = { groupId, ...(value === null ? {} : { value }), ...(isWatched ? { watched: true } : {}) }
    results[settlement] = { kind: 'applied', closed: [...result.closed, closed] }
  }
  return results
}

function commitOne(context: CommitContext, { guard, effects }: Settlement, index: number): CommitResult {
  const id = guardedId(guard)
  const row = id === undefined ? undefined : present(context, id)
  const item = row && { status: statusOf(row[3]), leaseToken: row[1], settledToken: row[2] }
  const nextAt = guard.by === 'schedule' ? context.sql.schedule.get(guard.name)?.[0] : undefined
  const unguarded = checkGuard(guard, item, nextAt)
  if (unguarded !== undefined) return unguarded
  if (guard.by === 'lease' && row !== undefined) context.groups.know(guard.lease.id, row)
  const sorted = sortEffects(effects)
  const stopped = conflict(context, sorted) ?? notRedrivable(context, sorted)
  if (stopped !== undefined) return stopped
  apply(context, sorted, row, guard, index)
  return { kind: 'applied', closed: NONE }
}

/** A settlement that cannot be read (an effect without its fields) fails; the others of its batch do not. */
function refused(settlement: Settlement, maxItemBytes: number): CommitResult | undefined {
  try {
    return refusalOf(settlement, maxItemBytes, LIMITS)
  } catch (error) {
    return { kind: 'failed', error }
  }
}

/** The version is the one that the group will have when the effect is applied. */
function conflict({ groups }: CommitContext, { groupValues }: SortedEffects): CommitResult | undefined {
  for (const [i, { groupId, ifVersion }] of groupValues.entries()) {
    if (ifVersion === undefined) continue
    const now = groups.value(groupId)
    const before = now.final ? 0 : groupValues.slice(0, i).filter((earlier) => earlier.groupId === groupId).length
    if (now.version + before !== ifVersion) return { kind: 'conflict', groupId, now }
  }
  return undefined
}

/** An item that has not ended cannot be redriven. */
function notRedrivable(context: CommitContext, { outcomes }: SortedEffects): CommitResult | undefined {
  for (const effect of outcomes)
    if (effect.do === 'redrive' && (present(context, effect.id)?.[3] ?? 0) < COMPLETED) return STALE
  return undefined
}

function apply(
  context: CommitContext,
  sorted: SortedEffects,
  row: ItemRow | undefined,
  guard: Settlement['guard'],
  index: number,
): void {
  const { groups, gates, notifications } = context
  const { enqueues, attempts, outcomes, cancels, groupChanges, groupValues, keepMs } = sorted
  const counts = enqueueAll(context, enqueues, groupChanges, groupValues)
  for (const [groupId, count] of counts) groups.move(groupId, count, index, keepMs)
  for (const { groupId, value, final } of groupValues) groups.setValue(groupId, value, final)
  for (const gate of sorted.gates) gates.open(gate)
  const guarded = guard.by === 'absent' ? undefined : guardedId(guard)
  // The row was read before the gates of this settlement were opened.
  const known = sorted.gates.length > 0 ? undefined : row
  const items: readonly ItemEffect[] =
    cancels.length + attempts.length === 0 ? outcomes : [...attempts, ...outcomes, ...cancels]
  if (items.length > 0) applyToItem(context, items, guarded, known, guard.by === 'lease')
  for (const { key, member, completed } of sorted.gateNotices) gates.notify(key, member, completed)
  for (const { inbox, ids } of sorted.notices) for (const id of ids) notifications.end(inbox, id)
  for (const effect of sorted.controls) applyControl(context, effect)
}

function applyControl({ sql, now, notifications }: CommitContext, effect: ControlEffect): void {
  switch (effect.do) {
    case 'schedule':
      sql.putSchedule.run(effect.name, effect.spec, effect.nextAt)
      return
    case 'pause':
      sql.putPause.run(effect.what, effect.name)
      return
    case 'resume':
      if (sql.endPause.run(effect.what, effect.name) > 0) freePaused(sql, effect.what, effect.name, now, notifications)
      return
    case 'log':
      sql.addAction.run(now, toWellFormed(effect.who), toWellFormed(effect.why), toWellFormed(effect.what))
      return
    default:
      unreachable(effect)
  }
}
