import type { Ms } from '../../core/time/time.js'
import type { ItemView } from '../../ports/inspect.js'
import { ATTEMPTS_KEPT } from '../../ports/limits.js'
import type { GroupValue } from '../../ports/settlement.js'
import { BrokenPromiseError } from './errors.js'
import { isGate } from './gate-history.js'
import type { History, ItemHistory, SimulatedRun } from './history.js'
import { checkWaits } from './wait-invariants.js'
import type { World } from './world.js'

/** What is left when everything has come to rest. */
export interface Aftermath {
  readonly history: History
  /** Items as the backend knows them: all it has, or all that the history knows where it cannot list. */
  readonly views: ReadonlyMap<string, ItemView>
  readonly groups: ReadonlyMap<string, GroupValue & { readonly open: number }>
  /** Processes that lived to the end: every wait in them must have settled. */
  readonly survivors: ReadonlySet<string>
}

/** Compares what the backend says with what happened. Throws the first promise that does not hold. */
export async function checkAftermath(world: World): Promise<void> {
  const after = await lookAround(world)
  for (const view of after.views.values()) checkView(after, view)
  for (const item of after.history.items.values()) checkItem(after, item)
  checkGroups(after)
  for (const item of after.history.items.values()) checkLosers(after, item)
  await checkAttempts(world, after)
  checkWaits(after)
}

async function lookAround({ backendState, history, processes }: World): Promise<Aftermath> {
  const { ledger } = backendState
  const known = [...history.items.keys(), ...childrenHeardOf(history)]
  const found = (await backendState.everything()) ?? (await ledger.read([...new Set(known)]))
  const all = found.flatMap((view) => view ?? [])
  const ended = new Set(all.filter(({ status }) => status === 'completed' || status === 'dead').map(idOf))
  const half = history.isExact ? new Set<string>() : neverAccepted(history, ended)
  const views = new Map(
    all.filter(({ envelope }) => !half.has(envelope.groupId)).map((view) => [view.envelope.id, view]),
  )
  const groupIds = [...new Set([...views.values()].map(({ envelope }) => envelope.groupId))]
  const values = await backendState.groups(groupIds)
  const groups = new Map(groupIds.flatMap((id, i) => (values[i] === undefined ? [] : [[id, values[i]] as const])))
  const survivors = new Set(processes.filter(({ isStopping }) => !isStopping).map(({ name }) => name))
  return { history, views, groups, survivors }
}

const idOf = ({ envelope }: ItemView): string => envelope.id

/**
 * On plain ports an enqueue that failed may have been done by half: nothing was promised, and nothing is asked of it. What a
 * schedule fired is enqueued until it is there, and counts once it has run; an occurrence that was skipped may be half there.
 */
function neverAccepted(history: History, ended: ReadonlySet<string>): ReadonlySet<string | undefined> {
  const lost = [...history.items.values()].filter(
    (item) =>
      item.offeredMs !== undefined && item.acceptedMs === undefined && !(item.isScheduled && ended.has(item.id)),
  )
  return new Set(lost.map(({ groupId }) => groupId))
}

/** What the backend has must have come from somewhere, and must have ended. */
function checkView({ history }: Aftermath, { envelope, status, ending }: ItemView): void {
  const item = history.items.get(envelope.id)
  const isChild = item?.bornOf !== undefined || envelope.parent !== undefined
  if (!isChild && item?.offeredMs === undefined) {
    throw new BrokenPromiseError('nothing exists that was not enqueued', `${envelope.id} was never enqueued`)
  }
  if (status !== 'completed' && status !== 'dead') {
    throw new BrokenPromiseError('accepted work ends', `${envelope.id} is ${status} although nothing is left to do`)
  }
  const attempts = envelope.retry?.attempts
  if (attempts !== undefined && envelope.attempt > attempts) {
    throw new BrokenPromiseError(
      'attempts stay within the policy',
      `${envelope.id} has attempt ${envelope.attempt} of ${attempts}`,
    )
  }
  if (ending === 'exhausted' && attempts !== undefined && envelope.attempt !== attempts) {
    throw new BrokenPromiseError(
      'nothing is given up early',
      `${envelope.id} was given up at attempt ${envelope.attempt} of ${attempts}`,
    )
  }
}

function checkItem(after: Aftermath, item: ItemHistory): void {
  const { history, views } = after
  const view = views.get(item.id)
  if (item.acceptedMs !== undefined && view === undefined && !(history.isExact && item.hasEnded)) {
    throw new BrokenPromiseError('accepted work is never lost', `${item.id} was accepted, and nothing is known of it`)
  }
  checkChildren(after, item, view)
  if (!history.isExact) return
  const isOpen = (item.acceptedMs !== undefined || item.bornOf !== undefined) && !item.hasEnded
  if (isOpen) throw new BrokenPromiseError('accepted work ends', `${item.id} has not ended`)
  checkEnding(item, history)
  checkCancelled(history, item)
}

