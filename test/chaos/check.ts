import type { Ledger } from '../../src/ports/ledger.js'
import { ownedBy } from '../../src/ports/native.js'
import type { Backend } from '../../src/ports/ports.js'

/** A line that a producer wrote after `accepted()`. */
export interface Accepted {
  readonly id: string
  /** When the producer knew of it. */
  readonly at?: number
  readonly kind: 'leaf' | 'poison' | 'fan'
  readonly result?: number
  readonly n?: number
  readonly parts?: number
}

/** A line that a handler wrote before or after its run. */
export interface Ran {
  readonly is: 'start' | 'end'
  readonly id: string
  readonly fence: number
  readonly at: number
}

export interface Unfinished {
  /** The accepted item that it belongs to. */
  readonly root: string
  readonly text: string
}

export interface Verdict {
  /** Accepted, and not ended. */
  readonly unfinished: readonly Unfinished[]
  /** Accepted, and ended in another way than its input says; with what was found. */
  readonly wrong: readonly string[]
  /** Effects inside Millrace that happened twice, or counts that are off. */
  readonly doubled: readonly string[]
  /** Two runs of one item under one fence: two holders of one lease. */
  readonly sharedLeases: readonly string[]
  readonly succeeded: number
  readonly parked: number
  readonly groups: number
  readonly runs: number
  /** Runs of an item beyond what its input asks for: their processes were killed. */
  readonly repeatedRuns: number
}

const CHUNK = 500

/** Holds what the backend says against what producers and handlers wrote down. It asks the ledger only to read. */
export async function check(backend: Backend, accepted: readonly Accepted[], ran: readonly Ran[]): Promise<Verdict> {
  const ledger = ledgerOf(backend)
  const unfinished: Unfinished[] = []
  const wrong: string[] = []
  const doubled: string[] = []
  const groupOf = new Map<string, string>()
  let succeeded = 0
  let parked = 0
  const expected = [...accepted, ...accepted.flatMap(partsOf)]
  for (const chunk of chunksOf(expected)) {
    const views = await ledger.read(chunk.map(({ id }) => id))
    for (const [i, one] of chunk.entries()) {
      const view = views[i]
      if (view === undefined || (view.status !== 'success' && view.status !== 'dead')) {
        unfinished.push({ root: one.id.split('/')[0]!, text: `${one.id}: ${view?.status ?? 'unknown'}` })
        continue
      }
      if (view.status === 'success') succeeded += 1
      else parked += 1
      groupOf.set(one.id, view.envelope.groupId)
      const found = view.status === 'success' ? view.result : `${view.ending}, ${view.class}`
      const should =
        one.kind === 'poison' ? 'aborted, poison' : one.result === undefined ? undefined : String(one.result)
      if (found !== should) wrong.push(`${one.id}: ${found} instead of ${should}`)
    }
  }
  const fans = accepted.filter(({ kind, id }) => kind === 'fan' && groupOf.has(id))
  for (const chunk of chunksOf(fans)) {
    const groups = await ledger.groups(chunk.map(({ id }) => groupOf.get(id)!))
    for (const [i, { id, n = 0, parts = 0 }] of chunk.entries()) {
      const group = groups[i]
      if (group === undefined || group.open > 0)
        unfinished.push({ root: id, text: `group of ${id}: ${group?.open ?? 'unknown'} open` })
      else if (group.open < 0 || group.value !== String(n * parts))
        doubled.push(`group of ${id}: open ${group.open}, value ${group.value} instead of ${n * parts}`)
    }
  }
  return { unfinished, wrong, doubled, succeeded, parked, groups: fans.length, ...runsOf(ran, expected) }
}

/** Whether everything that was accepted has ended: the last of each kind are asked first, since they end last. */
export async function hasDrained(backend: Backend, accepted: readonly Accepted[]): Promise<boolean> {
  const ledger = ledgerOf(backend)
  for (const chunk of chunksOf([...accepted, ...accepted.flatMap(partsOf)].toReversed())) {
    const views = await ledger.read(chunk.map(({ id }) => id))
    if (views.some((view) => view?.status !== 'success' && view?.status !== 'dead')) return false
  }
  return true
}

function runsOf(ran: readonly Ran[], expected: readonly Accepted[]) {
  const starts = ran.filter(({ is }) => is === 'start')
  const seen = new Set<string>()
  const sharedLeases: string[] = []
  const runsById = new Map<string, number>()
  for (const { id, fence } of starts) {
    const key = `${id} under fence ${fence}`
    if (seen.has(key)) sharedLeases.push(key)
    seen.add(key)
    runsById.set(id, (runsById.get(id) ?? 0) + 1)
  }
  // A flaky one runs twice by itself; what is over that was a process that died.
  const repeatedRuns = expected.reduce((sum, { id }) => sum + Math.max(0, (runsById.get(id) ?? 0) - 2), 0)
  return { runs: starts.length, sharedLeases, repeatedRuns }
}

/** The children that an accepted fan stands for. */
function partsOf({ id, kind, n, parts = 0 }: Accepted): Accepted[] {
  if (kind !== 'fan' || n === undefined) return []
  return Array.from({ length: parts }, (_, i) => ({ id: `${id}/${i}`, kind: 'leaf' as const, result: n }))
}

function ledgerOf(backend: Backend): Ledger {
  const found = ownedBy(backend, [])
  if (!('open' in found)) throw new Error(`this backend has no ledger: its ${found.foreign} is foreign`)
  return found.open({ prefix: 'work:' })
}

function chunksOf<T>(all: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(all.length / CHUNK) }, (_, i) => all.slice(i * CHUNK, (i + 1) * CHUNK))
}
