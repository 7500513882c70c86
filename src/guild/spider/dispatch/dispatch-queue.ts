import type { ClerkApi } from '../../clerk/api.js'
import type { LinkDoc, WritDoc } from '../../clerk/writs/writ.js'
import type { ChangeEvent, ChangeHandler } from '../../stacks/watch/events.js'
import type { SpiderContext } from '../context.js'
import type { DispatchRow } from '../rigs/rig.js'
import { updateDeadline } from './deadlines.js'
import { childEnded } from './families.js'
import { isGate, writCycleFrom } from './link-gate.js'
import { spiderStatusOf } from './writ-status.js'

/**
 * What the dispatch queue takes: less than Spider itself, because a process without engines keeps it, too, when it posts, opens
 * or cancels a writ.
 */
export interface DispatchContext
  extends Pick<SpiderContext, 'writs' | 'dispatch' | 'waits' | 'gates' | 'deadlines' | 'now'> {
  readonly clerk: Pick<ClerkApi, 'isTerminal' | 'isInitial' | 'setWritStatus' | 'hasOpenChildren' | 'transition'>
  /** Whether a writ of this type may get a rig; `unknown` leaves it to the process that would give it one. */
  mayHaveRig(type: string): boolean | 'unknown'
}

/** What ends with a writ, and takes more than the queue. */
export interface WritEnds {
  /** Ends the rig that goes on for a writ which was cancelled. */
  endRigOf(writ: WritDoc): Promise<void>
  /** The rig of this writ has completed, and one of its children has ended. */
  completeParent(id: string): Promise<void>
}

/**
 * Keeps the dispatch queue: which writs may get a rig, which wait and for what. The transactions that change writs and links update
 * it, so a crawl never reads a writ that cannot go on.
 */
export function writWatcher(context: DispatchContext, ends: WritEnds): ChangeHandler<WritDoc> {
  return async (event) => {
    const id = event.type === 'delete' ? event.id : event.entry.id
    if (event.type === 'update' && !hasMoved(event)) return
    // What other watchers did in this transaction may have moved it on already.
    const writ = await context.writs.get(id)
    const isOver = writ === null || context.clerk.isTerminal(writ)
    if (isOver && event.type !== 'create') await context.gates.put({ id, state: 'ended', at: context.now() })
    await updateDispatch(context, id, writ)
    const before = event.type === 'create' ? undefined : event.prev
    if (writ?.deadline !== undefined || before?.deadline !== undefined) await updateDeadline(context, id, writ)
    if (writ?.phase === 'cancelled' && event.type === 'update' && event.prev.phase !== 'cancelled')
      await ends.endRigOf(writ)
    if (isOver && writ?.parentId !== undefined) await childEnded(context, writ.parentId, ends.completeParent)
  }
}

/** Updates the dispatch queue when writs are linked and unlinked. */
export function linkWatcher(context: SpiderContext): ChangeHandler<LinkDoc> {
  return async (event) => {
    const before = event.type === 'create' ? undefined : event.prev
    const after = event.type === 'delete' ? undefined : event.entry
    const held = before !== undefined && isGate(context, before)
    const holds = after !== undefined && isGate(context, after)
    if (holds && !held) await linked(context, after)
    if (held && !holds) await unlinked(context, before)
  }
}

/** Whether a gate made the writ stuck. */
export function isGateStuck(writ: WritDoc): boolean {
  const cause = spiderStatusOf(writ).stuckCause
  return writ.phase === 'stuck' && (cause === 'failed-blocker' || cause === 'cycle')
}

function hasMoved({ entry, prev }: Extract<ChangeEvent<WritDoc>, { type: 'update' }>): boolean {
  return (
    entry.phase !== prev.phase ||
    entry.type !== prev.type ||
    notBefore(entry) !== notBefore(prev) ||
    entry.deadline !== prev.deadline ||
    isGateStuck(entry) !== isGateStuck(prev)
  )
}

