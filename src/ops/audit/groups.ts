import type { ItemView } from '../../ports/ledger.js'
import type { Desk } from '../desk.js'
import { pagesOf } from './pages.js'
import { type Found, isUnfinished, onlyIfStill } from './suspicion.js'

/** So many groups are remembered while the items are walked; a fleet has more only when most of it is fan-out. */
const MOST_GROUPS = 50_000
/** So many groups that seem wrong are looked at closely: that costs a list of each. */
const MOST_LOOKS = 200
/** Larger groups are not counted one by one. */
const MOST_ITEMS = 5_000
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

  constructor(desk: Desk) {
    this.#desk = desk
  }

  /** A page of unfinished items. */
  async add(views: readonly ItemView[]): Promise<void> {
    const tally = new Map<string, { count: number; isRoot: boolean }>()
    for (const { envelope } of views) {
      const known = tally.get(envelope.groupId)
      const isRoot = envelope.parent === undefined
      tally.set(envelope.groupId, { count: (known?.count ?? 0) + 1, isRoot: isRoot && (known?.isRoot ?? true) })
    }
    const ids = [...tally.keys()]
    const groups = await this.#desk.ledger.groups(ids)
    for (const [i, id] of ids.entries()) {
      const { count, isRoot } = tally.get(id)!
      // A root queues what is below it when it ends: while it has not, it is alone. Most items are, and are not remembered.
      if (isRoot && count === 1 && groups[i]?.open === 1 && !this.#seen.has(id)) continue
      if (this.#seen.size < MOST_GROUPS || this.#seen.has(id)) this.#seen.set(id, (this.#seen.get(id) ?? 0) + count)
    }
  }

  /** A page of ended items: a group of theirs may be open though nothing in it goes on. */
  async addEnded(views: readonly ItemView[]): Promise<void> {
    const ids = [...new Set(views.map(({ envelope }) => envelope.groupId))]
    const groups = await this.#desk.ledger.groups(ids)
    for (const [i, id] of ids.entries()) {
      if ((groups[i]?.open ?? 0) !== 0 && this.#open.size < MOST_GROUPS) this.#open.add(id)
    }
  }

  /** The groups that count wrong. */
  async *wrong(): AsyncGenerator<Found, void> {
    let looks = 0
    for await (const id of this.#suspects()) {
      looks += 1
      if (looks > MOST_LOOKS) return
      const found = await wrongGroup(this.#desk, id)
      if (found !== undefined) yield found
    }
  }

  async *#suspects(): AsyncGenerator<string, void> {
    const ids = [...new Set([...this.#seen.keys(), ...this.#open])]
    for (let from = 0; from < ids.length; from += 500) {
      const some = ids.slice(from, from + 500)
      const groups = await this.#desk.ledger.groups(some)
      for (const [i, id] of some.entries()) if ((groups[i]?.open ?? 0) !== (this.#seen.get(id) ?? 0)) yield id
    }
  }
}

interface Look {
  readonly open: number
  readonly unfinished: readonly ItemView[]
  readonly ended: ItemView | undefined
}

async function wrongGroup(desk: Desk, groupId: string): Promise<Found | undefined> {
  let last: Look | undefined
  let agreed = 0
  for (let tries = 0; tries < TRIES && agreed < LOOKS; tries += 1) {
    const look = await lookAt(desk, groupId)
    if (look === undefined) agreed = 0
    else {
      if (look.open === look.unfinished.length) return undefined
      const isSame = last !== undefined && last.open === look.open && last.unfinished.length === look.unfinished.length
      agreed = isSame ? agreed + 1 : 1
    }
    last = look
  }
  if (last === undefined || agreed < LOOKS) return undefined
  const { open, unfinished, ended } = last
  const by = unfinished.length - open
  const witness = unfinished.at(-1) ?? ended
  // Nothing is left of it: whatever its record says, nobody can still wait for it.
  if (witness === undefined) return undefined
  return {
    code: 'group-count',
    id: witness.envelope.id,
    text: `Group ${groupId} counts ${open} open item${open === 1 ? '' : 's'}, and ${unfinished.length} of its items ${unfinished.length === 1 ? 'has' : 'have'} not ended: ${by > 0 ? 'it will close too early' : 'it will never close, and whoever waits for it waits for ever'}.`,
    repair: 'Correct its count.',
    turn: `group:${groupId}`,
    mend: onlyIfStill(witness, [by > 0 ? { do: 'openGroup', groupId, by } : { do: 'closeGroup', groupId, by: -by }]),
  }
}

/**
 * The count of a group and the items of it that have not ended, as of one moment; undefined when something moved meanwhile.
 * Whatever happens in a group between the two readings of its count changes the count, or leaves a new item.
 */
async function lookAt(desk: Desk, groupId: string): Promise<Look | undefined> {
  const { ledger } = desk
  const openOf = async () => (await ledger.groups([groupId]))[0]?.open ?? 0
  const before = await openOf()
  const ids = await idsOf(desk, groupId)
  if (ids === undefined) return undefined
  const views = ids.length === 0 ? [] : await ledger.read(ids)
  const after = await idsOf(desk, groupId)
  if (after?.length !== ids.length || (await openOf()) !== before) return undefined
  return {
    open: before,
    unfinished: views.filter((view) => isUnfinished(view)),
    ended: views.find((view) => view !== undefined && !isUnfinished(view)),
  }
}

async function idsOf(desk: Desk, groupId: string): Promise<readonly string[] | undefined> {
  const ids: string[] = []
  for await (const page of pagesOf(desk.inspect('audit'), { groupId })) {
    for (const { envelope } of page) ids.push(envelope.id)
    if (ids.length > MOST_ITEMS) return undefined
  }
  return ids
}
