import type { At } from '../../core/time.js'
import { unreachable } from '../../core/unreachable.js'
import { toWellFormed } from '../../core/well-formed.js'
import { redriven } from '../../ports/envelope.js'
import type { Attempt, Envelope } from '../../ports/item.js'
import type { Effect } from '../../ports/settlement.js'
import { restOf, withRest } from './columns.js'
import type { GateBook } from './gate-book.js'
import type { GroupBook } from './group-book.js'
import type { Leases } from './leases.js'
import type { ItemRow, Statements } from './sql.js'
import {
  ALONE,
  CANCELLED,
  COMPLETED,
  DEAD,
  GATED,
  HAS_ATTEMPTS,
  HAS_GATE,
  HAS_TAGS,
  RETRYING,
  SCHEDULED,
  WAITING,
  WATCHED,
} from './states.js'
import type { Told } from './told.js'

type Of<K extends Effect['do']> = Extract<Effect, { do: K }>
export type ItemEffect = Of<'recordAttempt' | 'retryAt' | 'release' | 'finish' | 'park' | 'reopen' | 'erase' | 'cancel'>

/** One batch on its way. */
export interface Pass {
  readonly sql: Statements
  readonly now: At
  readonly leases: Leases
  readonly told: Told
  readonly groups: GroupBook
  readonly gates: GateBook
}

/** How many runs of one item are remembered: one that is deferred for ever must not grow for ever. */
const MAX_ATTEMPTS = 100

/** The item, unless its time is over: then its id is free, also where the sweep has not yet come. */
export function present(pass: Pass, id: string): ItemRow | undefined {
  const row = pass.sql.itemRow.get(id)
  if (row === undefined || row[5] === null || row[5] > pass.now) return row
  forget(pass.sql, row[0], id, row[4])
  pass.told.removed += 1
  return undefined
}

/** Everything that belongs to an item goes with it. */
export function forget(sql: Statements, seq: number, id: string, flags: number): void {
  sql.deleteItem.run(seq)
  if (flags & HAS_TAGS) sql.deleteTags.run(seq)
  if (flags & HAS_ATTEMPTS) sql.deleteAttempts.run(seq)
  if (flags & WATCHED) {
    sql.deleteWatchers.run('i', id)
    if (flags & ALONE) sql.deleteWatchers.run('g', id)
  }
}

/**
 * What becomes of the items that a settlement names. `row` is that of the item behind the guard, as the guard read it;
 * `isHolder`: it is its holder who settles it.
 */
export function applyToItem(
  pass: Pass,
  effects: readonly ItemEffect[],
  guarded: string | undefined,
  row: ItemRow | undefined,
  isHolder: boolean,
): void {
  let known = row
  let attempt: Attempt | undefined
  for (const effect of effects) {
    const found = effect.id === guarded && known !== undefined ? known : pass.sql.itemRow.get(effect.id)
    if (found === undefined) continue
    if (effect.do === 'recordAttempt') {
      if (isFolded(effect.was, effect.id, effects)) attempt = effect.was
      else {
        recordAttempt(pass, found, effect.was)
        if (effect.id === guarded) known = withFlag(found, HAS_ATTEMPTS)
      }
      continue
    }
    const isSettled = isHolder && effect.id === guarded
    if (!isSettled && found[1] !== null && effect.do !== 'cancel' && effect.do !== 'erase')
      pass.sql.dropToken.run(found[0])
    applyOne(pass, effect, found, effect.do === 'finish' ? attempt : undefined)
    if (effect.id === guarded) known = undefined
  }
}

const withFlag = ([seq, token, settledBy, state, flags, goneAt, waiter, queue]: ItemRow, flag: number): ItemRow => [
  seq,
  token,
  settledBy,
  state,
  flags | flag,
  goneAt,
  waiter,
  queue,
]