/** Stores where a writ is in the queue now. */
export async function updateDispatch(context: DispatchContext, id: string, writ: WritDoc | null): Promise<void> {
  const row = await context.dispatch.get(id)
  const mayHaveRig = writ?.phase === 'open' && context.mayHaveRig(writ.type)
  const isOpen = mayHaveRig !== false
  // Its rig still has to be ended, whatever else of the writ changes.
  if (row?.state === 'cancelling') return
  if (row !== null && writ !== null && row.type !== writ.type) await context.dispatch.patch(id, { type: writ.type })
  if (row?.state === 'active') {
    if (row.isOpen !== isOpen) await context.dispatch.patch(id, { isOpen })
    // It was opened again and waits for engines of its stuck rig, perhaps for long: a person who sticks it meanwhile means it.
    if (writ !== null && isOpen && spiderStatusOf(writ).rigId === row.rigId) await dropFlag(context, writ)
    return
  }
  if (writ !== null && isOpen) {
    // It waits for its children, and its rig has completed.
    if (row?.state === 'held' || row?.state === 'children') return
    const queued = queuedAs(context, writ)
    if (row?.state === 'ready' && queued.state === 'ready') return
    if (row?.state === 'delayed' && queued.state === 'delayed' && row.dueAt === queued.dueAt) return
    await context.dispatch.put({ ...inState(writ, queued.state, mayHaveRig === true), ...queued })
    // It waits, perhaps for long: a person who sticks it meanwhile means it.
    if (queued.state === 'delayed') await dropFlag(context, writ)
    if (row?.state === 'ready' || row?.state === 'delayed') return
  } else if (writ !== null && isGateStuck(writ)) {
    await context.dispatch.put(inState(writ, 'recheck', false))
  } else if (row !== null) {
    await context.dispatch.delete(id)
  } else return
  await forgetWaits(context, id)
}

/** In line for a rig; or delayed, until its time has come. */
export function queuedAs(
  context: Pick<SpiderContext, 'now'>,
  writ: WritDoc,
): { readonly state: 'ready' } | { readonly state: 'delayed'; readonly dueAt: string } {
  const dueAt = notBefore(writ)
  return dueAt === undefined || dueAt <= context.now() ? { state: 'ready' } : { state: 'delayed', dueAt }
}

/** The writ gets no rig before this: its own time, and the one that its last failure asked for. */
export function notBefore(writ: WritDoc): string | undefined {
  const { runAt } = writ
  const { retryAt } = spiderStatusOf(writ)
  return runAt === undefined || (retryAt !== undefined && retryAt > runAt) ? retryAt : runAt
}

/** The flag has spoken for the rig before: a writ that a person sticks from now on is not requeued because of it. */
export async function dropFlag(context: Pick<DispatchContext, 'clerk'>, writ: WritDoc): Promise<void> {
  const { retryable, rigId: _, ...rest } = spiderStatusOf(writ) ?? {}
  if (retryable !== undefined) await context.clerk.setWritStatus(writ.id, 'spider', rest)
}

function inState(writ: WritDoc, state: DispatchRow['state'], isOpen: boolean): DispatchRow {
  return { id: writ.id, type: writ.type, state, isOpen, at: `${writ.createdAt} ${writ.id}` }
}

/** Holds a writ until one of the others has ended. */
export async function waitFor(
  context: SpiderContext,
  row: DispatchRow,
  state: 'held' | 'stuck',
  blockerIds: readonly string[],
): Promise<void> {
  await context.dispatch.patch(row.id, { state })
  await forgetWaits(context, row.id)
  for (const blockerId of blockerIds) {
    if (blockerId === row.id) continue
    await context.waits.put({ id: `${blockerId}>${row.id}`, blockerId, writId: row.id, at: row.at })
    await touchGate(context, blockerId)
  }
}

/** The waiting writ and the one that ends both write the gate, so one of them sees the other; an end is kept until it was handled. */
async function touchGate(context: SpiderContext, id: string): Promise<void> {
  await context.gates.put((await context.gates.get(id)) ?? { id, state: 'waited', at: context.now() })
}

async function forgetWaits(context: Pick<SpiderContext, 'waits'>, writId: string): Promise<void> {
  for (const { id } of await context.waits.find({ where: [['writId', '=', writId]] })) await context.waits.delete(id)
}

