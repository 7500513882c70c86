import type { At } from '../../../core/time/time.js'
import { unreachable } from '../../../core/unreachable.js'
import { KEEP_COMPLETED_MS } from '../../../ports/limits.js'
import type { CommitResult, Effect, EffectOf, Settlement } from '../../../ports/settlement.js'
import { checkGuard, STALE } from '../../shared/check-guard.js'
import { keepsAnything, type Refused, refusalOf } from '../../shared/refusal.js'
import { keepMsOf } from '../../shared/sort-effects.js'
import { closeGroups } from '../groups/close-groups.js'
import { groupValue } from '../groups/group-table.js'
import { bytesOfText, ITEM_BYTES } from '../items/bytes.js'
import {
  complete,
  deadLetter,
  deleteItem,
  enqueue,
  recordAttempt,
  redrive,
  release,
  requestCancel,
  retry,
} from '../items/item-effects.js'
import type { ItemTable } from '../items/item-table.js'
import type { Time } from '../time.js'
import { type CommitContext, groupOf, joinGroup, leaveGroup, openPending, singleIn } from './commit-context.js'

type Applied = Extract<CommitResult, { readonly kind: 'applied' }>

const APPLIED: Applied = Object.freeze({ kind: 'applied', closed: Object.freeze([]) as Applied['closed'] })

/** Applies a batch in one turn. Each settlement happens as a whole or not at all, and none of them disturbs the others. */
export function commitBatch(
  table: ItemTable,
  batch: readonly Settlement[],
  maxItemBytes: number,
  time: Time,
): readonly CommitResult[] {
  const commit: CommitContext = {
    now: time.wall(),
    steady: time.steady(),
    index: 0,
    keepMs: KEEP_COMPLETED_MS,
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
    results.push(commitOne(table, batch[index]!, maxItemBytes, commit))
  }
  closeGroups(table, commit, results)
  table.sweep(commit.now, 2 * batch.length + 8)
  table.trim(commit.now)
  table.context.settled()
  return results
}

/** A settlement that cannot be read (an effect without its fields) fails; the others of its batch do not. */
function commitOne(
  table: ItemTable,
  settlement: Settlement,
  maxItemBytes: number,
  commit: CommitContext,
): CommitResult {
  try {
    const { guard, effects } = settlement
    const stopped =
      guardResult(table, guard, commit) ??
      refusalOf(settlement, maxItemBytes, keepsAnything) ??
      refusalWhenFull(table, settlement) ??
      conflictOf(table, effects, commit.now)
    if (stopped !== undefined) return stopped
    if (guard.by === 'lease' && commit.guarded !== undefined) commit.guarded.settledToken = guard.lease.token
    commit.keepMs = keepMsOf(effects)
    for (let index = 0; index < effects.length; index += 1) applyEffect(table, effects[index]!, commit)
    openPending(table, commit)
    return APPLIED
  } catch (error) {
    return { kind: 'failed', error }
  }
}

/** Undefined: the guard holds, and the context has what it found. */
function guardResult(table: ItemTable, guard: Settlement['guard'], commit: CommitContext): CommitResult | undefined {
  commit.absent = guard.by === 'absent' ? guard.id : undefined
  commit.group = undefined
  commit.opening = undefined
  // A lease holds its item beyond the time that the item is kept.
  if (guard.by === 'lease') commit.guarded = table.known(guard.lease.id)
  else commit.guarded = guard.by === 'absent' || guard.by === 'status' ? table.item(guard.id, commit.now) : undefined
  const nextAt = guard.by === 'schedule' ? table.schedules.get(guard.name)?.nextAt : undefined
  return checkGuard(guard, commit.guarded, nextAt)
}

/**
 * Why an enqueue is refused for now: with it more would be stored than the backend may hold. What a run settles is always
 * taken, its children too: if it were refused it would run again, and free nothing.
 */
