import { toWellFormed } from '../../core/text/well-formed.js'
import type { At } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import { redrivenEnvelope } from '../../ports/envelope.js'
import type { Attempt, Envelope } from '../../ports/item.js'
import { ATTEMPTS_KEPT } from '../../ports/limits.js'
import type { EffectOf } from '../../ports/settlement.js'
import type { Notifications } from '../shared/notifications.js'
import type { OutcomeEffect } from '../shared/sort-effects.js'
import { ACTIVE, BLOCKED, CANCELLED, COMPLETED, DEAD, RETRYING, SCHEDULED, WAITING } from '../shared/state-codes.js'
import { type Profiles, restOf, withRest } from './columns.js'
import type { GateTable } from './gate-table.js'
import type { GroupTable } from './group-table.js'
import { GATED, HAS_ATTEMPTS, HAS_GATE, HAS_TAGS, SINGLE, WATCHED } from './item-flags.js'
import type { Leases } from './lease.js'
import { leavePlace, listOf, storedState } from './places.js'
import type { ItemRow, Statements } from './sql.js'

export type ItemEffect = OutcomeEffect | EffectOf<'recordAttempt' | 'requestCancel'>

/** The batch that is being committed. */
export interface CommitContext {
  readonly sql: Statements
  readonly now: At
  readonly leases: Leases
  readonly notifications: Notifications
  readonly groups: GroupTable
  readonly gates: GateTable
  readonly profiles: Profiles
}

/** The item, unless it has been kept long enough: then its id is free, even before the sweep removes it. */
export function present(context: CommitContext, id: string): ItemRow | undefined {
  const row = context.sql.itemRow.get(id)
  if (row === undefined || row[5] === null || row[5] > context.now) return row
  forget(context.sql, row[0], id, row[4])
  context.notifications.removed += 1
  return undefined
}

/** Everything that belongs to an item goes with it. */
export function forget(sql: Statements, seq: number, id: string, flags: number): void {
  sql.deleteItem.run(seq)
  if (flags & HAS_TAGS) sql.deleteTags.run(seq)
  if (flags & HAS_ATTEMPTS) sql.deleteAttempts.run(seq)
  if (flags & WATCHED) {
    sql.deleteWatchers.run('i', id)
    if (flags & SINGLE) sql.deleteWatchers.run('g', id)
  }
}

/**
 * What becomes of the items that a settlement names. `row` is that of the item behind the guard, as the guard read it;
 * `isHolder`: the holder of its lease settles it.
 */
export function applyToItem(
  context: CommitContext,
  effects: readonly ItemEffect[],
  guarded: string | undefined,
  row: ItemRow | undefined,
  isHolder: boolean,
): void {
  let known = row
  let attempt: Attempt | undefined
  for (const effect of effects) {
    const found = effect.id === guarded && known !== undefined ? known : context.sql.itemRow.get(effect.id)
    if (found === undefined) continue
    if (effect.do === 'recordAttempt') {
      if (isFolded(effect.was, effect.id, effects)) attempt = effect.was
      else {
        recordAttempt(context, found, effect.was)
        if (effect.id === guarded) known = withFlag(found, HAS_ATTEMPTS)
      }
      continue
    }
    // A settlement without its lease decides about it: the lease settles nothing.
    const settledBy = isHolder && effect.id === guarded ? found[1] : null
    applyOne(context, effect, found, settledBy, effect.do === 'complete' ? attempt : undefined)
    if (effect.id === guarded) known = undefined
  }
}

const withFlag = (
  [seq, token, settledToken, state, flags, keepUntil, waiter, queue]: ItemRow,
  flag: number,
): ItemRow => [seq, token, settledToken, state, flags | flag, keepUntil, waiter, queue]

/** A run that completed its item, and of which nothing else has to be remembered. */
export function isPlain(was: Attempt): boolean {
  return (
    was.class === undefined &&
    was.rule === undefined &&
    was.error === undefined &&
    was.fingerprint === undefined &&
    was.detail === undefined
  )
}

/** A run that completed its item at the first attempt is stored in the row of its item: most are. */
function isFolded(was: Attempt, id: string, effects: readonly ItemEffect[]): boolean {
  return (
    isPlain(was) &&
    effects.length === 2 &&
    effects[0]?.do === 'recordAttempt' &&
    effects[1]?.do === 'complete' &&
    effects[1].id === id
  )
}

