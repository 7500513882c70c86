import type { At, Ms } from '../../../core/time/time.js'
import type { GroupValue } from '../../../ports/settlement.js'
import { NO_SLOT } from '../queue/time-list.js'

/** A group: how many of its items are open, its one value, and the inboxes that wait for it. */
export class GroupRecord {
  readonly id: string
  open = 0
  value: string | undefined = undefined
  /** Its value is locked. */
  isFinal = false
  version = 0
  isClosed = false
  watchers: string[] | undefined = undefined
  /** How long it is kept after it closes: as long as the item that closed it. */
  keepMs: Ms = 0
  keepUntil: At = Number.POSITIVE_INFINITY
  keepSlot = NO_SLOT
  /** In bytes, as it was counted last. */
  weight = 0
  endSlot = NO_SLOT
  awaitedUntil: At = 0
  /** It was removed: a reference to it is out of date. */
  isGone = false
  /** The settlement of the current batch that changed its count last; −1: none. */
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
  const { value, isFinal: final, version } = group
  return value === undefined ? { final, version } : { value, final, version }
}

/** The group of an item that is its only member and has no record for it. */
export function singleGroup({ single, singleValue }: SingleItem): GroupValue & { readonly open: number } {
  const open = single === 'open' ? 1 : 0
  if (singleValue === undefined) return { open, final: false, version: 0 }
  return { open, value: singleValue, final: false, version: 1 }
}

interface SingleItem {
  readonly single: string
  readonly singleValue: string | undefined
}
