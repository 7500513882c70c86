import type { GateView, ItemSummary } from '../../ports/inspect.js'
import { topOf } from '../../ports/item.js'
import type { Effect } from '../../ports/settlement.js'
import type { OpsContext } from '../context.js'
import { type Found, ifUnchanged } from './found.js'

/** An item that a gate holds, and its gate. */
export interface Gated {
  readonly view: ItemSummary
  readonly gate: GateView
}

/** A member of a gate: its own item and, for a tree without one, the item at its root. */
export interface Member {
  readonly view: ItemSummary | undefined
  readonly top: ItemSummary | undefined
}

/** Findings about the gates of these items, and the items whose gates are sound and still waiting. */
export async function gatesOf(
  context: OpsContext,
  views: readonly ItemSummary[],
): Promise<{ readonly found: readonly Found[]; readonly waiting: readonly Gated[] }> {
  const held = views.filter(({ hold }) => hold?.by === 'gate')
  if (held.length === 0) return { found: [], waiting: [] }
  const gates = await readGates(context, held)
  const gated = held.flatMap((view, i): readonly Gated[] => (gates[i] === undefined ? [] : [{ view, gate: gates[i] }]))
  const missing = held.filter((_, i) => gates[i] === undefined)
  const members = await readMembers(context, [...new Set(gated.flatMap(({ gate }) => gate.waiting))])
  const suspect = gated.filter(({ gate }) => gate.waiting.some((id) => hasEnded(members.get(id))))
  return {
    found: [...(await confirmMissing(context, missing)), ...(await confirmMissed(context, suspect))],
    waiting: gated.filter((one) => !suspect.includes(one)),
  }
}

export async function readGates(
  context: OpsContext,
  views: readonly ItemSummary[],
): Promise<readonly (GateView | undefined)[]> {
  const inspect = context.inspect('audit')
  return Promise.all(views.map(({ hold }) => (hold?.by === 'gate' ? inspect.gate(hold.key) : undefined)))
}

/**
 * Reads the roots before the members. An item that ends with children creates, in the same commit, the item that represents
 * its tree. So if the root has ended and that item is not found afterwards, it does not exist.
 */
export async function readMembers(context: OpsContext, ids: readonly string[]): Promise<ReadonlyMap<string, Member>> {
  if (ids.length === 0) return new Map()
  const tops = ids.map((id) => topOf(id))
  const named = tops.flatMap((top) => top ?? [])
  const found = named.length === 0 ? [] : await context.summaries(named)
  const byTop = new Map(named.map((id, i) => [id, found[i]]))
  const views = await context.summaries(ids)
  return new Map(
    ids.map((id, i) => {
      const top = tops[i]
      return [id, { view: views[i], top: top === undefined ? undefined : byTop.get(top) }]
    }),
  )
}

/** The ended item of a member; undefined while it has not ended. */
function endOf(member: Member | undefined): ItemSummary | undefined {
  const view = member?.view ?? member?.top
  return view?.status === 'completed' || view?.status === 'dead' ? view : undefined
}

const hasEnded = (member: Member | undefined): boolean => endOf(member) !== undefined

/** A gate frees its item in the commit that decides it: an item still held after its gate was found missing is stuck. */
async function confirmMissing(context: OpsContext, views: readonly ItemSummary[]): Promise<readonly Found[]> {
  if (views.length === 0) return []
  const again = await context.summaries(views.map(({ envelope }) => envelope.id))
  return views.flatMap((view, i): readonly Found[] => {
    if (!isHeldStill(view, again[i])) return []
    const { id, type } = view.envelope
    return [
      {
        code: 'gate-missing',
        id,
        text: `${id} (${type}) is held by a gate ("${view.hold?.key}") that is gone or has already decided: nothing will free it.`,
        repair: 'Let it run now. If it is itself a gate, it then checks what it waits for.',
        fix: ifUnchanged(view, [{ do: 'release', id, delayMs: 0 }]),
      },
    ]
  })
}

/** A member ends and notifies its gate in one commit: a gate that still waits for an ended member has missed it. */
async function confirmMissed(context: OpsContext, suspects: readonly Gated[]): Promise<readonly Found[]> {
  if (suspects.length === 0) return []
  const ids = [...new Set(suspects.flatMap(({ gate }) => gate.waiting))]
  const members = await readMembers(context, ids)
  const gates = await readGates(
    context,
    suspects.map(({ view }) => view),
  )
  const again = await context.summaries(suspects.map(({ view }) => view.envelope.id))
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
        text: `${id} (${type}) waits for ${names.join(', ')}, which ${missed.length === 1 ? 'has' : 'have'} ended: its gate was never notified.`,
        repair: 'Notify its gate.',
        fix: ifUnchanged(
          view,
          missed.map(
            (one): Effect => ({ do: 'notifyGate', key, member: one.id, completed: one.end.status === 'completed' }),
          ),
        ),
      },
    ]
  })
}

function isHeldStill(before: ItemSummary, now: ItemSummary | undefined): boolean {
  return now?.status === 'pending' && now.hold?.by === 'gate' && now.hold.key === before.hold?.key
}

/** Whether a time limit frees it, whatever its gate does. */
export const hasTime = ({ dueAt }: ItemSummary): boolean => dueAt !== undefined && dueAt !== Number.POSITIVE_INFINITY
