import type { ItemSummary } from '../../ports/ledger.js'
import type { Desk } from '../desk.js'
import { pagesOf } from './pages.js'
import { type Found, isUnfinished, onlyIfStill, UNFINISHED } from './suspicion.js'
import { counted, type Unseen } from './unseen.js'

/** So many groups are remembered while the items are walked; a fleet has more only when most of it is fan-out. */
const MOST_GROUPS = 50_000
/** A group counts as wrong after so many looks that agree. */
const LOOKS = 2
const TRIES = 5

/**
 * Whether groups count right: the open count of a group is the number of its items that have not ended. A walk takes time, so
 * that what it adds up is only a hint; what seems wrong is then looked at in a way that no settlement can slip through.
 */
export class Groups {
  readonly #desk: Desk
  readonly #seen = new Map<string, number>()
  /** Groups of ended items that are still open, though nothing of them was seen. */
  readonly #open = new Set<string>()
  readonly #isStopped: () => boolean
  /** Items whose groups were too many to remember. */
  #untracked = 0
  /** Groups that changed during every look. */
  #restless = 0

  constructor(desk: Desk, isStopped: () => boolean) {
    this.#desk = desk
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
    const open = await this.#desk.inspect('audit').openCounts(ids)
    for (const [i, id] of ids.entries()) {
      const { count, isRoot } = tally.get(id)!
      // A root queues what is below it when it ends: while it has not, it is alone. Most items are, and are not remembered.
      if (isRoot && count === 1 && open[i] === 1 && !this.#seen.has(id)) continue
      if (this.#seen.size < MOST_GROUPS || this.#seen.has(id)) this.#seen.set(id, (this.#seen.get(id) ?? 0) + count)
      else this.#untracked += count
    }
  }

  /** A page of ended items: a group of theirs may be open though nothing in it goes on. */
  async addEnded(views: readonly ItemSummary[]): Promise<void> {
    const ids = [...new Set(views.map(({ envelope }) => envelope.groupId))]
    const open = await this.#desk.inspect('audit').openCounts(ids)
    for (const [i, id] of ids.entries()) {
      if ((open[i] ?? 0) === 0) continue
      if (this.#open.size < MOST_GROUPS) this.#open.add(id)
      else if (!this.#open.has(id)) this.#untracked += 1
    }
  }

  /** What was not compared, once all are looked at. */
  unseen(): readonly Unseen[] {
    return [
      ...counted('groups', this.#untracked, (n) =>
        n === 1
          ? '1 item belongs to a group that was one too many to remember: whether it counts right was not looked at.'
          : `${n} items belong to groups that were too many to remember: whether those count right was not looked at.`,
      ),
      ...counted('restless', this.#restless, (n) =>
        n === 1
          ? '1 group changed at every look, so that it could not be compared with its items. It is being worked on.'
          : `${n} groups changed at every look, so that they could not be compared with their items. They are being worked on.`,
      ),
    ]
  }

  /** The groups that count wrong, one by one: whoever asks may stop between two. */
  async *wrong(): AsyncGenerator<Found, void> {
    for (const id of await this.#suspects()) {
      const found = await wrongGroup(this.#desk, id, this.#isStopped)
      if (this.#isStopped()) return
      if (found === 'restless') this.#restless += 1
      else if (found !== 'sound') yield found
    }
  }

  /**
   * Those that do not count what was seen of them. In a fleet at work nearly all of these have only moved on since, and a close look at one
   * is a walk over all items where a backend has no list of groups (memory, Redis): so they are counted once more, together in
   * one walk, and those that count right now are let go.
   */
  async #suspects(): Promise<readonly string[]> {
    const seen = new Map([...this.#open].map((id) => [id, 0]))
    for (const [id, count] of this.#seen) seen.set(id, count)
    const differing = await this.#differing(seen)
    if (differing.length === 0) return []
    const again = new Map(differing.map((id) => [id, 0]))
    for (const state of UNFINISHED) {
      for await (const views of pagesOf(this.#desk.inspect('audit'), { state })) {
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
      const open = await this.#desk.inspect('audit').openCounts(some)
      differing.push(...some.filter((id, i) => (open[i] ?? 0) !== counts.get(id)))
    }
    return differing
  }
}

/** The count of a group and what is in it, as of one moment. */
interface Look {
  readonly open: number
  readonly unfinished: number
  /** One of its items that has not ended, or else one that has. */
  readonly witness: ItemSummary | undefined
}

async function wrongGroup(
  desk: Desk,
  groupId: string,
  isStopped: () => boolean,
): Promise<Found | 'sound' | 'restless'> {
  let last: Look | undefined
  let agreed = 0
  for (let tries = 0; tries < TRIES && agreed < LOOKS && !isStopped(); tries += 1) {
    const look = await lookAt(desk, groupId, isStopped)
    if (look === undefined) agreed = 0
    else {
      if (look.open === look.unfinished) return 'sound'
      const isSame = last !== undefined && last.open === look.open && last.unfinished === look.unfinished
      agreed = isSame ? agreed + 1 : 1
    }
    last = look
  }
  if (last === undefined || agreed < LOOKS) return 'restless'
  const { open, unfinished, witness } = last
  // Nothing is left of it: whatever its record says, nobody can still wait for it.
  if (witness === undefined) return 'sound'
  const by = unfinished - open
  return {
    code: 'group-count',
    id: witness.envelope.id,
    text: `Group ${groupId} counts ${open} open item${open === 1 ? '' : 's'}, and ${unfinished} of its items ${unfinished === 1 ? 'has' : 'have'} not ended: ${by > 0 ? 'it will close too early' : 'it will never close, and whoever waits for it waits for ever'}.`,
    repair: 'Correct its count.',
    turn: `group:${groupId}`,
    mend: onlyIfStill(witness, [by > 0 ? { do: 'openGroup', groupId, by } : { do: 'closeGroup', groupId, by: -by }]),
  }
}

/**
 * Walks a group of any size, a page in memory at a time; undefined when something moved meanwhile. Its list has the newest first:
 * what happens in a group between the two readings of its count changes the count, or leaves another item at the head.
 */
async function lookAt(desk: Desk, groupId: string, isStopped: () => boolean): Promise<Look | undefined> {
  const openOf = async () => (await desk.inspect('audit').openCounts([groupId]))[0] ?? 0
  const before = await openOf()
  let newest: string | undefined
  let unfinished = 0
  let witness: ItemSummary | undefined
  for await (const page of pagesOf(desk.inspect('audit'), { groupId })) {
    newest ??= page[0]?.envelope.id
    for (const view of page) {
      // The oldest of those that have not ended.
      if (isUnfinished(view)) witness = view
      else witness ??= view
      if (isUnfinished(view)) unfinished += 1
    }
    if (isStopped()) return undefined
  }
  if ((await newestOf(desk, groupId)) !== newest || (await openOf()) !== before) return undefined
  return { open: before, unfinished, witness }
}

async function newestOf(desk: Desk, groupId: string): Promise<string | undefined> {
  for await (const [first] of pagesOf(desk.inspect('audit'), { groupId })) return first?.envelope.id
  return undefined
}
