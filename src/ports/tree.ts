/** That an item belongs to a tree which a gate waits for, and whether that gate wants its end or its success. */
export interface TreeMark {
  readonly key: string
  readonly of: 'done' | 'success'
}

/**
 * Under which name a gate counts the whole tree below an item: the item itself while it queues nothing, and otherwise the
 * item of this id, which ends when everything below it has. One name for both, because nobody knows beforehand.
 */
export function treeId(id: string, of: TreeMark['of']): string {
  return of === 'success' ? `${id}/tree` : `${id}/tree-done`
}

/** The item at the top of a tree; undefined for what is no tree. */
export function topOf(treeId: string): string | undefined {
  return /^(?<id>.+)\/tree(?:-done)?$/s.exec(treeId)?.groups?.['id']
}