/** A run that simply succeeded is remembered in the row of its item: most are. */
function isFolded(was: Attempt, id: string, effects: readonly ItemEffect[]): boolean {
  return (
    was.class === undefined &&
    was.rule === undefined &&
    was.error === undefined &&
    was.fingerprint === undefined &&
    effects.length === 2 &&
    effects[0]?.do === 'recordAttempt' &&
    effects[1]?.do === 'finish' &&
    effects[1].id === id
  )
}

function applyOne(pass: Pass, effect: Exclude<ItemEffect, Of<'recordAttempt'>>, row: ItemRow, ran?: Attempt): void {
  const { sql, now, told } = pass
  const [seq, , , , flags, , , queue] = row
  switch (effect.do) {
    case 'retryAt': {
      const dueAt = now + Math.max(0, effect.delayMs)
      const isDue = dueAt <= now
      const state = isDue ? WAITING : effect.attempt > 1 ? RETRYING : SCHEDULED
      sql.retryItem.run(state, isDue ? null : dueAt, effect.attempt, dueAt, dueAt, seq)
      if (flags & HAS_TAGS) sql.stateTags.run(state, seq)
      told.nudge(queue, dueAt)
      return
    }
    case 'release': {
      const { delayMs, hold } = effect
      const [by, key] = [hold?.by ?? null, hold?.key ?? null]
      if (delayMs === undefined) {
        const found = sql.releaseItem.get(now, Number(by !== null), now, now, by, now, key, now, seq)
        told.nudge(queue, found?.[0] ?? now)
        if (flags & HAS_TAGS) sql.stateTags.run(found?.[1] ?? WAITING, seq)
        return
      }
      if (delayMs <= 0) {
        sql.releaseNow.run(now, seq)
        if (flags & HAS_TAGS) sql.stateTags.run(WAITING, seq)
        told.nudge(queue, now)
        return
      }
      const dueAt = delayMs === Number.POSITIVE_INFINITY ? null : now + delayMs
      const released = sql.releaseLater.get(Number(by !== null), dueAt, dueAt, by, key, seq)
      if (flags & HAS_TAGS) sql.stateTags.run(released?.[0] ?? SCHEDULED, seq)
      if (dueAt !== null) told.nudge(queue, dueAt)
      return
    }
    case 'finish':
      end(pass, effect, row, ran)
      return
    case 'park':
      end(pass, effect, row)
      return
    case 'reopen':
      reopen(pass, effect, row)
      return
    case 'erase':
      erase(pass, effect.id, row)
      return
    case 'cancel': {
      const holder = sql.cancelItem.get(toWellFormed(effect.reason), seq)?.[0]
      // Its holder looks at once instead of at its next heartbeat.
      if (holder != null) told.end(holder, effect.id)
      return
    }
    default:
      unreachable(effect)
  }
}

function recordAttempt({ sql }: Pass, [seq]: ItemRow, was: Attempt): void {
  const n = (sql.lastAttempt.get(seq)?.[0] ?? 0) + 1
  addAttempt(sql, seq, n, was)
  sql.markAttempt.run(was.fingerprint ?? null, was.startedAt, seq)
  if (n > MAX_ATTEMPTS) sql.dropAttempts.run(seq, n - MAX_ATTEMPTS)
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
  )
}

