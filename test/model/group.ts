import type { At, Ms } from '../../src/core/time/time.js'
import type { GroupValue } from '../../src/ports/settlement.js'

/** A group: how many of its items are open, its one value, and who waits for it. */
export interface Group {
  open: number
  value: string | undefined
  final: boolean
  version: number
  isDone: boolean
  /** How long it is kept once it has closed: as long as the item whose end closes it. */
  keepMs: Ms
  goneAt: At
  readonly watchers: Set<string>
}

export function newGroup(): Group {
  return {
    open: 0,
    value: undefined,
    final: false,
    version: 0,
    isDone: false,
    keepMs: 0,
    goneAt: Infinity,
    watchers: new Set(),
  }
}

export function groupValue(group: Group | undefined): GroupValue {
  const { value, final = false, version = 0 } = group ?? {}
  return { ...(value === undefined ? {} : { value }), final, version }
}
