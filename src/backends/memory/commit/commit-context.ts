import type { At, Ms } from '../../../core/time/time.js'
import type { EffectOf } from '../../../ports/settlement.js'
import type { GroupRecord } from '../groups/group-table.js'
import type { ItemRecord } from '../items/item-record.js'
import type { ItemTable } from '../items/item-table.js'

/** The batch that is being committed: one time for all of it, and the groups whose counts it has changed. */
export interface CommitContext {
  readonly now: At
  readonly steady: Ms
  /** The number of the current settlement in the batch. */
  index: number
  /** How long a group that this settlement closes is kept. */
  keepMs: Ms
  /** The item that its guard found. Most effects are about it, so it is not looked up again for each. */
  guarded: ItemRecord | undefined
  /** The id that its guard found to be free. */
  absent: string | undefined
  /** The group it touched last. */
  group: GroupRecord | undefined
  /** A new group that it opened by one: perhaps the item that is enqueued next is its only member. */
  opening: string | undefined
  /** Items that left a group whose only members they were, and the settlement that took them out. */
  readonly left: { readonly record: ItemRecord; readonly by: number }[]
  /** Groups whose counts are compared with 0 when the whole batch has been applied. */
  readonly moved: GroupRecord[]
}

export function itemOf(table: ItemTable, id: string, commit: CommitContext): ItemRecord | undefined {
  const { guarded } = commit
  return guarded !== undefined && guarded.id === id ? guarded : table.item(id, commit.now)
}

export function groupOf(table: ItemTable, id: string, commit: CommitContext): GroupRecord {
  if (commit.opening === id) openPending(table, commit)
  const last = commit.group ?? commit.guarded?.group
  const isSame = last !== undefined && last.id === id && !last.isGone && last.keepUntil > commit.now
  const group = isSame ? last : table.ensureGroup(id, commit.now)
  commit.group = group
  return group
}

/** Changes the open count of a group; whether that closes the group is decided when the whole batch has been applied. */
export function moveGroup(table: ItemTable, groupId: string, by: number, commit: CommitContext): void {
  const group = groupOf(table, groupId, commit)
  group.open += by
  group.keepMs = commit.keepMs
  if (group.movedBy < 0) commit.moved.push(group)
  group.movedBy = commit.index
}

/** The group that was being opened needs a record after all. */
export function openPending(table: ItemTable, commit: CommitContext): void {
  const { opening } = commit
  commit.opening = undefined
  if (opening !== undefined) moveGroup(table, opening, 1, commit)
}

export function joinGroup(table: ItemTable, { groupId, count }: EffectOf<'joinGroup'>, commit: CommitContext): void {
  const isFirst = count === 1 && commit.absent !== undefined && commit.opening === undefined
  if (isFirst && !table.hasGroup(groupId, commit.now)) commit.opening = groupId
  else moveGroup(table, groupId, count, commit)
}

export function leaveGroup(table: ItemTable, { groupId, count }: EffectOf<'leaveGroup'>, commit: CommitContext): void {
  const single = singleIn(groupId, commit)
  if (single?.single !== 'open' || count !== 1) {
    moveGroup(table, groupId, -count, commit)
    return
  }
  single.single = 'closing'
  commit.left.push({ record: single, by: commit.index })
}

/** The item that this settlement is about, if it is the only member of that group and the group has no record. */
export function singleIn(groupId: string, { guarded }: CommitContext): ItemRecord | undefined {
  return guarded !== undefined && guarded.single !== 'no' && guarded.envelope.groupId === groupId ? guarded : undefined
}