function end(pass: Pass, effect: Of<'finish' | 'park'>, row: ItemRow, ran?: Attempt): void {
  const { sql, now, groups, gates, told } = pass
  const [seq, , , , flags, , waiter] = row
  const { id, ending } = effect
  const isAlone = (flags & ALONE) !== 0
  if (isAlone) groups.know(id, row)
  const alone = isAlone ? groups.endAlone(id, seq) : undefined
  // It ends and its group does not: from here on the group stands by itself.
  if (isAlone && alone === undefined) groups.part(id)
  const [value, final, version] = [alone?.value ?? null, Number(alone?.final ?? false), alone?.version ?? 0]
  const goneAt = now + effect.keepMs
  if (effect.do === 'finish' && ran !== undefined) {
    const { attempt, startedAt, endedAt, worker } = ran
    sql.finishItem.run(
      ending,
      effect.result ?? null,
      now,
      goneAt,
      value,
      final,
      version,
      startedAt,
      attempt,
      startedAt,
      endedAt,
      worker,
      seq,
    )
  } else {
    const isDone = effect.do === 'finish'
    const state = isDone ? COMPLETED : ending === 'cancelled' ? CANCELLED : DEAD
    const outcome = isDone ? (effect.result ?? null) : toWellFormed(effect.error)
    const [of, print] = isDone ? [null, null] : [effect.class, effect.fingerprint ?? null]
    sql.endItem.run(state, ending, of, outcome, now, goneAt, print, value, final, version, seq)
  }
  if (flags & HAS_TAGS)
    sql.stateTags.run(effect.do === 'finish' ? COMPLETED : ending === 'cancelled' ? CANCELLED : DEAD, seq)
  tellWatchers(sql, told, id, flags, waiter)
  if (flags & HAS_GATE) gates.dropHolding(id)
  if (flags & GATED) gates.tellAll(id, effect.do === 'finish')
}

/** Whoever waits for the item hears that it has ended, once. */
function tellWatchers(sql: Statements, told: Told, id: string, flags: number, waiter: string | null): void {
  if (waiter !== null) told.end(waiter, id)
  if ((flags & WATCHED) === 0) return
  for (const [inbox] of sql.watchers.all('i', id)) if (inbox !== waiter) told.end(inbox, id)
  sql.deleteWatchers.run('i', id)
}

/** As if it had arrived now, for the first time; only its history, its fence and who settled it last go on. */
function reopen({ sql, now, told, groups, gates }: Pass, { id, delayMs }: Of<'reopen'>, row: ItemRow): void {
  const [seq, , , , flags, , , queue] = row
  if (flags & ALONE) groups.part(id)
  if (flags & HAS_GATE) gates.dropHolding(id)
  const found = sql.reopenRow.get(seq)
  if (found === undefined) return
  const [rest, ranAttempt, ranFrom, ranTo, ranBy, waiter, type, groupId, priority] = found
  const dueAt = now + Math.max(0, delayMs)
  const isDue = dueAt <= now
  const envelope: Envelope = withRest(
    { id, type, groupId, input: '', queueAt: 0, startAt: 0, attempt: 1, priority },
    waiter,
    rest,
  )
  const newSeq = sql.nextSeq.get()?.[0] ?? seq
  const again = redriven(envelope, now, dueAt)
  const state = isDue ? WAITING : SCHEDULED
  sql.reopenItem.run(newSeq, state, dueAt, isDue ? null : dueAt, dueAt, now, restOf(again), again.deadline ?? null, seq)
  if (flags & HAS_TAGS) sql.moveTags.run(newSeq, state, seq)
  if (flags & HAS_ATTEMPTS) sql.moveAttempts.run(newSeq, seq)
  if (ranAttempt !== null) {
    const was = { attempt: ranAttempt, startedAt: ranFrom, endedAt: ranTo, worker: ranBy }
    addAttempt(sql, newSeq, (sql.lastAttempt.get(newSeq)?.[0] ?? 0) + 1, was)
    sql.setFlags.run(HAS_ATTEMPTS, newSeq)
  }
  // A gate may have been opened over it while it was dead: then it has counted it, and waits for it no more.
  told.nudge(queue, dueAt)
}

function erase({ sql, groups, gates }: Pass, id: string, row: ItemRow): void {
  const [seq, , , , flags] = row
  if (flags & ALONE) {
    groups.know(id, row)
    groups.part(id)
  }
  if (flags & HAS_GATE) gates.dropHolding(id)
  // Its group goes on without it, and with it those who wait for the group.
  forget(sql, seq, id, flags & ~ALONE)
}
