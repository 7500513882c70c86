import type { At, Ms } from '../../core/time.js'
import type { Effect } from '../../ports/settlement.js'
import type { Book } from './book.js'
import type { GroupRecord } from './group-record.js'
import type { ItemRecord } from './item-record.js'

/** One of the effects, by its word. */
export type Of<Word extends Effect['do']> = Extract<Effect, { readonly do: Word }>

/** The commit under way: one time for all of it, and which groups it has moved. */
export interface Commit {
  readonly now: At
  readonly steady: Ms
  /** Which settlement of the batch this is. */
  index: number
  /** How long the items that this settlement ends are kept. */
  keepMs: Ms
  /** The item that its guard found. Most effects are about it: it is not looked up again for each. */
  guarded: ItemRecord | undefined
  /** The id that its guard found to be free. */
  absent: string | undefined
  /** The group it touched last. */
  group: GroupRecord | undefined
  /** A group that it opened by one and that nobody has heard of: perhaps the item that comes next is alone in it. */
  opening: string | undefined
  /** Items that were alone in their groups and have left them, and in which settlement. */
  readonly left: { readonly record: ItemRecord; readonly by: number }[]
  /** Groups whose counts are compared with 0 when the whole batch has moved them. */
  readonly moved: GroupRecord[]
}

export function itemOf(book: Book, id: string, commit: Commit): ItemRecord | undefined {
  const { guarded } = commit
  return guarded !== undefined && guarded.id === id ? guarded : book.item(id, commit.now)
}

export function groupOf(book: Book, id: string, commit: Commit): GroupRecord {
  if (commit.opening === id) openForReal(book, commit)
  const last = commit.group ?? commit.guarded?.group
  const isSame = last !== undefined && last.id === id && !last.isGone && last.keepUntil > commit.now
  const group = isSame ? last : book.ensureGroup(id, commit.now)
  commit.group = group
  return group
}

/** Moves the open count of a group; what follows from it is decided when the whole batch has moved it. */
export function moveGroup(book: Book, groupId: string, by: number, commit: Commit): void {
  const group = groupOf(book, groupId, commit)
  group.open += by
  group.isCounted = true
  group.keepMs = commit.keepMs
  if (group.movedBy < 0) commit.moved.push(group)
  group.movedBy = commit.index
}

/** The group that was being opened is needed as a record after all. */
export function openForReal(book: Book, commit: Commit): void {
  const { opening } = commit
  commit.opening = undefined
  if (opening !== undefined) moveGroup(book, opening, 1, commit)
}

export function openGroup(book: Book, { groupId, by }: Of<'openGroup'>, commit: Commit): void {
  const isFirst = by === 1 && commit.absent !== undefined && commit.opening === undefined
  if (isFirst && !book.hasGroup(groupId, commit.now)) commit.opening = groupId
  else moveGroup(book, groupId, by, commit)
}

export function closeGroup(book: Book, { groupId, by }: Of<'closeGroup'>, commit: Commit): void {
  const lone = loneIn(groupId, commit)
  if (lone?.lone !== 'open' || by !== 1) {
    moveGroup(book, groupId, -by, commit)
    return
  }
  lone.lone = 'leaving'
  commit.left.push({ record: lone, by: commit.index })
}

/** The item that this settlement is about, if it is alone in that group. */
export function loneIn(groupId: string, { guarded }: Commit): ItemRecord | undefined {
  return guarded !== undefined && guarded.lone !== 'no' && guarded.envelope.groupId === groupId ? guarded : undefined
}