function applyOne(
  context: CommitContext,
  effect: Exclude<ItemEffect, EffectOf<'recordAttempt'>>,
  row: ItemRow,
  settledBy: string | null,
  ran?: Attempt,
): void {
  const { sql, now, notifications } = context
  const [seq, , , state] = row
  switch (effect.do) {
    case 'retry': {
      const dueAt = now + Math.max(0, effect.delayMs)
      place(context, row, settledBy, { dueAt, attempt: effect.attempt })
      return
    }
    case 'release':
      release(context, effect, row, settledBy)
      return
    case 'complete':
    case 'deadLetter':
      end(context, effect, row, settledBy, ran)
      return
    case 'redrive':
      redrive(context, effect, row)
      return
    case 'delete':
      deleteItem(context, effect.id, row)
      return
    case 'requestCancel': {
      if (state !== ACTIVE) return
      sql.cancelItem.run(toWellFormed(effect.reason), seq)
      const holder = sql.holderOf.get(seq)?.[0]
      // Its worker reads the request now instead of with its next heartbeat.
      if (holder !== undefined) notifications.end(holder, effect.id)
      return
    }
    default:
      unreachable(effect)
  }
}

/**
 * Put back: without a delay it keeps its due time, and hence its place; a delay of nothing is a new due time all the same. What was due
 * when it was handed out is due, also if the time of day has been set back since.
 */
function release(
  context: CommitContext,
  { delayMs, hold }: EffectOf<'release'>,
  row: ItemRow,
  settledBy: string | null,
): void {
  const { sql, now } = context
  const [dueAt, attempt, , claimedAt] = sql.placeOf.get(row[0])!
  if (delayMs === undefined) {
    const isLater = dueAt !== null && dueAt > Math.max(now, claimedAt ?? 0)
    place(context, row, settledBy, { dueAt: dueAt ?? now, attempt, isLater, hold: isLater ? hold : undefined })
  } else {
    const at = delayMs === Number.POSITIVE_INFINITY ? null : now + Math.max(0, delayMs)
    place(context, row, settledBy, { dueAt: at, attempt, isLater: delayMs > 0, hold: delayMs > 0 ? hold : undefined })
  }
}

interface Place {
  /** Null: only its hold can free it. */
  readonly dueAt: At | null
  readonly attempt: number
  readonly isLater?: boolean
  readonly hold?: EffectOf<'release'>['hold']
}

/** Open again, in another place. A retry has an attempt of its own to start at, and begins to be delivered anew. */
function place(context: CommitContext, row: ItemRow, settledBy: string | null, to: Place): void {
  const { sql, now, notifications } = context
  const [seq, , , was, flags, , , queue] = row
  const { dueAt, attempt, hold } = to
  const isRetry = to.isLater === undefined
  const isLater = to.isLater ?? dueAt! > now
  const state = !isLater ? WAITING : hold !== undefined ? BLOCKED : attempt > 1 ? RETRYING : SCHEDULED
  const deliveries = isRetry ? 0 : (sql.placeOf.get(seq)?.[2] ?? 0) + Number(was === ACTIVE)
  leavePlace(sql, seq, was)
  const [by, key] = [hold?.by ?? null, hold?.key ?? null]
  const wakeAt = isLater ? dueAt : null
  const startAt = isRetry ? dueAt : null
  sql.placeItem.run(storedState(state), dueAt, wakeAt, by, key, attempt, startAt, deliveries, settledBy, seq)
  if (state === WAITING) sql.addReady.run(listOf([seq]))
  if (flags & HAS_TAGS) sql.stateTags.run(state, seq)
  if (dueAt !== null) notifications.wake(queue, dueAt)
}

function recordAttempt({ sql }: CommitContext, [seq]: ItemRow, was: Attempt): void {
  const n = (sql.lastAttempt.get(seq)?.[0] ?? 0) + 1
  addAttempt(sql, seq, n, was)
  sql.markAttempt.run(was.fingerprint ?? null, was.startedAt, seq)
  if (n > ATTEMPTS_KEPT) sql.dropAttempts.run(seq, n - ATTEMPTS_KEPT)
}

function addAttempt(sql: Statements, seq: number, n: number, was: Attempt): void {
  sql.addAttempt.run(
    seq,
    n,
    was.attempt,
    was.startedAt,
    was.endedAt,
    toWellFormed(was.worker),
    was.class ?? null,
    was.rule ?? null,
    was.error === undefined ? null : toWellFormed(was.error),
    was.fingerprint ?? null,
    was.detail === undefined ? null : toWellFormed(JSON.stringify(was.detail)),
  )
}

