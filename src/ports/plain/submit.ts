import { writeEnvelope } from '../envelope.js'
import type { Envelope } from '../item.js'
import type { CommitResult } from '../settlement.js'
import { doAsides } from './asides.js'
import { allDone } from './call.js'
import { pushBody, pushItems } from './children.js'
import { type Desk, keptFor, queueNamed } from './desk.js'
import { tellGate } from './gates.js'
import { held } from './held.js'
import { badSettlement, type Parts, type Push } from './parts.js'
import { entry } from './plain-store.js'
import { longestDelay } from './plan.js'
import { Progress } from './progress.js'
import { envelopeOf, readState, runOf, runOfState, stateOf, writeState } from './state.js'

/**
 * An enqueue: the group's count, then the state, then the queue. When state or queue fail, the count is taken back and the
 * original error answered, so that nothing of a refused item stays behind.
 *
 * Whether the id is known already is part of the count where the store has `incrementOnce`: one atomic step, and no further
 * call. Otherwise it is read first, for a whole batch at once where the store has `getMany`; two processes that enqueue one
 * id in the same moment may then both be told that they were first, and the item still runs once.
 *
 * `isRepeated`: whoever asks will ask again, for the same id, until it succeeds. Then nothing is taken back: the push that
 * seems to have failed may have happened, and its item may have run; to take back its count would make the group's wrong.
 */
export async function submit(
  desk: Desk,
  guardId: string | undefined,
  parts: Parts,
  isRepeated = false,
): Promise<CommitResult> {
  if (parts.outcome !== undefined) throw badSettlement(`an enqueue cannot ${parts.outcome.do} an item`)
  const item = parts.pushes.find((push) => push.item.id === guardId)?.item
  if (item === undefined) return submitNow(desk, undefined, parts, isRepeated)
  const key = `${item.id} ${runOf(item)}`
  // When the first has failed, one of those that waited for it goes on, and the others wait for that one.
  for (let other = desk.submitting.get(key); other !== undefined; other = desk.submitting.get(key))
    if ((await other).kind !== 'failed') return { kind: 'repeated', id: item.id }
  const own = submitNow(desk, item, parts, isRepeated)
  const told = own.catch((error: unknown): CommitResult => ({ kind: 'failed', error }))
  desk.submitting.set(key, told)
  try {
    return await own
  } finally {
    if (desk.submitting.get(key) === told) desk.submitting.delete(key)
  }
}

async function submitNow(
  desk: Desk,
  item: Envelope | undefined,
  parts: Parts,
  isRepeated: boolean,
): Promise<CommitResult> {
  // Names are looked at before anything is written.
  for (const { queue } of parts.pushes) queueNamed(desk, queue)
  if (item !== undefined && !desk.counters.areExact && (await isKnown(desk, item))) return repeatedly(desk, item, parts)
  if (item !== undefined && runOf(item) > 0) await forgetLastLife(desk, item)
  const taken = await enterGroups(desk, item, parts)
  if (taken === 'known') return item === undefined ? { kind: 'stale' } : repeatedly(desk, item, parts)
  const progress = new Progress()
  try {
    await store(desk, parts, progress)
  } catch (error) {
    // What is written down is found by the repetition. Without it, only an exact counter remembers that it was counted.
    const isFound = item !== undefined && (desk.counters.areExact || progress.has(`state ${item.id}`))
    if (!(isRepeated && isFound)) await rollBack(desk, item, parts)
    throw error
  }
  desk.outbox.tell(parts.notified.map((id) => ({ kind: 'done', id })))
  return { kind: 'applied', closed: [] }
}

async function store(desk: Desk, parts: Parts, progress: Progress): Promise<void> {
  const born = parts.pushes.filter(({ heldBy }) => heldBy !== undefined)
  const queued = parts.pushes.filter(({ heldBy }) => heldBy === undefined)
  await allDone([
    registerWaits(desk, parts),
    pushItems(desk, { ...parts, pushes: queued }, progress, desk.name, true),
    ...born.map((push) => bear(desk, push)),
  ])
  await doAsides(desk, parts.asides)
  await allDone(parts.tells.map(({ key, member, ok }) => tellGate(desk, key, member, ok, desk.name)))
}

/** The item enters its group. `known`: it had done so before. */
async function enterGroups(desk: Desk, item: Envelope | undefined, parts: Parts): Promise<'entered' | 'known'> {
  const { keys, counters } = desk
  const ttl = keptFor(desk, longestDelay(parts.pushes))
  for (const { groupId, by } of parts.opens) {
    if (item === undefined || !counters.areExact) await enter(desk, groupId, by, ttl)
    else if (groupId === item.groupId) {
      const marker = keys.enqueued(item.id, runOf(item))
      // It must outlive the marker of the item's end: an id that seems free while that one stands would never run.
      const twice = ttl + keptFor(desk)
      const { applied } = await counters.incrementOnce(keys.open(groupId), marker, by, twice, desk.name)
      if (!applied) return 'known'
    } else await enter(desk, groupId, by, ttl)
  }
  return 'entered'
}

/**
 * An increment that failed may have happened. A new group tells: its count is then what was added, and is taken back; else
 * nobody knows, and the error is all there is to say.
 */
