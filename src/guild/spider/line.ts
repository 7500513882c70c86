import type { LinkDoc, WritDoc } from '../clerk/writ.js'
import type { ChangeEvent, ChangeHandler } from '../stacks/events.js'
import { newestRig } from './cascade.js'
import { cancelRig } from './end-rig.js'
import type { Floor } from './floor.js'
import { cycleFrom, isGate } from './gate.js'
import type { DispatchRow } from './rig.js'
import { Sheet } from './sheet.js'
import type { SpiderWritStatus } from './writ-status.js'

/**
 * Keeps the line of writs: which may get a rig, which wait and for what. It is kept in the transactions that change writs and links,
 * so that a crawl never has to look at a writ that cannot go on.
 */
export function writWatcher(floor: Floor): ChangeHandler<WritDoc> {
  return async (event) => {
    const id = event.type === 'delete' ? event.id : event.entry.id
    if (event.type === 'update' && !hasMoved(event)) return
    // What other watchers did in this transaction may have moved it on already.
    const writ = await floor.writs.get(id)
    const isOver = writ === null || floor.clerk.isTerminal(writ)
    if (isOver && event.type !== 'create') await floor.gates.put({ id, state: 'ended', at: floor.now() })
    await placeInLine(floor, id, writ)
    if (writ?.phase === 'cancelled' && event.type === 'update' && event.prev.phase !== 'cancelled')
      await cancelNewest(floor, writ)
  }
}

/** Keeps the line when writs are linked and unlinked. */
export function linkWatcher(floor: Floor): ChangeHandler<LinkDoc> {
  return async (event) => {
    const before = event.type === 'create' ? undefined : event.prev
    const after = event.type === 'delete' ? undefined : event.entry
    const held = before !== undefined && isGate(floor, before)
    const holds = after !== undefined && isGate(floor, after)
    if (holds && !held) await linked(floor, after)
    if (held && !holds) await unlinked(floor, before)
  }
}

const spiderStatus = (writ: WritDoc): SpiderWritStatus | undefined => {
  const status = writ.status?.['spider']
  return typeof status === 'object' && status !== null ? status : undefined
}

/** Whether a gate made the writ stuck. */
export function isGateStuck(writ: WritDoc): boolean {
  const cause = spiderStatus(writ)?.stuckCause
  return writ.phase === 'stuck' && (cause === 'failed-blocker' || cause === 'cycle')
}

function hasMoved({ entry, prev }: Extract<ChangeEvent<WritDoc>, { type: 'update' }>): boolean {
  return entry.phase !== prev.phase || entry.type !== prev.type || isGateStuck(entry) !== isGateStuck(prev)
}

/** Writes where a writ stands now. */
export async function placeInLine(floor: Floor, id: string, writ: WritDoc | null): Promise<void> {
  const row = await floor.dispatch.get(id)
  const isOpen = writ?.phase === 'open' && floor.templates.mappings.has(writ.type)
  if (row?.state === 'active') {
    if (row.isOpen !== isOpen) await floor.dispatch.patch(id, { isOpen })
    // It was opened again and waits for engines of its stuck rig, perhaps for long: a person who sticks it meanwhile means it.
    if (writ !== null && isOpen && spiderStatus(writ)?.rigId === row.rigId) await dropFlag(floor, writ)
    return
  }
  if (writ !== null && isOpen) {
    if (row?.state === 'ready' || row?.state === 'held') return
    await floor.dispatch.put(inState(writ, 'ready', true))
  } else if (writ !== null && isGateStuck(writ)) {
    await floor.dispatch.put(inState(writ, 'recheck', false))
  } else if (row !== null) {
    await floor.dispatch.delete(id)
  } else return
  await forgetWaits(floor, id)
}

/** The flag has spoken for the rig before: a writ that a person sticks from now on is not requeued because of it. */
export async function dropFlag(floor: Floor, writ: WritDoc): Promise<void> {
  const { retryable, rigId: _, ...rest } = spiderStatus(writ) ?? {}
  if (retryable !== undefined) await floor.clerk.setWritStatus(writ.id, 'spider', rest)
}

function inState(writ: WritDoc, state: DispatchRow['state'], isOpen: boolean): DispatchRow {
  return { id: writ.id, state, isOpen, at: `${writ.createdAt} ${writ.id}` }
}

/** Takes a writ out of the line until one of the others has ended. */
export async function waitFor(
  floor: Floor,
  row: DispatchRow,
  state: 'held' | 'stuck',
  blockerIds: readonly string[],
): Promise<void> {
  await floor.dispatch.patch(row.id, { state })
  await forgetWaits(floor, row.id)
  for (const blockerId of blockerIds) {
    if (blockerId === row.id) continue
    await floor.waits.put({ id: `${blockerId}>${row.id}`, blockerId, writId: row.id, at: row.at })
    await touchGate(floor, blockerId)
  }
}

