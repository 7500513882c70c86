import type { ItemSummary } from '../../ports/ledger.js'
import { topOf } from '../../ports/tree.js'
import { DEPENDENCY_TYPE } from '../../work/dependency.js'
import type { Desk } from '../desk.js'
import { durationText } from '../duration-text.js'
import { circleFrom, type Need, stuckAmong } from './can-finish.js'
import { type Gated, hasTime, readGates, readMembers } from './gates.js'
import { pagesOf } from './pages.js'
import { agoOf, type Found, GRACE_MS } from './suspicion.js'

/** So many items are looked at from one lot of suspects. What lies beyond is taken to be able to end. */
const MOST_NODES = 10_000
/** So many items that gates are yet to queue are remembered. */
const MOST_PROMISED = 100_000

/** Those of the held items that may wait for ever: no time frees them, and too few of their members are plainly on their way. */
export async function suspectsAmong(desk: Desk, gated: readonly Gated[]): Promise<readonly Gated[]> {
  const timeless = gated.filter(({ view }) => !hasTime(view))
  const members = await readMembers(desk, [...new Set(timeless.flatMap(({ gate }) => gate.waiting))])
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
 * Which of the suspects nothing can ever free: they wait in a circle, or for what nobody has enqueued. `beyond`: how many of them were let
 * off because there was more behind them than is looked at.
 */
export async function stuckOf(
  desk: Desk,
  suspects: readonly Gated[],
): Promise<{ readonly found: readonly Found[]; readonly beyond: number }> {
  if (suspects.length === 0) return { found: [], beyond: 0 }
  const first = await explore(desk, suspects, new Map())
  // Somebody may be about to queue what is missing: then it waits for them.
  const promised = first.unknown.size === 0 ? new Map<string, string>() : await promisedBy(desk, first.unknown)
  const { held, unknown, views, isCut } = promised.size === 0 ? first : await explore(desk, suspects, promised)
  const now = await desk.now()
  const stuck = stuckAmong(held, (id) => unknown.has(id))
  const inCircle = stuckAmong(held, () => false)
  const found: Found[] = []
  for (const { view } of suspects) {
    const { id } = view.envelope
    if (!stuck.has(id) || !held.has(id)) continue
    const missing = held.get(id)!.of.filter((member) => unknown.has(member))
    if (missing.length > 0 && !inCircle.has(id)) {
      if (agoOf(view.envelope.queueAt, now) >= GRACE_MS) found.push(forNobody(view, missing, now))
      continue
    }
    const circle = circleFrom(id, held, inCircle)
    // One finding for a circle: that of its first.
    if (circle !== undefined && circle.toSorted()[0] === id) found.push(inACircle(circle, views))
  }
  const beyond = isCut ? suspects.filter(({ view }) => !stuck.has(view.envelope.id)).length : 0
  return { found, beyond }
}

interface Map1 {
  readonly held: ReadonlyMap<string, Need>
  readonly unknown: ReadonlySet<string>
  readonly views: ReadonlyMap<string, ItemSummary>
  /** There was more than is looked at. */
  readonly isCut: boolean
}

/** Everything that the suspects wait for, and what that waits for, as it is now. */
async function explore(desk: Desk, suspects: readonly Gated[], promised: ReadonlyMap<string, string>): Promise<Map1> {
  const held = new Map<string, Need>()
  const unknown = new Set<string>()
  const views = new Map<string, ItemSummary>()
  let ids: readonly string[] = suspects.map(({ view }) => view.envelope.id)
  const asked = new Set(ids)
  while (ids.length > 0 && held.size < MOST_NODES) {
    const found = await desk.summaries(ids)
    const holding = found.flatMap((view) => (view?.hold?.by === 'gate' && !hasTime(view) ? [view] : []))
    const gates = await readGates(desk, holding)
    const next = new Set<string>()
    for (const [i, id] of ids.entries()) {
      const view = found[i]
      if (view !== undefined) views.set(id, view)
      // A tree without an item of its own ends with the item at its top; what a gate will queue, after that gate.
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
      // Without a gate it is a finding of its own, and mended.
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
 * Where a gate that has not ended can be, in the order in which it goes through them: one that moves on while this looks is met
 * later. Those that have ended, of which there may be very many, promise nothing any more.
 */
const PROMISING = ['blocked', 'scheduled', 'retrying', 'waiting', 'active', 'retrying', 'waiting'] as const

/** Which of these ids some gate is going to queue, and which gate. Gates have written it down. */
async function promisedBy(desk: Desk, ids: ReadonlySet<string>): Promise<ReadonlyMap<string, string>> {
  const inspect = desk.inspect('audit')
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

/** Every id of an item in what a gate is to queue, and in what comes after that. */
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
    // Not a gate as we write them: it promises nothing that we could read.
  }
  return ids
}

function forNobody(view: ItemSummary, missing: readonly string[], now: number): Found {
  const { id, type, queueAt } = view.envelope
  const names = missing.slice(0, 5).join(', ')
  return {
    code: 'gate-unknown',
    id,
    text: `${id} (${type}) has waited for ${durationText(agoOf(queueAt, now))} for ${names}, which nobody has enqueued${missing.length > 5 ? ` (and ${missing.length - 5} more)` : ''}, and it has no time limit.`,
    repair: `Enqueue ${names} under ${missing.length === 1 ? 'that id' : 'those ids'}, or cancel ${id}.`,
  }
}

function inACircle(circle: readonly string[], views: ReadonlyMap<string, ItemSummary>): Found {
  const [id] = circle.toSorted() as [string]
  const from = circle.indexOf(id)
  const way = [...circle.slice(from), ...circle.slice(0, from), id].filter(
    (one, i, all) => i === 0 || i === all.length - 1 || views.has(one),
  )
  return {
    code: 'gate-cycle',
    id,
    text: `${way.join(' waits for ')}: they wait for each other in a circle, and none can ever go on.`,
    repair: `Cancel one of them, for instance ${id}: the others are told, and end.`,
  }
}
