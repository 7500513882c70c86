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
  /** Groups whose counts are compared with 0 when the whole batch has moved them. */
  readonly moved: GroupRecord[]
}

export function itemOf(book: Book, id: string, commit: Commit): ItemRecord | undefined {
  const { guarded } = commit
  return guarded !== undefined && guarded.id === id ? guarded : book.item(id, commit.now)
}

export function groupOf(book: Book, id: string, commit: Commit): GroupRecord {
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