function end(
  context: CommitContext,
  effect: EffectOf<'complete' | 'deadLetter'>,
  row: ItemRow,
  settledBy: string | null,
  ran?: Attempt,
): void {
  const { sql, now, groups, gates, notifications } = context
  const [seq, , , was, flags, , waiter] = row
  const { id, ending } = effect
  const isSingle = (flags & SINGLE) !== 0
  if (isSingle) groups.know(id, row)
  const single = isSingle ? groups.endSingle(id, seq) : undefined
  // It ends and its group does not: from here on the group has a row.
  if (isSingle && single === undefined) groups.part(id)
  const [value, final, version] = [single?.value ?? null, Number(single?.final ?? false), single?.version ?? 0]
  const isDone = effect.do === 'complete'
  const state = isDone ? COMPLETED : ending === 'cancelled' ? CANCELLED : DEAD
  const outcome = isDone ? (effect.result ?? null) : toWellFormed(effect.error)
  const [of, print] = isDone ? [null, null] : [effect.class, effect.fingerprint ?? null]
  const keepUntil = now + effect.keepMs
  if (was === WAITING) leavePlace(sql, seq, was)
  sql.endItem.run(state, ending, of, outcome, now, keepUntil, settledBy, print, value, final, version, seq)
  if (was === ACTIVE) leavePlace(sql, seq, was)
  if (ran !== undefined) sql.foldAttempt.run(ran.startedAt, ran.attempt, ran.startedAt, ran.endedAt, ran.worker, seq)
  if (flags & HAS_TAGS) sql.stateTags.run(state, seq)
  notifyWatchers(sql, notifications, id, flags, waiter)
  if (flags & HAS_GATE) gates.dropHolding(id)
  if (flags & GATED) gates.notifyAll(id, effect.do === 'complete')
}

/** Notifies each inbox that waits for the item, once. */
function notifyWatchers(
  sql: Statements,
  notifications: Notifications,
  id: string,
  flags: number,
  waiter: string | null,
): void {
  if (waiter !== null) notifications.end(waiter, id)
  if ((flags & WATCHED) === 0) return
  for (const [inbox] of sql.watchers.all('i', id)) if (inbox !== waiter) notifications.end(inbox, id)
  sql.deleteWatchers.run('i', id)
}

/** As if it had arrived now, for the first time; only its attempts, its fence and the token that settled it last remain. */
function redrive(
  { sql, now, notifications, groups, gates }: CommitContext,
  { id, delayMs }: EffectOf<'redrive'>,
  row: ItemRow,
): void {
  const [seq, , , , flags, , , queue] = row
  if (flags & SINGLE) groups.part(id)
  if (flags & HAS_GATE) gates.dropHolding(id)
  const found = sql.redriveRow.get(seq)
  if (found === undefined) return
  const [rest, ranAttempt, ranStartedAt, ranEndedAt, ranWorker, waiter, type, groupId, priority] = found
  const dueAt = now + Math.max(0, delayMs)
  const isDue = dueAt <= now
  const envelope: Envelope = withRest(
    { id, type, groupId, input: '', queueAt: 0, startAt: 0, attempt: 1, priority },
    waiter,
    rest,
  )
  const newSeq = sql.nextSeq.get()?.[0] ?? seq
  const again = redrivenEnvelope(envelope, now, dueAt)
  const state = isDue ? WAITING : SCHEDULED
  sql.redriveItem.run(
    newSeq,
    storedState(state),
    dueAt,
    isDue ? null : dueAt,
    dueAt,
    now,
    restOf(again),
    again.deadline ?? null,
    seq,
  )
  if (isDue) sql.addReady.run(listOf([newSeq]))
  if (flags & HAS_TAGS) sql.moveTags.run(newSeq, state, seq)
  if (flags & HAS_ATTEMPTS) sql.moveAttempts.run(newSeq, seq)
  if (ranAttempt !== null) {
    const was = { attempt: ranAttempt, startedAt: ranStartedAt, endedAt: ranEndedAt, worker: ranWorker }
    addAttempt(sql, newSeq, (sql.lastAttempt.get(newSeq)?.[0] ?? 0) + 1, was)
    sql.setFlags.run(HAS_ATTEMPTS, newSeq)
  }
  // A gate may have been opened over it while it was dead: then it has counted the item, and does not wait for it.
  notifications.wake(queue, dueAt)
}

function deleteItem({ sql, groups, gates }: CommitContext, id: string, row: ItemRow): void {
  const [seq, , , state, flags] = row
  leavePlace(sql, seq, state)
  if (flags & SINGLE) {
    groups.know(id, row)
    groups.part(id)
  }
  if (flags & HAS_GATE) gates.dropHolding(id)
  // Its group goes on without it, and so do the watchers of the group.
  forget(sql, seq, id, flags & ~SINGLE)
}
