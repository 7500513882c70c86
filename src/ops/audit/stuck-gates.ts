import type { ItemSummary } from '../../ports/inspect.js'
import { topOf } from '../../ports/item.js'
import { DEPENDENCY_TYPE } from '../../work/define/dependency.js'
import type { OpsContext } from '../context.js'
import { durationText } from '../duration-text.js'
import { blockedForever, type GateNeed, itemCycleFrom } from './can-finish.js'
import { ageOf, type Found, GRACE_MS } from './found.js'
import { type Gated, hasTime, readGates, readMembers } from './gates.js'
import { pagesOf } from './pages.js'

/** How many items are followed from one batch of suspects. Items beyond that are assumed to be able to end. */
const MOST_NODES = 10_000
/** How many items that gates have yet to enqueue are remembered. */
const MOST_PROMISED = 100_000

/** Held items that may wait forever: no time limit frees them, and too few of their members are sure to end. */
export async function suspectsAmong(context: OpsContext, gated: readonly Gated[]): Promise<readonly Gated[]> {
  const timeless = gated.filter(({ view }) => !hasTime(view))
  const members = await readMembers(context, [...new Set(timeless.flatMap(({ gate }) => gate.waiting))])
  return timeless.filter(({ gate }) => {
    const onTheirWay = gate.waiting.filter((id) => {
      const member = members.get(id)
      const view = member?.view ?? member?.top
      return view !== undefined && (view.hold?.by !== 'gate' || hasTime(view))
    })
    return onTheirWay.length < gate.need
  })
}

/**
 * Which suspects nothing can ever free: they wait in a cycle, or for items that were never enqueued. `beyond`: how many were
 * not followed to the end.
 */
export async function stuckOf(
  context: OpsContext,
  suspects: readonly Gated[],
): Promise<{ readonly found: readonly Found[]; readonly beyond: number }> {
  if (suspects.length === 0) return { found: [], beyond: 0 }
  const first = await explore(context, suspects, new Map())
  // A gate may be about to enqueue a missing item: then the suspect waits for that gate.
  const promised = first.unknown.size === 0 ? new Map<string, string>() : await promisedBy(context, first.unknown)
  const { held, unknown, views, isCut } = promised.size === 0 ? first : await explore(context, suspects, promised)
  const now = await context.now()
  const stuck = blockedForever(held, (id) => unknown.has(id))
  const inCircle = blockedForever(held, () => false)
  const found: Found[] = []
  for (const { view } of suspects) {
    const { id } = view.envelope
    if (!stuck.has(id) || !held.has(id)) continue
    const missing = held.get(id)!.of.filter((member) => unknown.has(member))
    if (missing.length > 0 && !inCircle.has(id)) {
      if (ageOf(view.envelope.queueAt, now) >= GRACE_MS) found.push(neverEnqueued(view, missing, now))
      continue
    }
    const circle = itemCycleFrom(id, held, inCircle)
    // One finding for a cycle, under its first id.
    if (circle !== undefined && circle.toSorted()[0] === id) found.push(cycleFinding(circle, views))
  }
  const beyond = isCut ? suspects.filter(({ view }) => !stuck.has(view.envelope.id)).length : 0
  return { found, beyond }
}

interface Explored {
  readonly held: ReadonlyMap<string, GateNeed>
  readonly unknown: ReadonlySet<string>
  readonly views: ReadonlyMap<string, ItemSummary>
  /** The limit was reached. */
  readonly isCut: boolean
}

