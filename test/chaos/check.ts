import type { ItemView } from '../../src/ports/inspect.js'
import type { Backend } from '../../src/ports/ports.js'
import { checkHealth, type Health } from './check-health.js'
import { checkMinted, type Halves } from './check-minted.js'
import { checkRuns, type Run, type RunVerdict, runsOf } from './check-runs.js'
import { checkWaits, type WaitVerdict } from './check-waits.js'
import { hasEnded, type StoredGroup, StoredRecords } from './stored-records.js'
import type { Timeline } from './timeline.js'
import type { Accepted, Truth } from './truth.js'

export interface Unfinished {
  /** The accepted item that it belongs to. */
  readonly root: string
  readonly text: string
}

export interface Verdict extends RunVerdict, WaitVerdict, Halves, Health {
  /** Accepted, and not ended. */
  readonly unfinished: readonly Unfinished[]
  /** Accepted, and ended in another way than its input says; with what was found. */
  readonly wrong: readonly string[]
  /** Effects inside Millrace that happened twice, or counts that are off. */
  readonly doubled: readonly string[]
  /** Harmless work that was dead-lettered because it seemed to have killed its process. */
  readonly falselyCrashed: readonly string[]
  /** The same, and its processes were in fact killed so often while it ran. */
  readonly unlucky: number
  /** Work that took more processes along than it may before it is dead-lettered. */
  readonly deadly: readonly string[]
  /** Enqueued in a transaction that was rolled back, and there all the same. */
  readonly undoneButThere: readonly string[]
  readonly succeeded: number
  readonly deadLettered: number
  /** Groups whose value was counted, gates included. */
  readonly groups: number
  readonly gates: number
}

/** So many runs that died with their process are taken for the doing of the item. */
const CRASHES = 3
/** So many processes it may take along before that: the first deaths may be known only as lapsed leases. */
const MAX_DEATHS = 5

/** Something that must be there in the end. */
interface Expected {
  readonly id: string
  readonly root: string
  /** Its result, or how it died; null: any. */
  readonly outcome: string | undefined | null
  readonly kind: Accepted['kind']
}

/** Holds what the backend says against what the processes wrote down. */
export async function check(backend: Backend, truth: Truth, timeline: Timeline, leaseMs: number): Promise<Verdict> {
  const stored = new StoredRecords(backend)
  const { accepted } = truth
  const unfinished: Unfinished[] = []
  const wrong: string[] = []
  const falselyCrashed: string[] = []
  let [succeeded, deadLettered, unlucky] = [0, 0, 0]
  const runs = runsOf(truth.ran, timeline)
  const expected = accepted.flatMap(expectedOf)
  const children = truth.minted.flatMap((run) => run.children)
  const waitsFor = new Map(accepted.flatMap(({ id, on }) => (on === undefined ? [] : [[id, on]])))
  const undone = truth.undone.flatMap((id) => [id, `${id}/opened`])
  const items = await stored.items([
    ...expected.map(({ id }) => id),
    ...children,
    ...undone,
    ...[...waitsFor.values()].flat(),
  ])

  /** What hangs on an item that was dead-lettered as crashed is not complained of a second time. */
  const crashedRoots = new Set<string>()
  const judgeCrashed = (id: string, root: string) => {
    crashedRoots.add(root)
    const interrupted = (runs.get(id) ?? []).filter((run) => wasInterrupted(run, timeline)).length
    if (interrupted >= CRASHES) unlucky += 1
    else falselyCrashed.push(`${id}: ${items.get(id)?.error}, and ${interrupted} of its runs were interrupted`)
  }
  const isCrashed = (id: string) => items.get(id)?.ending === 'crashed'
  for (const { id, root, kind } of expected) if (isCrashed(id) && kind !== 'crasher') judgeCrashed(id, root)
  for (const { id, children } of truth.minted)
    for (const child of children) if (isCrashed(child)) judgeCrashed(child, id)
  for (const { id, root, outcome } of expected) {
    const view = items.get(id)
    if (crashedRoots.has(root)) continue
    if (view === undefined || !hasEnded(view)) {
      unfinished.push({ root, text: `${id}: ${view?.status ?? 'unknown'}${membersText(waitsFor.get(id), items)}` })
      continue
    }
    if (view.status === 'completed') succeeded += 1
    else deadLettered += 1
    if (outcome !== null && outcomeOf(view) !== outcome) wrong.push(`${id}: ${outcomeOf(view)} instead of ${outcome}`)
  }

  const groupIds = new Map(accepted.flatMap(({ id }) => (items.has(id) ? [[id, items.get(id)!.envelope.groupId]] : [])))
  const sound = accepted.filter(({ id }) => !crashedRoots.has(id))
  const counted = sound.filter(({ id, kind }) => groupIds.has(id) && hasGroup(kind))
  const groups = await stored.groups(
    accepted.flatMap(({ id, kind }) => (hasGroup(kind) ? (groupIds.get(id) ?? []) : [])),
  )
  const groupOf = (id: string): StoredGroup | undefined => groups.get(groupIds.get(id) ?? '')
  const doubled: string[] = []
  for (const one of counted) {
    const group = groupOf(one.id)
    if (group === undefined || group.open > 0)
      unfinished.push({ root: one.id, text: `group of ${one.id}: ${group?.open ?? 'unknown'} open` })
    else if (group.open < 0 || (one.kind !== 'mint' && group.value !== sumOf(one)))
      doubled.push(`group of ${one.id}: open ${group.open}, value ${group.value} instead of ${sumOf(one)}`)
  }
  return {
    unfinished,
    wrong,
    doubled,
    falselyCrashed,
    unlucky,
    deadly: deadlyOf(truth.crashes),
    undoneButThere: undone.filter((id) => items.has(id)),
    succeeded,
    deadLettered,
    groups: counted.length,
    gates: accepted.filter(({ kind }) => kind === 'gate').length,
    ...checkMinted(sound, truth.minted, items, groupOf),
    ...checkWaits(truth, items, groupOf),
    ...checkRuns(runs, truth.locked, timeline, leaseMs),
    ...checkHealth(truth, timeline),
  }
}

