import type { At, Ms } from '../../core/time.js'
import type { GroupValue } from '../../ports/settlement.js'
import type { GroupRow, ItemRow, Statements } from './sql.js'
import { ALONE, COMPLETED, WATCHED } from './states.js'
import type { Told } from './told.js'

/** How long a group that closed is kept when no item that ends says so. */
export const DAY: Ms = 86_400_000

/** A group while a batch moves it: read once, written once. */
interface Page {
  open: number
  value: string | null
  final: boolean
  version: number
  isWatched: boolean
  goneAt: At | null
  /** The root that carries the group on its own row. */
  aloneSeq: number | undefined
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
export class GroupBook {
  readonly #sql: Statements
  readonly #now: At
  readonly #told: Told
  readonly #pages = new Map<string, Page>()

  constructor(sql: Statements, now: At, told: Told) {
    this.#sql = sql
    this.#now = now
    this.#told = told
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

  contribute(groupId: string, value: string, final: boolean): void {
    const page = this.#page(groupId)
    if (page.final) return
    page.value = value
    page.final = final
    page.version += 1
    page.isWritten = false
  }

  /** Somebody who came with an item waits for its group. */
  watch(groupId: string, inbox: string): void {
    const page = this.#page(groupId)
    page.isWatched = true
    page.isWritten = false
    this.#sql.addWatcher.run('g', groupId, inbox)
  }

  exists(groupId: string): boolean {
    return this.#pages.has(groupId) || this.#sql.group.get(groupId, this.#now) !== undefined
  }

  /** What the guard has read of an open item already says: its group, if it is alone in it, has nothing but itself. */
  know(id: string, [seq, , , state, flags, , waiter]: ItemRow): void {
    if ((flags & ALONE) === 0 || state >= COMPLETED || this.#pages.has(id)) return
    const isWatched = waiter !== null || (flags & WATCHED) !== 0
    this.#pages.set(id, newPage([1, null, 0, 0, Number(isWatched), null, seq]))
  }

  /** A root that ends as it began, alone: its row carries the group's value, and the group needs no row. */
  endAlone(groupId: string, seq: number): Page | undefined {
    const page = this.#pages.get(groupId)
    if (page?.aloneSeq !== seq || page.open !== 0) return undefined
    page.isWritten = true
    return page
  }

  /** The root that carries the group goes away: the group goes on without it. */
  part(groupId: string): void {
    const page = this.#page(groupId)
    if (page.aloneSeq === undefined) return
    this.#expand(groupId, page)
    // Its row is written with the rest: until then nobody knows whether it stays open.
    page.isWritten = false
  }

  /** Writes what changed. Returns the groups that closed, with the settlement that closed them. */
  close(): Closed[] {
    const closed: Closed[] = []
    for (const [groupId, page] of this.#pages) {
      const wasClosed = page.goneAt !== null
      if (page.lastMove !== undefined) page.goneAt = page.open > 0 ? null : this.#now + page.keepMs
      const isClosing = page.lastMove !== undefined && page.open <= 0 && !wasClosed
      const isWatched = isClosing && page.isWatched && this.#tell(groupId, page)
      if (!page.isWritten) this.#write(groupId, page)
      if (isClosing) closed.push({ groupId, value: page.value, isWatched, settlement: page.lastMove! })
    }
    return closed
  }

  /** Whoever watches hears of the close, once. False: they only watched the root that was alone in it. */
  #tell(groupId: string, page: Page): boolean {
    const inboxes = new Set(this.#sql.watchers.all('g', groupId).map(([inbox]) => inbox))
    if (inboxes.size > 0) this.#sql.deleteWatchers.run('g', groupId)
    if (page.aloneSeq !== undefined) {
      const waiter = this.#sql.itemRow.get(groupId)?.[6]
      if (waiter != null) inboxes.add(waiter)
    }
    for (const inbox of inboxes) this.#told.close(inbox, groupId)
    page.isWatched = false
    return inboxes.size > 0
  }

  #write(groupId: string, page: Page): void {
    if (page.aloneSeq !== undefined) this.#expand(groupId, page)
    this.#sql.putGroup.run(
      groupId,
      page.open,
      page.value,
      Number(page.final),
      page.version,
      Number(page.isWatched),
      page.goneAt,
    )
    page.isWritten = true
  }

  /** Its root is no longer alone in it: from now on the group has a row, and its waiter stands there. */
  #expand(groupId: string, page: Page): void {
    const row = this.#sql.itemRow.get(groupId)
    const waiter = row?.[6] ?? null
    if (waiter !== null && page.goneAt === null && page.isWatched) this.#sql.addWatcher.run('g', groupId, waiter)
    this.#sql.joined.run(page.aloneSeq!)
    page.aloneSeq = undefined
  }

  #page(groupId: string): Page {
    const known = this.#pages.get(groupId)
    if (known !== undefined) return known
    const row = this.#sql.group.get(groupId, this.#now) ?? this.#sql.alone.get(groupId, this.#now)
    const page = newPage(row ?? [0, null, 0, 0, 0, null, null])
    this.#pages.set(groupId, page)
    return page
  }
}

function newPage([open, value, final, version, isWatched, goneAt, aloneSeq]: GroupRow): Page {
  return {
    open,
    value,
    final: final === 1,
    version,
    // One that has closed has told its watchers.
    isWatched: isWatched !== 0 && goneAt === null,
    goneAt,
    aloneSeq: aloneSeq ?? undefined,
    lastMove: undefined,
    keepMs: DAY,
    isWritten: true,
  }
}
