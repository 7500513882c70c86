import type { ItemSummary } from '../../ports/inspect.js'
import type { OpsContext } from '../context.js'
import { counted, type Found, ifUnchanged, isUnfinished, type Skipped, UNFINISHED } from './found.js'
import { pagesOf } from './pages.js'

/** How many groups are remembered during the walk. */
const MOST_GROUPS = 50_000
/** A group counts as wrong after this many reads that agree. */
const READS = 2
const TRIES = 5

/**
 * Checks that the open count of each group equals the number of its unfinished items. The walk takes time, so its sums are only
 * a hint; a group that seems wrong is then read in a way that no settlement can slip through.
 */
export class Groups {
  readonly #context: OpsContext
  readonly #seen = new Map<string, number>()
  /** Groups of ended items that are still open although no unfinished item was found. */
  readonly #open = new Set<string>()
  readonly #isStopped: () => boolean
  /** Items in groups beyond the limit. */
  #untracked = 0
  /** Groups that changed during every read. */
  #keptChanging = 0

  constructor(context: OpsContext, isStopped: () => boolean) {
    this.#context = context
    this.#isStopped = isStopped
  }

  /** A page of unfinished items. */
  async add(views: readonly ItemSummary[]): Promise<void> {
    const tally = new Map<string, { count: number; isRoot: boolean }>()
    for (const { envelope } of views) {
      const known = tally.get(envelope.groupId)
      const isRoot = envelope.parent === undefined
      tally.set(envelope.groupId, { count: (known?.count ?? 0) + 1, isRoot: isRoot && (known?.isRoot ?? true) })
    }
    const ids = [...tally.keys()]
    const open = await this.#context.inspect('audit').openCounts(ids)
    for (const [i, id] of ids.entries()) {
      const { count, isRoot } = tally.get(id)!
      // A root enqueues its children when it ends; until then it is the only item of its group. Most items are, and need no entry.
      if (isRoot && count === 1 && open[i] === 1 && !this.#seen.has(id)) continue
      if (this.#seen.size < MOST_GROUPS || this.#seen.has(id)) this.#seen.set(id, (this.#seen.get(id) ?? 0) + count)
      else this.#untracked += count
    }
  }

  /** A page of ended items: their groups may be open although nothing in them is unfinished. */
  async addEnded(views: readonly ItemSummary[]): Promise<void> {
    const ids = [...new Set(views.map(({ envelope }) => envelope.groupId))]
    const open = await this.#context.inspect('audit').openCounts(ids)
    for (const [i, id] of ids.entries()) {
      if ((open[i] ?? 0) === 0) continue
      if (this.#open.size < MOST_GROUPS) this.#open.add(id)
      else if (!this.#open.has(id)) this.#untracked += 1
    }
  }

  /** What could not be compared. */
  skipped(): readonly Skipped[] {
    return [
      ...counted('groups', this.#untracked, (n) =>
        n === 1
          ? '1 item belongs to a group beyond the number that one audit remembers: its count was not checked.'
          : `${n} items belong to groups beyond the number that one audit remembers: their counts were not checked.`,
      ),
      ...counted('kept-changing', this.#keptChanging, (n) =>
        n === 1
          ? '1 group changed at every read and could not be compared with its items. It is being worked on.'
          : `${n} groups changed at every read and could not be compared with their items. They are being worked on.`,
      ),
    ]
  }

  /** The groups whose count is wrong, one by one, so that the caller can stop in between. */
  async *wrong(): AsyncGenerator<Found, void> {
    for (const id of await this.#suspects()) {
      const found = await wrongGroup(this.#context, id, this.#isStopped)
      if (this.#isStopped()) return
      if (found === 'kept-changing') this.#keptChanging += 1
      else if (found !== 'sound') yield found
    }
  }

  /**
   * Groups whose count differs from the items found. In a busy fleet nearly all of these have only moved on since, and checking
   * one closely walks over all items on backends without an index by group (memory, Redis). So they are counted once more, in
   * one walk, and those that agree now are dropped.
   */
  async #suspects(): Promise<readonly string[]> {
    const seen = new Map([...this.#open].map((id) => [id, 0]))
    for (const [id, count] of this.#seen) seen.set(id, count)
    const differing = await this.#differing(seen)
    if (differing.length === 0) return []
    const again = new Map(differing.map((id) => [id, 0]))
    for (const state of UNFINISHED) {
      for await (const views of pagesOf(this.#context.inspect('audit'), { state })) {
        for (const { envelope } of views) {
          const count = again.get(envelope.groupId)
          if (count !== undefined) again.set(envelope.groupId, count + 1)
        }
        if (this.#isStopped()) return []
      }
    }
    return this.#differing(again)
  }

  async #differing(counts: ReadonlyMap<string, number>): Promise<readonly string[]> {
    const ids = [...counts.keys()]
    const differing: string[] = []
    for (let from = 0; from < ids.length; from += 500) {
      const some = ids.slice(from, from + 500)
      const open = await this.#context.inspect('audit').openCounts(some)
      differing.push(...some.filter((id, i) => (open[i] ?? 0) !== counts.get(id)))
    }
    return differing
  }
}

/** The count of a group and its items at one moment. */
interface GroupRead {
  readonly open: number
  readonly unfinished: number
  /** One of its unfinished items, or else an ended one. */
  readonly witness: ItemSummary | undefined
}

async function wrongGroup(
  context: OpsContext,
  groupId: string,
  isStopped: () => boolean,
): Promise<Found | 'sound' | 'kept-changing'> {
  let last: GroupRead | undefined
  let agreed = 0
  for (let tries = 0; tries < TRIES && agreed < READS && !isStopped(); tries += 1) {
    const read = await readGroup(context, groupId, isStopped)
    if (read === undefined) agreed = 0
    else {
      if (read.open === read.unfinished) return 'sound'
      const isSame = last !== undefined && last.open === read.open && last.unfinished === read.unfinished
      agreed = isSame ? agreed + 1 : 1
    }
    last = read
  }
  if (last === undefined || agreed < READS) return 'kept-changing'
  const { open, unfinished, witness } = last
  // None of its items is kept any more, so nothing can still wait for it.
  if (witness === undefined) return 'sound'
  const by = unfinished - open
  return {
    code: 'group-count',
    id: witness.envelope.id,
    text: `Group ${groupId} counts ${open} open item${open === 1 ? '' : 's'}, and ${unfinished} of its items ${unfinished === 1 ? 'has' : 'have'} not ended: ${by > 0 ? 'it will close too early' : 'it will never close, and everything that waits for it waits forever'}.`,
    repair: 'Correct its count.',
    lock: `group:${groupId}`,
    fix: ifUnchanged(witness, [
      by > 0 ? { do: 'joinGroup', groupId, count: by } : { do: 'leaveGroup', groupId, count: -by },
    ]),
  }
}

/**
 * Walks a group of any size, one page in memory at a time; undefined if it changed meanwhile. The list starts with the newest
 * item: any change between the two reads of the count alters the count or puts another item first.
 */
async function readGroup(
  context: OpsContext,
  groupId: string,
  isStopped: () => boolean,
): Promise<GroupRead | undefined> {
  const openOf = async () => (await context.inspect('audit').openCounts([groupId]))[0] ?? 0
  const before = await openOf()
  let newest: string | undefined
  let unfinished = 0
  let witness: ItemSummary | undefined
  for await (const page of pagesOf(context.inspect('audit'), { groupId })) {
    newest ??= page[0]?.envelope.id
    for (const view of page) {
      // The oldest unfinished item.
      if (isUnfinished(view)) witness = view
      else witness ??= view
      if (isUnfinished(view)) unfinished += 1
    }
    if (isStopped()) return undefined
  }
  if ((await newestOf(context, groupId)) !== newest || (await openOf()) !== before) return undefined
  return { open: before, unfinished, witness }
}

async function newestOf(context: OpsContext, groupId: string): Promise<string | undefined> {
  for await (const [first] of pagesOf(context.inspect('audit'), { groupId })) return first?.envelope.id
  return undefined
}
