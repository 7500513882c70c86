import type { GroupValue } from '../../../src/ports/settlement.js'
import type { GroupRow, GuardRow, Statements } from './statements.js'

/** How long a group that closed is kept when no item that ends says so. */
const DAY = 86_400_000

/** A group while a batch moves it: read once, written once. */
interface OpenPage {
  open: number
  value: string | null
  final: boolean
  version: number
  readonly before: number
  /** The root that carries the group on its own row. */
  readonly aloneSeq: number | undefined
  /** The settlement that last moved the count: a group that this batch closes is closed by it. */
  lastMove: number | undefined
  keepMs: number
  isWritten: boolean
}

/** The groups that a batch touches. Changes are summed; whether a group closed is decided once, at the end of the batch. */
export class GroupBook {
  readonly #sql: Statements
  readonly #now: number
  readonly #pages = new Map<string, OpenPage>()

  constructor(sql: Statements, now: number) {
    this.#sql = sql
    this.#now = now
  }

  value(groupId: string): GroupValue {
    const { value, final, version } = this.#page(groupId)
    return { ...(value === null ? {} : { value }), final, version }
  }

  /** `keepMs`: how long its record is kept, should this close it. */
  move(groupId: string, by: number, settlement: number, keepMs: number): void {
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

  exists(groupId: string): boolean {
    return this.#pages.has(groupId) || this.#sql.group.get(groupId, this.#now) !== undefined
  }

  /** What the guard has read of a leased item already says: its group, if it is alone in it, has nothing but itself. */
  know(id: string, [seq, , , , , isAlone]: GuardRow): void {
    if (isAlone === 1 && !this.#pages.has(id)) this.#pages.set(id, newPage([1, null, 0, 0, seq]))
  }

  /** A root that ends as it began, alone: its row carries the group's value, and the group needs no row. */
  endAlone(groupId: string, seq: number): OpenPage | undefined {
    const page = this.#pages.get(groupId)
    if (page?.aloneSeq !== seq || page.open !== 0) return undefined
    page.isWritten = true
    return page
  }

  /** Writes what changed. Returns the groups that closed, with the settlement that closed them. */
  close(): { readonly groupId: string; readonly value: string | null; readonly settlement: number }[] {
    const closed = []
    for (const [groupId, page] of this.#pages) {
      if (!page.isWritten) {
        if (page.aloneSeq !== undefined) this.#sql.joined.run(page.aloneSeq)
        const goneAt = page.open > 0 ? null : this.#now + page.keepMs
        this.#sql.putGroup.run(groupId, page.open, page.value, Number(page.final), page.version, goneAt)
      }
      if (page.before > 0 && page.open <= 0 && page.lastMove !== undefined)
        closed.push({ groupId, value: page.value, settlement: page.lastMove })
    }
    return closed
  }

  #page(groupId: string): OpenPage {
    const known = this.#pages.get(groupId)
    if (known !== undefined) return known
    const row = this.#sql.group.get(groupId, this.#now) ?? this.#sql.alone.get(groupId) ?? [0, null, 0, 0]
    const page = newPage(row)
    this.#pages.set(groupId, page)
    return page
  }
}

function newPage([open, value, final, version, aloneSeq]: GroupRow): OpenPage {
  const isFinal = final === 1
  const none = { lastMove: undefined, keepMs: DAY, isWritten: true }
  return { open, value, final: isFinal, version, before: open, aloneSeq, ...none }
}