/** The children of the run that settled exist, and those of any other run do not. */
function checkChildren({ history, views }: Aftermath, item: ItemHistory, view: ItemView | undefined): void {
  const returned = item.runs.flatMap((run) =>
    run.outcome?.kind === 'returned' && run.isOverruled !== true ? [{ run, children: run.outcome.children }] : [],
  )
  if (returned.every(({ children }) => children.length === 0)) return
  const exists = (id: string) => (history.isExact ? history.items.get(id)?.bornOf !== undefined : views.has(id))
  const counts = returned.filter(({ children }) => children.some(exists))
  if (counts.length > 1) {
    throw new BrokenPromiseError('effects happen once', `${counts.length} runs of ${item.id} have children that exist`)
  }
  const [made] = counts
  const missing = made?.children.find((id) => !exists(id))
  if (missing !== undefined) {
    throw new BrokenPromiseError('a run settles as a whole', `${item.id} has some children, but not ${missing}`)
  }
  if (!history.isExact) {
    if (made === undefined && view?.status === 'completed' && returned.every(({ children }) => children.length > 0)) {
      throw new BrokenPromiseError('a run settles as a whole', `${item.id} succeeded, and its children do not exist`)
    }
    return
  }
  for (const { run, children } of returned) {
    if (children.length === 0 || (run.settledNth !== undefined) === (run === made?.run)) continue
    const how =
      run.settledNth === undefined
        ? 'has children although it did not settle'
        : 'settled, and its children do not exist'
    throw new BrokenPromiseError('a run settles as a whole', `${item.id}#${run.fence} ${how}`)
  }
}

/** The end that was recorded is one that its runs explain. */
function checkEnding(item: ItemHistory, { controls }: History): void {
  if (isGate(item)) return // Checked when it ended.
  for (const { ending, fence } of item.ends) {
    const run = fence === undefined ? undefined : item.run(fence)
    const broken = (what: string) =>
      new BrokenPromiseError('an end is what its run came to', `${item.id} ended ${ending}, ${what}`)
    switch (ending) {
      case 'completed':
        if (run?.outcome?.kind !== 'returned') throw broken(`but no handler returned under fence ${fence}`)
        break
      case 'exhausted':
        if (run?.outcome?.kind !== 'threw' && run?.notifiedWhy !== 'RUN_TIMEOUT' && run?.hasRunOut !== true)
          throw broken(`but no handler threw or ran out of time under fence ${fence}`)
        break
      case 'cancelled':
        if (!controls.wasCancelled(item.id)) throw broken('but it was not cancelled')
        break
      case 'crashed': {
        const unsettled = item.leases.length - item.settlements
        // The lease that records the crash is settled itself.
        if (unsettled < 3) throw broken(`but only ${unsettled} of its leases were never settled`)
        break
      }
      default:
        break // Deadlines, operators and bad input end an item without a run, or with a run of either kind.
    }
  }
}

/** A run that is asked to stop is notified by a heartbeat at the latest, unless its process stands still or is gone. */
function checkCancelled(history: History, item: ItemHistory): void {
  for (const run of item.runs) {
    const askedMs = history.controls.askedToStop(item.id, run.fence)
    // A heartbeat whose answer is lost is repeated; one that fails for a whole lease loses it, which is reported too.
    if (askedMs === undefined || wasNotified(history, run, askedMs, 2)) continue
    const what = `${run.id}#${run.fence} went on in ${run.process} long after it was cancelled`
    throw new BrokenPromiseError('a cancelled run is notified', what)
  }
}

/** A run whose lease went to another one is notified within a lease, unless its process stands still or is gone. */
function checkLosers({ history }: Aftermath, item: ItemHistory): void {
  for (const run of item.runs) {
    const next = item.leases.find(({ fence }) => fence > run.fence)
    if (next === undefined || wasNotified(history, run, next.ms, 1)) continue
    const what = `${run.id}#${run.fence} went on in ${run.process} long after fence ${next.fence} had taken over`
    throw new BrokenPromiseError('a run that lost its lease is notified', what)
  }
}

/** Whether a run ended, or was notified, within so many leases of something that concerns it. What was settled need not be. */
function wasNotified(history: History, run: SimulatedRun, sinceMs: Ms, leases: number): boolean {
  const process = history.processes.get(run.process)
  if (process === undefined || run.settledNth !== undefined) return true
  const byMs = Math.max(sinceMs, process.awakeMs) + leases * process.leaseMs
  const endedMs = Math.min(run.endedMs ?? Infinity, process.goneMs ?? Infinity)
  return endedMs <= byMs || (run.notifiedMs ?? Infinity) <= byMs
}

/** Every run that counted is remembered, once. */
async function checkAttempts({ backendState }: World, { history, views }: Aftermath): Promise<void> {
  const { inspect } = backendState.ledger
  if (inspect === undefined || !history.isExact) return
  for (const item of history.items.values()) {
    const settled = item.runs.filter(({ settledNth }) => settledNth !== undefined)
    if (settled.length >= ATTEMPTS_KEPT || !views.has(item.id) || isGate(item)) continue
    const remembered = await inspect.attempts(item.id)
    if (remembered.length === settled.length) continue
    throw new BrokenPromiseError(
      'every run that counted is remembered once',
      `${item.id} had ${settled.length} runs that counted, and ${remembered.length} attempts are remembered`,
    )
  }
}

function checkGroups({ history, views, groups }: Aftermath): void {
  const ids = new Set([...views.values()].map(({ envelope }) => envelope.groupId))
  for (const id of ids) {
    const group = groups.get(id)
    if (group === undefined) continue // Its records have expired, and were closed before that, see below.
    if (group.open !== 0 && history.areCountsExact)
      throw new BrokenPromiseError('counters are exact', `group ${id} has ${group.open} open, and nothing in it is`)
    if (history.isExact && !history.closings.has(id)) {
      throw new BrokenPromiseError(
        'a group closes once',
        `everything in group ${id} has ended, and it was never closed`,
      )
    }
  }
}

function childrenHeardOf(history: History): readonly string[] {
  return [...history.items.values()].flatMap(({ runs }) =>
    runs.flatMap(({ outcome }) => (outcome?.kind === 'returned' ? outcome.children : [])),
  )
}
