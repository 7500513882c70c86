import type { At, Ms } from '../../core/time.js'
import type { GroupValue } from '../../ports/settlement.js'
import { NO_SLOT } from './lane.js'

/** What the native ledger writes where a key is only a flag. */
export const FLAG = '1'

/** A group: how many of its items are open, its one value, and who waits for it. */
export class GroupRecord {
  readonly id: string
  open = 0
  /** Somebody has counted: until then there is no key for it. */
  isCounted = false
  value: string | undefined = undefined
  /** The value as a plain store spelt it, if that is more than the value. */
  valueText: string | undefined = undefined
  /** The text of its lock; undefined while anybody may contribute. */
  final: string | undefined = undefined
  version = 0
  /** The text of its done flag; undefined while it is open. */
  done: string | undefined = undefined
  watchers: string[] | undefined = undefined
  /** How long it is kept after it closes: as long as the item that closed it. */
  keepMs: Ms = 0
  keepUntil: At = Number.POSITIVE_INFINITY
  keepSlot = NO_SLOT
  /** In bytes, as it was counted last. */
  weight = 0
  endSlot = NO_SLOT
  awaitedUntil: At = 0
  /** It was removed: whoever still holds on to it has to look it up again. */
  isGone = false
  /** Which settlement of the batch under way moved it last; −1: none. */
  movedBy = -1

  constructor(id: string) {
    this.id = id
  }

  watch(inbox: string): void {
    if (this.watchers === undefined) this.watchers = [inbox]
    else if (!this.watchers.includes(inbox)) this.watchers.push(inbox)
  }
}

export function groupValue(group: GroupRecord | undefined): GroupValue {
  if (group === undefined) return { final: false, version: 0 }
  const { value, final, version } = group
  const locked = final !== undefined
  return value === undefined ? { final: locked, version } : { value, final: locked, version }
}

/** The group that an item is while it is alone in it. */
export function loneGroup({ lone, loneValue }: LoneItem): GroupValue & { readonly open: number } {
  const open = lone === 'open' ? 1 : 0
  if (loneValue === undefined) return { open, final: false, version: 0 }
  return { open, value: loneValue, final: false, version: 1 }
}

interface LoneItem {
  readonly lone: string
  readonly loneValue: string | undefined
}
