import type { At, Ms } from '../../core/time/time.js'
import { KEEP_COMPLETED_MS } from '../../ports/limits.js'
import type { GroupValue } from '../../ports/settlement.js'
import type { Notifications } from '../shared/notifications.js'
import { COMPLETED } from '../shared/state-codes.js'
import { SINGLE, WATCHED } from './item-flags.js'
import type { GroupRow, ItemRow, Statements } from './sql.js'

/** A group while a batch moves it: read once, written once. */
interface Page {
  open: number
  value: string | null
  final: boolean
  version: number
  isWatched: boolean
  keepUntil: At | null
  /** The root on whose row the group is stored. */
  singleSeq: number | undefined
  /** The settlement that last moved the count: a group that this batch closes is closed by it. */
  lastMove: number | undefined
  keepMs: Ms
  isWritten: boolean
}

export interface Closed {
  readonly groupId: string
  readonly value: string | null
  readonly isWatched: boolean
  readonly settlement: number
}

/** The groups that a batch touches. Changes are summed; whether a group closed is decided once, at the end of the batch. */
export class GroupTable {
  readonly #sql: Statements
  readonly #now: At
  readonly #notifications: Notifications
  readonly #pages = new Map<string, Page>()
  #hasRows: boolean | undefined

  constructor(sql: Statements, now: At, notifications: Notifications) {
    this.#sql = sql
    this.#now = now
    this.#notifications = notifications
  }

  value(groupId: string): GroupValue {
    const { value, final, version } = this.#page(groupId)
    return { ...(value === null ? {} : { value }), final, version }
  }

  /** `keepMs`: how long its record is kept, should this close it. */
  move(groupId: string, by: number, settlement: number, keepMs: Ms): void {
    const page = this.#page(groupId)
    page.open += by
    page.lastMove = settlement
    page.keepMs = keepMs
    page.isWritten = false
  }

  setValue(groupId: string, value: string, final: boolean): void {
    const page = this.#page(groupId)
    if (page.final) return
    page.value = value
    page.final = final
    page.version += 1
    page.isWritten = false
  }

  /** The waiter of an item waits for its group too. */
  watch(groupId: string, inbox: string): void {
    const page = this.#page(groupId)
    page.isWatched = true
    page.isWritten = false
    this.#sql.addWatcher.run('g', groupId, inbox)
  }

  /** Whether any group has a row, or is being changed: mostly there is none. */
  get areAny(): boolean {
    this.#hasRows ??= this.#sql.anyGroup.get()?.[0] === 1
    return this.#hasRows || this.#pages.size > 0
  }

  /** Whether this batch changes it. */
  has(groupId: string): boolean {
    return this.#pages.has(groupId)
  }

  exists(groupId: string): boolean {
    return this.#pages.has(groupId) || this.#sql.group.get(groupId, this.#now) !== undefined
  }

  /** The row that the guard has read says all of a group whose only member is its root. */
  know(id: string, [seq, , , state, flags, , waiter]: ItemRow): void {
    if ((flags & SINGLE) === 0 || state >= COMPLETED || this.#pages.has(id)) return
    const isWatched = waiter !== null || (flags & WATCHED) !== 0
    this.#pages.set(id, newPage([1, null, 0, 0, Number(isWatched), null, seq]))
  }

  /** A root that ends as the only member: its row stores the value of the group, which needs no row. */
  endSingle(groupId: string, seq: number): Page | undefined {
    const page = this.#pages.get(groupId)
    if (page?.singleSeq !== seq || page.open !== 0) return undefined
    page.isWritten = true
    return page
  }

  /** The root on whose row the group is stored goes: the group gets a row. */
  part(groupId: string): void {
    const page = this.#page(groupId)
    if (page.singleSeq === undefined) return
    this.#expand(groupId, page)
    // Its row is written at the end of the batch, when its count is known.
    page.isWritten = false
  }

  /** Writes what changed. Returns the groups that closed, with the settlement that closed them. */
  close(): Closed[] {
    const closed: Closed[] = []
    for (const [groupId, page] of this.#pages) {
      const wasClosed = page.keepUntil !== null
      if (page.lastMove !== undefined) page.keepUntil = page.open > 0 ? null : this.#now + page.keepMs
      const isClosing = page.lastMove !== undefined && page.open <= 0 && !wasClosed
      const isWatched = isClosing && page.isWatched && this.#notify(groupId, page)
      if (!page.isWritten) this.#write(groupId, page)
      if (isClosing) closed.push({ groupId, value: page.value, isWatched, settlement: page.lastMove! })
    }
    return closed
  }

  /** Notifies the watchers that it closed, once. False: they only watched the root that was its only member. */
  #notify(groupId: string, page: Page): boolean {
    const inboxes = new Set(this.#sql.watchers.all('g', groupId).map(([inbox]) => inbox))
    if (inboxes.size > 0) this.#sql.deleteWatchers.run('g', groupId)
    if (page.singleSeq !== undefined) {
      const waiter = this.#sql.itemRow.get(groupId)?.[6]
      if (waiter != null) inboxes.add(waiter)
    }
    for (const inbox of inboxes) this.#notifications.close(inbox, groupId)
    page.isWatched = false
    return inboxes.size > 0
  }

  #write(groupId: string, page: Page): void {
    if (page.singleSeq !== undefined) this.#expand(groupId, page)
    this.#sql.putGroup.run(
      groupId,
      page.open,
      page.value,
      Number(page.final),
      page.version,
      Number(page.isWatched),
      page.keepUntil,
    )
    page.isWritten = true
  }

  /** Its root is no longer its only member: from now on the group has a row, and the waiter of the root watches it. */
  #expand(groupId: string, page: Page): void {
    const row = this.#sql.itemRow.get(groupId)
    const waiter = row?.[6] ?? null
    if (waiter !== null && page.keepUntil === null && page.isWatched) this.#sql.addWatcher.run('g', groupId, waiter)
    this.#sql.joined.run(page.singleSeq!)
    page.singleSeq = undefined
  }

  #page(groupId: string): Page {
    const known = this.#pages.get(groupId)
    if (known !== undefined) return known
    const row = this.#sql.group.get(groupId, this.#now) ?? this.#sql.single.get(groupId, this.#now)
    const page = newPage(row ?? [0, null, 0, 0, 0, null, null])
    this.#pages.set(groupId, page)
    return page
  }
}

function newPage([open, value, final, version, isWatched, keepUntil, singleSeq]: GroupRow): Page {
  return {
    open,
    value,
    final: final === 1,
    version,
    // One that has closed has notified its watchers.
    isWatched: isWatched !== 0 && keepUntil === null,
    keepUntil,
    singleSeq: singleSeq ?? undefined,
    lastMove: undefined,
    keepMs: KEEP_COMPLETED_MS,
    isWritten: true,
  }
}