/** How many writs that wait for the same one are released in one transaction. */
const BATCH = 200

/** How many such transactions one crawl makes at most: a writ that a hundred thousand wait for must not stop it. */
const MAX_BATCHES = 10

/** Makes writs ready again whose blockers have ended; their age gives them their place in the queue. */
export async function releaseWaiting(context: SpiderContext): Promise<void> {
  for (let batches = 0; batches < MAX_BATCHES; batches += 1) if (!(await releaseBatch(context))) return
}

async function releaseBatch(context: SpiderContext): Promise<boolean> {
  const [first] = await context.gates.find({ where: [['state', '=', 'ended']], orderBy: ['at', 'asc'], limit: 1 })
  if (first === undefined) return false
  await context.change(async () => {
    const gate = await context.gates.get(first.id)
    if (gate?.state !== 'ended') return
    const where = [['blockerId', '=', gate.id]] as const
    const waits = await context.waits.find({ where: [...where], orderBy: ['at', 'asc'], limit: BATCH })
    for (const { id, writId } of waits) {
      await context.waits.delete(id)
      await recheckOne(context, writId)
    }
    if (waits.length < BATCH) await context.gates.delete(gate.id)
    else await context.gates.put(gate)
  })
  return true
}

/** Something in the way of this writ has changed. */
async function recheckOne(context: SpiderContext, writId: string): Promise<void> {
  const row = await context.dispatch.get(writId)
  if (row?.state === 'held') await context.dispatch.patch(writId, { state: 'ready' })
  if (row?.state === 'stuck') await context.dispatch.patch(writId, { state: 'recheck' })
}

/** A new link: its source waits from now on, without a crawl having to read it. A circle is left to the next crawl. */
async function linked(context: SpiderContext, { sourceId, targetId }: LinkDoc): Promise<void> {
  const target = await context.writs.get(targetId)
  if (target === null || context.clerk.isTerminal(target)) return
  // Both ends: of two links that are made at the same time and meet, one sees the other.
  await touchGate(context, targetId)
  const source = await context.writs.get(sourceId)
  if (source !== null && !context.clerk.isTerminal(source)) await touchGate(context, sourceId)
  const followers = await context.links.find({ where: [['targetId', '=', sourceId]] })
  // Only a writ that others follow can close a circle.
  const members = followers.some((link) => isGate(context, link)) ? await writCycleFrom(context, sourceId) : undefined
  if (members !== undefined) {
    await recheckFrom(context, sourceId)
    return
  }
  const row = await context.dispatch.get(sourceId)
  if (row?.state !== 'ready') {
    if (row?.state === 'held')
      await context.waits.put({ id: `${targetId}>${sourceId}`, blockerId: targetId, writId: sourceId, at: row.at })
    if (row?.state === 'stuck') await context.dispatch.patch(sourceId, { state: 'recheck' })
    return
  }
  const targets = await context.links.find({ where: [['sourceId', '=', sourceId]] })
  for (const link of targets) {
    // A failed target makes it stuck, which is for a crawl to write.
    if (isGate(context, link) && (await context.writs.get(link.targetId))?.phase === 'failed') return
  }
  await waitFor(context, row, 'held', [targetId])
}

async function unlinked(context: SpiderContext, { sourceId }: LinkDoc): Promise<void> {
  const writ = await context.writs.get(sourceId)
  await recheckOne(context, sourceId)
  // The others of its circle are free as well.
  const members = writ === null ? [] : (spiderStatusOf(writ).blockerIds ?? [])
  for (const id of members) await recheckOne(context, id)
}

/** All writs that wait and from which this writ can be reached. */
async function recheckFrom(context: SpiderContext, startId: string): Promise<void> {
  const seen = new Set<string>()
  const left = [startId]
  for (let id = left.pop(); id !== undefined; id = left.pop()) {
    if (seen.has(id)) continue
    seen.add(id)
    await recheckOne(context, id)
    const followers = await context.links.find({ where: [['targetId', '=', id]] })
    left.push(...followers.filter((link) => isGate(context, link)).map(({ sourceId }) => sourceId))
  }
}