/** Who waits and who ends both write the gate; an end that has not been told yet stays one. */
async function touchGate(floor: Floor, id: string): Promise<void> {
  await floor.gates.put((await floor.gates.get(id)) ?? { id, state: 'waited', at: floor.now() })
}

async function forgetWaits(floor: Floor, writId: string): Promise<void> {
  for (const { id } of await floor.waits.find({ where: [['writId', '=', writId]] })) await floor.waits.delete(id)
}

/** How many of those that wait for one writ are told in one transaction. */
const BATCH = 200

/** How many such transactions one crawl makes at most: a writ that a hundred thousand wait for must not stop it. */
const MAX_BATCHES = 10

/** Puts those back into the line that waited for writs which have ended, at the place of their age. */
export async function releaseWaiting(floor: Floor): Promise<void> {
  for (let batches = 0; batches < MAX_BATCHES; batches += 1) if (!(await releaseBatch(floor))) return
}

async function releaseBatch(floor: Floor): Promise<boolean> {
  const [first] = await floor.gates.find({ where: [['state', '=', 'ended']], orderBy: ['at', 'asc'], limit: 1 })
  if (first === undefined) return false
  await floor.change(async () => {
    const gate = await floor.gates.get(first.id)
    if (gate?.state !== 'ended') return
    const where = [['blockerId', '=', gate.id]] as const
    const waits = await floor.waits.find({ where: [...where], orderBy: ['at', 'asc'], limit: BATCH })
    for (const { id, writId } of waits) {
      await floor.waits.delete(id)
      await lookAgain(floor, writId)
    }
    if (waits.length < BATCH) await floor.gates.delete(gate.id)
    else await floor.gates.put(gate)
  })
  return true
}

/** Something in the way of this writ has changed. */
async function lookAgain(floor: Floor, writId: string): Promise<void> {
  const row = await floor.dispatch.get(writId)
  if (row?.state === 'held') await floor.dispatch.patch(writId, { state: 'ready' })
  if (row?.state === 'stuck') await floor.dispatch.patch(writId, { state: 'recheck' })
}

/** A new link: its source waits from now on, without a crawl having to look at it. A circle is left to the next crawl. */
async function linked(floor: Floor, { sourceId, targetId }: LinkDoc): Promise<void> {
  const target = await floor.writs.get(targetId)
  if (target === null || floor.clerk.isTerminal(target)) return
  // Both ends: of two links that are made at once and meet, one sees the other.
  await touchGate(floor, targetId)
  const source = await floor.writs.get(sourceId)
  if (source !== null && !floor.clerk.isTerminal(source)) await touchGate(floor, sourceId)
  const followers = await floor.links.find({ where: [['targetId', '=', sourceId]] })
  // Only a writ that others follow can close a circle.
  const members = followers.some((link) => isGate(floor, link)) ? await cycleFrom(floor, sourceId) : undefined
  if (members !== undefined) {
    await lookAgainFrom(floor, sourceId)
    return
  }
  const row = await floor.dispatch.get(sourceId)
  if (row?.state !== 'ready') {
    if (row?.state === 'held')
      await floor.waits.put({ id: `${targetId}>${sourceId}`, blockerId: targetId, writId: sourceId, at: row.at })
    if (row?.state === 'stuck') await floor.dispatch.patch(sourceId, { state: 'recheck' })
    return
  }
  const targets = await floor.links.find({ where: [['sourceId', '=', sourceId]] })
  for (const link of targets) {
    // One that has failed makes it stuck, which a crawl has to say.
    if (isGate(floor, link) && (await floor.writs.get(link.targetId))?.phase === 'failed') return
  }
  await waitFor(floor, row, 'held', [targetId])
}

async function unlinked(floor: Floor, { sourceId }: LinkDoc): Promise<void> {
  const writ = await floor.writs.get(sourceId)
  await lookAgain(floor, sourceId)
  // The others of its circle are free as well.
  const members = writ === null ? [] : (spiderStatus(writ)?.blockerIds ?? [])
  for (const id of members) await lookAgain(floor, id)
}

/** Everybody who waits and from whom this writ can be reached. */
async function lookAgainFrom(floor: Floor, startId: string): Promise<void> {
  const seen = new Set<string>()
  const left = [startId]
  for (let id = left.pop(); id !== undefined; id = left.pop()) {
    if (seen.has(id)) continue
    seen.add(id)
    await lookAgain(floor, id)
    const followers = await floor.links.find({ where: [['targetId', '=', id]] })
    left.push(...followers.filter((link) => isGate(floor, link)).map(({ sourceId }) => sourceId))
  }
}

/** A cancelled writ takes its newest rig along, if that is still going on. */
async function cancelNewest(floor: Floor, writ: WritDoc): Promise<void> {
  const rig = await newestRig(floor, writ.id)
  const sheet = rig === undefined ? undefined : await Sheet.load(floor, rig.id)
  if (sheet?.isBusy === true) await cancelRig(floor, sheet, `Writ ${writ.id} cancelled`)
}
