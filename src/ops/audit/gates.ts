import type { GateView, ItemSummary } from '../../ports/ledger.js'
import type { Effect } from '../../ports/settlement.js'
import { topOf } from '../../ports/tree.js'
import type { Desk } from '../desk.js'
import { type Found, onlyIfStill } from './suspicion.js'

/** An item that a gate holds, and its gate. */
export interface Gated {
  readonly view: ItemSummary
  readonly gate: GateView
}

/** What is known of a member: by its own name, and for a tree that has no item of its own, by the item at its top. */
export interface Member {
  readonly view: ItemSummary | undefined
  readonly top: ItemSummary | undefined
}

/** What the gates of these items have missed, and those whose gates are sound and still wait. */
export async function gatesOf(
  desk: Desk,
  views: readonly ItemSummary[],
): Promise<{ readonly found: readonly Found[]; readonly waiting: readonly Gated[] }> {
  const held = views.filter(({ hold }) => hold?.by === 'gate')
  if (held.length === 0) return { found: [], waiting: [] }
  const gates = await readGates(desk, held)
  const gated = held.flatMap((view, i): readonly Gated[] => (gates[i] === undefined ? [] : [{ view, gate: gates[i] }]))
  const missing = held.filter((_, i) => gates[i] === undefined)
  const members = await readMembers(desk, [...new Set(gated.flatMap(({ gate }) => gate.waiting))])
  const suspect = gated.filter(({ gate }) => gate.waiting.some((id) => hasEnded(members.get(id))))
  return {
    found: [...(await confirmMissing(desk, missing)), ...(await confirmMissed(desk, suspect))],
    waiting: gated.filter((one) => !suspect.includes(one)),
  }
}

export async function readGates(desk: Desk, views: readonly ItemSummary[]): Promise<readonly (GateView | undefined)[]> {
  const inspect = desk.inspect('audit')
  return Promise.all(views.map(({ hold }) => (hold?.by === 'gate' ? inspect.gate(hold.key) : undefined)))
}

/**
 * The tops before the members: an item that ends with something below it leaves, in the same step, the item that stands for
 * its tree. So whoever finds the top ended, and after that no such item, knows that there is none.
 */
export async function readMembers(desk: Desk, ids: readonly string[]): Promise<ReadonlyMap<string, Member>> {
  if (ids.length === 0) return new Map()
  const tops = ids.map((id) => topOf(id))
  const named = tops.flatMap((top) => top ?? [])
  const found = named.length === 0 ? [] : await desk.summaries(named)
  const byTop = new Map(named.map((id, i) => [id, found[i]]))
  const views = await desk.summaries(ids)
  return new Map(
    ids.map((id, i) => {
      const top = tops[i]
      return [id, { view: views[i], top: top === undefined ? undefined : byTop.get(top) }]
    }),
  )
}

/** How a member ended; undefined while it has not, as far as is known. */
function endOf(member: Member | undefined): ItemSummary | undefined {
  const view = member?.view ?? member?.top
  return view?.status === 'success' || view?.status === 'dead' ? view : undefined
}

const hasEnded = (member: Member | undefined): boolean => endOf(member) !== undefined

/** A gate frees its item in the step in which it decides: an item that is held after its gate was seen to be gone is lost. */
async function confirmMissing(desk: Desk, views: readonly ItemSummary[]): Promise<readonly Found[]> {
  if (views.length === 0) return []
  const again = await desk.summaries(views.map(({ envelope }) => envelope.id))
  return views.flatMap((view, i): readonly Found[] => {
    if (!isHeldStill(view, again[i])) return []
    const { id, type } = view.envelope
    return [
      {
        code: 'gate-missing',
        id,
        text: `${id} (${type}) is held by a gate ("${view.hold?.key}") that is gone or has long decided: nobody will free it.`,
        repair: 'Let it run now. If it is itself a gate, it then looks at what it waits for.',
        mend: onlyIfStill(view, [{ do: 'release', id, delayMs: 0 }]),
      },
    ]
  })
}

/** The end of a member and the word to its gate are one step: a gate that waits for one that was seen to have ended has missed it. */
async function confirmMissed(desk: Desk, suspects: readonly Gated[]): Promise<readonly Found[]> {
  if (suspects.length === 0) return []
  const ids = [...new Set(suspects.flatMap(({ gate }) => gate.waiting))]
  const members = await readMembers(desk, ids)
  const gates = await readGates(
    desk,
    suspects.map(({ view }) => view),
  )
  const again = await desk.summaries(suspects.map(({ view }) => view.envelope.id))
  return suspects.flatMap(({ view }, i): readonly Found[] => {
    const missed = (gates[i]?.waiting ?? []).flatMap((id) => {
      const end = endOf(members.get(id))
      return end === undefined ? [] : [{ id, end }]
    })
    if (missed.length === 0 || !isHeldStill(view, again[i])) return []
    const { id, type } = view.envelope
    const key = gates[i]!.key
    const names = missed.slice(0, 5).map((one) => `${one.id} (${one.end.status})`)
    return [
      {
        code: 'gate-missed',
        id,
        text: `${id} (${type}) waits for ${names.join(', ')}, which ${missed.length === 1 ? 'has' : 'have'} ended: its gate was never told.`,
        repair: 'Tell its gate.',
        mend: onlyIfStill(
          view,
          missed.map((one): Effect => ({ do: 'tellGate', key, member: one.id, ok: one.end.status === 'success' })),
        ),
      },
    ]
  })
}

function isHeldStill(before: ItemSummary, now: ItemSummary | undefined): boolean {
  return now?.status === 'pending' && now.hold?.by === 'gate' && now.hold.key === before.hold?.key
}

/** Whether time frees it, whatever its gate does. */
export const hasTime = ({ dueAt }: ItemSummary): boolean => dueAt !== undefined && dueAt !== Number.POSITIVE_INFINITY