async function enter(desk: Desk, groupId: string, by: number, ttl: number): Promise<void> {
  const { keys, counters } = desk
  try {
    await counters.increment(keys.open(groupId), by, ttl)
  } catch (error) {
    const open = await counters.read(keys.open(groupId)).catch(() => undefined)
    if (open === by) await leave(desk, groupId, by)
    throw error
  }
}

/** Takes a count back. False: it failed, and nobody knows whether it happened. */
async function leave(desk: Desk, groupId: string, by: number): Promise<boolean> {
  const { counters, keys } = desk
  try {
    if (counters.areExact) await undo(desk, groupId, by)
    else await counters.increment(keys.open(groupId), -by, keptFor(desk))
    return true
  } catch (error) {
    desk.report(error, 'commit')
    return false
  }
}

/** Exact counters may be asked again: the marker tells whether it happened. */
async function undo(desk: Desk, groupId: string, by: number): Promise<void> {
  const { counters, keys, options } = desk
  const token = options.newToken()
  const once = () => counters.incrementOnce(keys.open(groupId), keys.undone(token), -by, keptFor(desk), token)
  await once().catch(once).catch(once)
  await desk.store.remove(keys.undone(token)).catch(() => undefined)
}

async function rollBack(desk: Desk, item: Envelope | undefined, { opens, pushes }: Parts): Promise<void> {
  let isUndone = true
  for (const { groupId, by } of opens) isUndone = (await leave(desk, groupId, by)) && isUndone
  const traces = pushes.map(({ item: { id } }) => desk.keys.state(id))
  // The marker stays while the count may stay: whoever enqueues the item again then finds it counted.
  if (item !== undefined && desk.counters.areExact && isUndone) traces.push(desk.keys.enqueued(item.id, runOf(item)))
  // Best effort: the store may be what failed, and what stays behind expires.
  await allDone(traces.map((key) => desk.store.remove(key))).catch(() => undefined)
}

async function isKnown(desk: Desk, item: Envelope): Promise<boolean> {
  const { keys, store } = desk
  const [text, settled] = await store.getAll([keys.state(item.id), keys.settled(item.id, runOf(item))])
  const state = readState(text)
  return settled !== undefined || (state !== undefined && runOfState(state) >= runOf(item))
}

/**
 * The id is known. Its first enqueue may have died before the push, so that one which nobody has ever held is pushed again, as
 * it was written down: the queue drops the second copy, or its claim does. Where nothing was written down yet, only the
 * group that was counted says that this is the same enqueue and not another one under way.
 */
async function repeatedly(desk: Desk, item: Envelope, parts: Parts): Promise<CommitResult> {
  const { keys, store, clock } = desk
  const [text, settled, open] = await store.getAll([
    keys.state(item.id),
    keys.settled(item.id, runOf(item)),
    keys.open(item.groupId),
  ])
  const state = readState(text)
  const push = parts.pushes.find((one) => one.item.id === item.id)
  if (settled === undefined && push !== undefined && push.heldBy === undefined) {
    if (state === undefined && open !== undefined)
      await allDone([registerWaits(desk, parts), pushItems(desk, parts, new Progress(), desk.name, false)])
    else if (state?.status === 'pending' && runOfState(state) === runOf(item) && state.marks?.fence === undefined)
      await pushBody(desk, {
        ...push,
        item: { ...envelopeOf(state), input: item.input },
        delayMs: push.hold === undefined ? Math.max(0, state.startAt - clock.now()) : push.delayMs,
      })
  }
  return { kind: 'repeated', id: item.id }
}

/** A redriven item begins anew: what its last life left behind would be taken for the outcome of this one. */
async function forgetLastLife(desk: Desk, item: Envelope): Promise<void> {
  const { keys, store } = desk
  const { id, groupId } = item
  await allDone([keys.error(id), keys.result(id), keys.cancel(id), keys.done(groupId)].map((key) => store.remove(key)))
}

/** A wait that began before the push is carried by the envelope. */
async function registerWaits(desk: Desk, { pushes }: Parts): Promise<void> {
  const waits = pushes.filter(({ item }) => item.waiter !== undefined && item.parent === undefined)
  await watchGroups(
    desk,
    waits.map(({ item }) => item.groupId),
  )
}

/** Says that somebody waits for these groups, for as long as `waitMs`. */
export async function watchGroups(desk: Desk, groupIds: readonly string[]): Promise<void> {
  await allDone(groupIds.map((groupId) => desk.store.set(desk.keys.wait(groupId), '1', desk.options.waitMs)))
}

/**
 * Born leased: it runs here at once and stands in no queue, so that until its first failure it is only as safe as this
 * process.
 */
async function bear(desk: Desk, { item, queue, heldBy }: Push): Promise<void> {
  const { worker, token, leaseMs } = heldBy!
  const { keys, store, clock, leases } = desk
  const runAt = clock.now()
  const marks = { queue, fence: 1, holder: worker }
  await store.write([
    entry(keys.state(item.id), writeState(stateOf(item, { status: 'running', runAt, marks })), keptFor(desk)),
  ])
  const lease = { id: item.id, queue, token, fence: 1, until: runAt + leaseMs }
  const one = held({
    lease,
    envelope: item,
    body: writeEnvelope(item),
    queue: queueNamed(desk, queue),
    pulled: undefined,
    worker,
    leaseMs,
    crashes: 0,
    state: undefined,
    heardMs: clock.monotonic(),
  })
  one.runAt = runAt
  one.begun = Promise.resolve()
  leases.add(one)
}