/** Whether everything that was accepted has ended, children included. */
export async function hasDrained(backend: Backend, { accepted, minted }: Truth): Promise<boolean> {
  const stored = new StoredRecords(backend)
  if (!(await stored.haveEnded(accepted.map(({ id }) => id)))) return false
  const expected = accepted.flatMap(expectedOf)
  const items = await stored.items([...expected.map(({ id }) => id), ...minted.flatMap(({ children }) => children)])
  // What is dead has no children; and which run counted is not known here: of the others nothing exists.
  const isDue = ({ id, root }: Expected) => items.has(id) || items.get(root)?.status === 'completed'
  return expected.every((one) => !isDue(one) || hasEnded(items.get(one.id))) && [...items.values()].every(hasEnded)
}

/** What an accepted item stands for: itself, and what is known to come of it. */
function expectedOf({ id, kind, result, n, parts = 0 }: Accepted): Expected[] {
  const one = (outcome: Expected['outcome']): Expected => ({ id, root: id, kind, outcome })
  switch (kind) {
    case 'leaf':
      return [one(String(result))]
    case 'poison':
      return [one('aborted, poison')]
    case 'crasher':
      return [one('crashed, poison')]
    case 'coin':
      // Whatever one of its runs said: see check-minted.ts.
      return [one(null)]
    case 'mint':
      return [one(undefined)]
    case 'gate':
      return [one(undefined), { id: `${id}/opened`, root: id, kind, outcome: '1' }]
    case 'fan':
      return [
        one(undefined),
        ...Array.from({ length: parts }, (_, i) => ({ id: `${id}/${i}`, root: id, kind, outcome: String(n) })),
      ]
  }
}

/** A gate that did not open, and why it should have. */
function membersText(on: readonly string[] | undefined, items: ReadonlyMap<string, ItemView>): string {
  if (on === undefined) return ''
  return `, on ${on.map((id) => `${id} (${items.get(id)?.status ?? 'unknown'})`).join(' ')}`
}

function hasGroup(kind: Accepted['kind']): boolean {
  return kind === 'fan' || kind === 'gate' || kind === 'mint'
}

/** What the group of a fan, or of a gate that opened once, adds up to. */
function sumOf({ kind, n = 0, parts = 0 }: Accepted): string {
  return String(kind === 'gate' ? 1 : n * parts)
}

function outcomeOf(view: ItemView): string | undefined {
  return view.status === 'completed' ? view.result : `${view.ending}, ${view.class}`
}

/** Its process died during the run, or was disturbed; what had ended by then, or had not begun, is not to blame. */
function wasInterrupted({ by, from, to, hasEnded: isOver }: Run, timeline: Timeline): boolean {
  return !isOver || timeline.isDisturbed(by, from, to)
}

function deadlyOf(crashes: readonly string[]): string[] {
  const deaths = new Map<string, number>()
  for (const id of crashes) deaths.set(id, (deaths.get(id) ?? 0) + 1)
  return [...deaths].flatMap(([id, count]) => (count > MAX_DEATHS ? [`${id}: ${count} processes`] : []))
}
