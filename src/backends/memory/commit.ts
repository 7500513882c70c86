import type { At } from '../../core/time.js'
import { keepsAnything, refusalOf } from '../../ports/refusal.js'
import type { ClosedGroup, CommitResult, Settlement } from '../../ports/settlement.js'
import type { Book } from './book.js'
import { type Commit, openForReal } from './commit-step.js'
import { applyEffect } from './effects.js'
import { tellGroupWatchers } from './elsewhere.js'
import { fullnessOf } from './fullness.js'
import { FLAG } from './group-record.js'
import { guardResult } from './guards.js'
import { hindranceOf } from './hindrance.js'
import type { ItemRecord } from './item-record.js'
import { DAY } from './kept-for.js'
import { claimFire } from './schedules.js'
import type { Time } from './time.js'

type Applied = Extract<CommitResult, { readonly kind: 'applied' }>

const APPLIED: Applied = Object.freeze({ kind: 'applied', closed: Object.freeze([]) as Applied['closed'] })

/** Applies a batch in one turn. Each settlement happens as a whole or not at all, and none of them disturbs the others. */
export function commitBatch(
  book: Book,
  batch: readonly Settlement[],
  maxItemBytes: number,
  time: Time,
): readonly CommitResult[] {
  const commit: Commit = {
    now: time.wall(),
    steady: time.steady(),
    index: 0,
    keepMs: DAY,
    guarded: undefined,
    absent: undefined,
    group: undefined,
    opening: undefined,
    left: [],
    moved: [],
  }
  const results: CommitResult[] = []
  for (let index = 0; index < batch.length; index += 1) {
    commit.index = index
    results.push(settled(book, batch[index]!, maxItemBytes, commit))
  }
  closeGroups(book, commit, results)
  book.sweep(commit.now, 2 * batch.length + 8)
  book.trim(commit.now)
  book.shelf.settled()
  return results
}

/** One that makes no sense (an effect without its fields) must not take its neighbours with it. */
function settled(book: Book, settlement: Settlement, maxItemBytes: number, commit: Commit): CommitResult {
  try {
    return settleOne(book, settlement, maxItemBytes, commit)
  } catch (error) {
    return { kind: 'failed', error }
  }
}

function settleOne(book: Book, settlement: Settlement, maxItemBytes: number, commit: Commit): CommitResult {
  const { guard, effects } = settlement
  const { now } = commit
  const stopped =
    guardResult(book, guard, commit) ??
    refusalOf(settlement, maxItemBytes, keepsAnything) ??
    fullnessOf(book, settlement) ??
    hindranceOf(book, effects, now)
  if (stopped !== undefined) return stopped
  if (guard.by === 'lease' && commit.guarded !== undefined) commit.guarded.settledBy = guard.lease.token
  if (guard.by === 'fire') claimFire(book, guard.name, guard.at, now)
  commit.keepMs = keepMsOf(effects)
  for (let index = 0; index < effects.length; index += 1) applyEffect(book, effects[index]!, commit)
  openForReal(book, commit)
  return APPLIED
}

/** A group is kept as long as the item whose end closes it. */
function keepMsOf(effects: Settlement['effects']): number {
  for (let index = 0; index < effects.length; index += 1) {
    const effect = effects[index]!
    if (effect.do === 'finish' || effect.do === 'park') return effect.keepMs
  }
  return DAY
}

/** Compares the counts with 0 once the whole batch has moved them: what one closes and the next opens stays open. */
function closeGroups(book: Book, { moved, left, now }: Commit, results: CommitResult[]): void {
  for (const { record, by } of left) {
    if (record.lone === 'leaving') closeLone(book, record, by, now, results)
    else if (record.group !== undefined && record.group.movedBy < 0) {
      // Others came into the group after it had left.
      record.group.movedBy = by
      moved.push(record.group)
    }
  }
  for (const group of moved) {
    const by = group.movedBy
    group.movedBy = -1
    if (group.open > 0) {
      if (group.keepUntil !== Number.POSITIVE_INFINITY) book.keepGroup(group, Number.POSITIVE_INFINITY)
      group.done = undefined
      continue
    }
    if (group.done !== undefined) continue
    group.done = FLAG
    book.keepGroup(group, now + group.keepMs)
    addClosed(results, by, closedGroup(book, group.id, group.value, group.watchers !== undefined, now))
    tellGroupWatchers(book, group, now)
    book.shelf.signals.closed(group.id)
  }
}

function closeLone(book: Book, record: ItemRecord, by: number, now: At, results: CommitResult[]): void {
  const { groupId, waiter } = record.envelope
  record.lone = 'closed'
  addClosed(results, by, closedGroup(book, groupId, record.loneValue, waiter !== undefined, now))
  if (waiter !== undefined && book.shelf.signals.tellGroup(waiter, groupId)) book.await(record, now)
  book.shelf.signals.closed(groupId)
}

function addClosed(results: CommitResult[], by: number, one: ClosedGroup): void {
  const result = results[by]
  const closed = result?.kind === 'applied' ? result.closed : []
  results[by] = { kind: 'applied', closed: closed.length === 0 ? [one] : [...closed, one] }
}

function closedGroup(book: Book, groupId: string, value: string | undefined, isAwaited: boolean, now: At): ClosedGroup {
  const { keys } = book.shelf
  // A waiter on the plain path leaves a key.
  const watched = isAwaited || (keys.size > 0 && keys.text(book.names.wait(groupId), now) !== undefined)
  if (!watched) return value === undefined ? { groupId } : { groupId, value }
  return value === undefined ? { groupId, watched } : { groupId, value, watched }
}