/** Everything that the suspects wait for, directly and indirectly. */
async function explore(
  context: OpsContext,
  suspects: readonly Gated[],
  promised: ReadonlyMap<string, string>,
): Promise<Explored> {
  const held = new Map<string, GateNeed>()
  const unknown = new Set<string>()
  const views = new Map<string, ItemSummary>()
  let ids: readonly string[] = suspects.map(({ view }) => view.envelope.id)
  const asked = new Set(ids)
  while (ids.length > 0 && held.size < MOST_NODES) {
    const found = await context.summaries(ids)
    const holding = found.flatMap((view) => (view?.hold?.by === 'gate' && !hasTime(view) ? [view] : []))
    const gates = await readGates(context, holding)
    const next = new Set<string>()
    for (const [i, id] of ids.entries()) {
      const view = found[i]
      if (view !== undefined) views.set(id, view)
      // A tree without its own item ends with the item at its root; an item that a gate will enqueue ends after that gate.
      else {
        const instead = topOf(id) ?? promised.get(id)
        if (instead === undefined) unknown.add(id)
        else {
          held.set(id, { need: 1, of: [instead] })
          next.add(instead)
        }
      }
    }
    for (const [i, view] of holding.entries()) {
      const gate = gates[i]
      // Without a gate it is a separate finding, with its own repair.
      if (gate === undefined) continue
      held.set(view.envelope.id, { need: gate.need, of: gate.waiting })
      for (const member of gate.waiting) next.add(member)
    }
    ids = [...next].filter((id) => !asked.has(id))
    for (const id of ids) asked.add(id)
  }
  return { held, unknown, views, isCut: ids.length > 0 }
}

/**
 * The states of an unfinished gate, in the order in which it passes through them: one that moves on during the walk is met
 * later. Ended gates, of which there may be very many, enqueue nothing any more.
 */
const PROMISING = ['blocked', 'scheduled', 'retrying', 'waiting', 'active', 'retrying', 'waiting'] as const

/** Which of these ids a gate is going to enqueue, and which gate. Its input says so. */
async function promisedBy(context: OpsContext, ids: ReadonlySet<string>): Promise<ReadonlyMap<string, string>> {
  const inspect = context.inspect('audit')
  const promised = new Map<string, string>()
  for (const state of PROMISING) {
    for await (const page of pagesOf(inspect, { type: DEPENDENCY_TYPE, state })) {
      const inputs = await Promise.all(page.map(({ envelope }) => inspect.input(envelope.id)))
      for (const [i, { envelope }] of page.entries()) {
        for (const id of idsIn(inputs[i])) if (ids.has(id)) promised.set(id, envelope.id)
      }
      if (promised.size > MOST_PROMISED) return promised
    }
  }
  return promised
}

/** Every item id in what a gate will enqueue, and in what follows that. */
function idsIn(input: string | undefined): readonly string[] {
  if (input === undefined) return []
  const ids: string[] = []
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [name, inside] of Object.entries(value)) {
      if (name === 'id' && typeof inside === 'string') ids.push(inside)
      else walk(inside)
    }
  }
  try {
    const { queue, next } = JSON.parse(input) as { readonly queue?: unknown; readonly next?: unknown }
    walk(queue)
    walk(next)
  } catch {
    // Not an input in our format: nothing can be read from it.
  }
  return ids
}

function neverEnqueued(view: ItemSummary, missing: readonly string[], now: number): Found {
  const { id, type, queueAt } = view.envelope
  const names = missing.slice(0, 5).join(', ')
  return {
    code: 'gate-unknown',
    id,
    text: `${id} (${type}) has waited for ${durationText(ageOf(queueAt, now))} for ${names}, which was never enqueued${missing.length > 5 ? ` (and ${missing.length - 5} more)` : ''}, and it has no time limit.`,
    repair: `Enqueue ${names} under ${missing.length === 1 ? 'that id' : 'those ids'}, or cancel ${id}.`,
  }
}

function cycleFinding(circle: readonly string[], views: ReadonlyMap<string, ItemSummary>): Found {
  const [id] = circle.toSorted() as [string]
  const from = circle.indexOf(id)
  const way = [...circle.slice(from), ...circle.slice(0, from), id].filter(
    (one, i, all) => i === 0 || i === all.length - 1 || views.has(one),
  )
  return {
    code: 'gate-cycle',
    id,
    text: `${way.join(' waits for ')}: they wait for each other in a cycle, and none can ever run.`,
    repair: `Cancel one of them, for instance ${id}: the others are notified, and end.`,
  }
}