function refusalWhenFull({ context }: ItemTable, { guard, effects }: Settlement): Refused | undefined {
  if (guard.by === 'lease') return undefined
  let bytes = 0
  for (const effect of effects) if (effect.do === 'enqueue') bytes += ITEM_BYTES + bytesOfText(effect.item.input)
  const { maxBytes: limit } = context
  const { stored } = context.bytes
  if (bytes === 0 || stored + bytes <= limit) return undefined
  const message =
    `The memory backend holds ${stored} bytes, and this enqueue of ${bytes} more would take it beyond its limit of ${limit}. ` +
    'Enqueue it again once work has been done, enqueue no faster than workers run, or raise `maxBytes` of memoryBackend.'
  return { kind: 'refused', code: 'STORE_FULL', message, limit }
}

/** A group whose value has changed, or an item that cannot be redriven, keeps a settlement from happening. */
function conflictOf(table: ItemTable, effects: readonly Effect[], now: At): CommitResult | undefined {
  for (let index = 0; index < effects.length; index += 1) {
    const effect = effects[index]!
    if (effect.do === 'setGroupValue' && effect.ifVersion !== undefined) {
      const { groupId, ifVersion } = effect
      const group = table.group(groupId, now)
      // The version is the one that the group will have when this effect is applied.
      let version = group?.version ?? 0
      for (let before = 0; before < index && group?.isFinal !== true; before += 1) {
        const earlier = effects[before]!
        if (earlier.do === 'setGroupValue' && earlier.groupId === groupId) version += 1
      }
      if (version !== ifVersion) return { kind: 'conflict', groupId, now: groupValue(group) }
    } else if (effect.do === 'redrive') {
      const record = table.item(effect.id, now)
      // Not one that is open, nor one whose input was not kept: there is nothing to run again.
      if (record?.hasEnded !== true || !record.hasInput) return STALE
    }
  }
  return undefined
}

/** Applies one effect. Whatever could keep it from happening was checked before. */
function applyEffect(table: ItemTable, effect: Effect, commit: CommitContext): void {
  switch (effect.do) {
    case 'enqueue':
      enqueue(table, effect, commit)
      return
    case 'recordAttempt':
      recordAttempt(table, effect, commit)
      return
    case 'retry':
      retry(table, effect, commit)
      return
    case 'release':
      release(table, effect, commit)
      return
    case 'complete':
      complete(table, effect, commit)
      return
    case 'deadLetter':
      deadLetter(table, effect, commit)
      return
    case 'redrive':
      redrive(table, effect, commit)
      return
    case 'delete':
      deleteItem(table, effect, commit)
      return
    case 'joinGroup':
      joinGroup(table, effect, commit)
      return
    case 'leaveGroup':
      leaveGroup(table, effect, commit)
      return
    case 'setGroupValue':
      setGroupValue(table, effect, commit)
      return
    case 'openGate':
      table.gates.open(effect, commit.now)
      return
    case 'notifyGate':
      table.gates.notify(effect.key, effect.member, effect.completed, commit.now)
      return
    case 'notify':
      for (const id of effect.ids) table.context.notifier.item(effect.inbox, id)
      return
    case 'schedule':
      table.schedules.set(effect.name, { spec: effect.spec, nextAt: effect.nextAt })
      return
    case 'requestCancel':
      requestCancel(table, effect, commit)
      return
    case 'pause':
      table.pauses.pause(effect.what, effect.name)
      return
    case 'resume':
      table.pauses.resume(effect.what, effect.name, commit.now)
      return
    case 'log':
      table.log.add({ at: commit.now, who: effect.who, why: effect.why, what: effect.what })
      return
    default:
      unreachable(effect)
  }
}

function setGroupValue(
  table: ItemTable,
  { groupId, value, final }: EffectOf<'setGroupValue'>,
  commit: CommitContext,
): void {
  const single = singleIn(groupId, commit)
  if (single !== undefined && single.single !== 'closed' && single.singleValue === undefined && !final) {
    single.singleValue = value
    table.weigh(single)
    return
  }
  const group = groupOf(table, groupId, commit)
  if (group.isFinal) return
  group.value = value
  group.version += 1
  group.isFinal = final
  table.weigh(group)
}
