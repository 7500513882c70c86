import { newToken } from '../../core/ids.js'
import type { Ms } from '../../core/time/time.js'
import { writeEnvelope } from '../../ports/envelope.js'
import type { Envelope } from '../../ports/item.js'
import { GATE_POLL_MS } from '../../ports/limits.js'
import type { CommitResult, EffectOf } from '../../ports/settlement.js'
import { STALE } from '../shared/check-guard.js'
import type { SortedEffects } from '../shared/sort-effects.js'
import { doneNotice } from './after-outcome.js'
import { badSettlement, outcomeIn, type PlainContext } from './context.js'
import { applySideEffects, sideEffectsOf } from './control.js'
import { checkGate, notifyGate, openGate } from './gates.js'
import { heldLease, StepProgress } from './held-leases.js'
import { envelopeOfState, readState, runOf, storedStateOf, writeState } from './item-state.js'
import { allDone } from './plain-ports.js'

/** How long a wait for a group is remembered. */
const WAIT_MS = 3_600_000

type Enqueue = EffectOf<'enqueue'>

/**
 * An enqueue: the group's count, then the state, then the queue. When state or queue fail, the count is taken back and the
 * original error answered, so nothing of a refused item stays behind.
 *
 * Whether the id is known already is part of the count where the store has `incrementOnce`: one atomic step, and no further
 * call. Otherwise it is read first, for a whole batch at a time where the store has `getMany`; two processes that enqueue one
 * id in the same moment may then both get the answer that they were first, and the item still runs once.
 *
 * `isRepeated`: the caller will ask again, for the same id, until it succeeds. Then nothing is taken back: the push that
 * seems to have failed may have happened, and its item may have run; to take back its count would make the group's wrong.
 */
export async function enqueue(
  context: PlainContext,
  guardId: string | undefined,
  sorted: SortedEffects,
  isRepeated = false,
): Promise<CommitResult> {
  const outcome = outcomeIn(sorted)
  if (outcome !== undefined) throw badSettlement(`an enqueue cannot ${outcome.do} an item`)
  const item = sorted.enqueues.find((one) => one.item.id === guardId)?.item
  if (item === undefined) return enqueueNow(context, undefined, sorted, isRepeated)
  const { enqueuing } = context
  const key = `${item.id} ${runOf(item)}`
  // When the first has failed, one of those that waited for it continues, and the others wait for that one.
  for (let other = enqueuing.get(key); other !== undefined; other = enqueuing.get(key))
    if ((await other).kind !== 'failed') return { kind: 'repeated', id: item.id }
  const own = enqueueNow(context, item, sorted, isRepeated)
  const answer = own.catch((error: unknown): CommitResult => ({ kind: 'failed', error }))
  enqueuing.set(key, answer)
  try {
    return await own
  } finally {
    if (enqueuing.get(key) === answer) enqueuing.delete(key)
  }
}

async function enqueueNow(
  context: PlainContext,
  item: Envelope | undefined,
  sorted: SortedEffects,
  isRepeated: boolean,
): Promise<CommitResult> {
  const { areExact } = context.counters
  // Names are checked before anything is written.
  for (const { queue } of sorted.enqueues) context.queueNamed(queue)
  if (item !== undefined && !areExact && (await isKnown(context, item))) return enqueueAgain(context, item, sorted)
  if (item !== undefined && runOf(item) > 0) await forgetLastLife(context, item)
  const isNew = await joinGroups(context, item, sorted)
  if (!isNew) return item === undefined ? STALE : enqueueAgain(context, item, sorted)
  const progress = new StepProgress()
  try {
    await storeItems(context, sorted, progress)
  } catch (error) {
    // The repetition finds what is stored. Without it, only an exact counter remembers that the item was counted.
    const isFound = item !== undefined && (areExact || progress.has(`state ${item.id}`))
    if (!(isRepeated && isFound)) await rollBack(context, item, sorted)
    throw error
  }
  context.outbox.publish(sorted.notices.flatMap(({ ids }) => ids).map(doneNotice))
  return { kind: 'applied', closed: [] }
}

async function storeItems(context: PlainContext, sorted: SortedEffects, progress: StepProgress): Promise<void> {
  const { enqueues, gateNotices } = sorted
  const queued = enqueues.filter(({ leasedTo }) => leasedTo === undefined)
  await allDone([
    registerWaits(context, enqueues),
    pushItems(context, { ...sorted, enqueues: queued }, progress, context.name, true),
    ...enqueues.flatMap((one) => (one.leasedTo === undefined ? [] : [storeLeased(context, one, one.leasedTo)])),
  ])
  await applySideEffects(context, sideEffectsOf(sorted))
  await allDone(gateNotices.map((notice) => notifyGate(context, notice, context.name)))
}

/** The item enters its group. False: it had done so before. */
async function joinGroups(
  context: PlainContext,
  item: Envelope | undefined,
  { enqueues, groupChanges }: SortedEffects,
): Promise<boolean> {
  const { keys, counters } = context
  const ttl = context.keptFor(longestDelay(enqueues))
  for (const { groupId, joined } of groupChanges.values()) {
    if (joined === 0) continue
    if (item === undefined || !counters.areExact || groupId !== item.groupId) {
      await join(context, groupId, joined, ttl)
      continue
    }
    const marker = keys.enqueued(item.id, runOf(item))
    // It must outlive the marker of the item's end: an id that seems free while that marker exists would never run.
    const twice = ttl + context.keptFor()
    const { applied } = await counters.incrementOnce(keys.open(groupId), marker, joined, twice, context.name)
    if (!applied) return false
  }
  return true
}

/**
 * An increment that failed may have happened. In a new group the count shows it: it is then what was added, and is taken
 * back; otherwise only the error is known.
 */
async function join(context: PlainContext, groupId: string, by: number, ttl: Ms): Promise<void> {
  const { keys, counters } = context
  try {
    await counters.increment(keys.open(groupId), by, ttl)
  } catch (error) {
    const open = await counters.read(keys.open(groupId)).catch(() => undefined)
    if (open === by) await takeBack(context, groupId, by)
    throw error
  }
}

/** Takes a count back. False: it failed, and may have happened. */
async function takeBack(context: PlainContext, groupId: string, by: number): Promise<boolean> {
  const { counters, keys, store } = context
  const ttl = context.keptFor()
  try {
    if (counters.areExact) {
      // Exact counters may be asked again: the marker shows whether it happened.
      const token = newToken()
      const once = () => counters.incrementOnce(keys.open(groupId), keys.undone(token), -by, ttl, token)
      await once().catch(once).catch(once)
      await store.remove(keys.undone(token)).catch(() => undefined)
    } else await counters.increment(keys.open(groupId), -by, ttl)
    return true
  } catch (error) {
    context.report(error, 'commit')
    return false
  }
}

async function rollBack(
  context: PlainContext,
  item: Envelope | undefined,
  { groupChanges, enqueues }: SortedEffects,
): Promise<void> {
  const { keys, store, counters } = context
  let isUndone = true
  for (const { groupId, joined } of groupChanges.values())
    if (joined > 0) isUndone = (await takeBack(context, groupId, joined)) && isUndone
  const traces = enqueues.map((one) => keys.state(one.item.id))
  // The marker stays while the count may stay: an enqueue that is repeated then finds the item counted.
  if (item !== undefined && counters.areExact && isUndone) traces.push(keys.enqueued(item.id, runOf(item)))
  // Best effort: the store may be what failed, and what stays behind expires.
  await allDone(traces.map((key) => store.remove(key))).catch(() => undefined)
}

async function isKnown({ keys, store }: PlainContext, item: Envelope): Promise<boolean> {
  const [text, settled] = await store.getAll([keys.state(item.id), keys.settled(item.id, runOf(item))])
  const state = readState(text)
  return settled !== undefined || (state !== undefined && runOf(state.envelope) >= runOf(item))
}

/**
 * The id is known. Its first enqueue may have died before the push, so an item that no worker has ever held is pushed again,
 * as it was stored: the queue drops the second copy, or its claim does. Where nothing was stored yet, only the group that
 * was counted says that this is the same enqueue and not another one in flight.
 */
async function enqueueAgain(context: PlainContext, item: Envelope, sorted: SortedEffects): Promise<CommitResult> {
  const { keys, store, clock } = context
  const { id, groupId, input } = item
  const found = await store.getAll([keys.state(id), keys.settled(id, runOf(item)), keys.open(groupId)])
  const [text, settled, open] = found
  const state = readState(text)
  const own = sorted.enqueues.find((one) => one.item.id === id)
  if (settled === undefined && own !== undefined && own.leasedTo === undefined) {
    if (state === undefined && open !== undefined)
      await allDone([
        registerWaits(context, sorted.enqueues),
        pushItems(context, sorted, new StepProgress(), context.name, false),
      ])
    else if (state?.status === 'pending' && runOf(state.envelope) === runOf(item) && state.marks?.fence === undefined) {
      const delayMs = own.hold === undefined ? Math.max(0, state.startAt - clock.now()) : own.delayMs
      await pushBody(context, { ...own, item: { ...envelopeOfState(state), input }, delayMs })
    }
  }
  return { kind: 'repeated', id }
}

/** A redriven item begins anew: what its last life left behind would be taken for the outcome of this one. */
async function forgetLastLife({ keys, store }: PlainContext, { id, groupId }: Envelope): Promise<void> {
  await allDone([keys.error(id), keys.result(id), keys.cancel(id), keys.done(groupId)].map((key) => store.remove(key)))
}

/** A wait that began before the push is carried by the envelope. */
async function registerWaits(context: PlainContext, enqueues: readonly Enqueue[]): Promise<void> {
  const awaited = enqueues.filter(({ item }) => item.waiter !== undefined && item.parent === undefined)
  const groupIds = awaited.map(({ item }) => item.groupId)
  await watchGroups(context, groupIds)
}

/** Remembers for an hour that a caller waits for these groups. */
export async function watchGroups({ store, keys }: PlainContext, groupIds: readonly string[]): Promise<void> {
  await allDone(groupIds.map((groupId) => store.set(keys.wait(groupId), '1', WAIT_MS)))
}

/** Born leased: it runs here immediately and is in no queue, so until its first failure it is only as safe as this process. */
async function storeLeased(
  context: PlainContext,
  { item, queue }: Enqueue,
  { worker, token, leaseMs }: NonNullable<Enqueue['leasedTo']>,
): Promise<void> {
  const { keys, store, clock, leases } = context
  const runAt = clock.now()
  const state = storedStateOf(item, { status: 'running', runAt, marks: { queue, fence: 1, holder: worker } })
  await store.set(keys.state(item.id), writeState(state), context.keptFor())
  const held = heldLease({
    lease: { id: item.id, queue, token, fence: 1, until: runAt + leaseMs },
    envelope: item,
    body: writeEnvelope(item),
    queue: context.queueNamed(queue),
    worker,
    leaseMs,
    confirmedMs: clock.monotonic(),
    runAt,
    begun: Promise.resolve(),
  })
  leases.add(held)
}

/**
 * Makes new items durable: their gates, their states, then their places in the queue, then what gates can decide already.
 * Each step may be repeated. `isFresh`: these items are new, so their states need not be protected from being written twice;
 * on a repetition a child may have run already, and its state is left as it is.
 */
export async function pushItems(
  context: PlainContext,
  { enqueues, gates }: SortedEffects,
  progress: StepProgress,
  token: string,
  isFresh: boolean,
): Promise<void> {
  const lifeMs = longestDelay(enqueues)
  await allDone(gates.map((gate) => progress.once(`gate ${gate.key}`, () => openGate(context, gate, enqueues, lifeMs))))
  await allDone(
    enqueues.map((one) =>
      progress.once(`push ${one.item.id}`, async () => {
        await progress.once(`state ${one.item.id}`, () => writeFirstState(context, one, isFresh))
        await pushBody(context, one)
      }),
    ),
  )
  await allDone(gates.map(({ key }) => progress.once(`check ${key}`, () => checkGate(context, key, token))))
}

async function writeFirstState(context: PlainContext, enqueued: Enqueue, isFresh: boolean): Promise<void> {
  const { item, queue, delayMs } = enqueued
  const { gate, pollMs } = gateOf(enqueued)
  const dueAt = gate === undefined || delayMs === Infinity ? undefined : context.dueIn(delayMs)
  const state = writeState(storedStateOf(item, { status: 'pending', marks: { queue, gate, pollMs, dueAt } }))
  const key = context.keys.state(item.id)
  if (isFresh) await context.store.set(key, state, context.keptFor(delayMs))
  else await context.store.addIfAbsent(key, state, context.keptFor(delayMs))
}

async function pushBody(context: PlainContext, enqueued: Enqueue): Promise<void> {
  const { item, queue, delayMs } = enqueued
  const { gate, pollMs = Infinity } = gateOf(enqueued)
  // A plain queue cannot hold a body until something happens: a hold other than a gate's is polled instead.
  const latestMs = gate === undefined && delayMs === Infinity ? GATE_POLL_MS : Math.min(delayMs, pollMs)
  await context.push(context.queueNamed(queue), writeEnvelope(item), {
    priority: item.priority,
    delayMs: latestMs,
    // A redriven item may come back before its last copy has been acked, and must not be swallowed by it.
    key: runOf(item) === 0 ? item.id : undefined,
    wake: gate === undefined,
  })
}

/** The gate that holds it, and how soon to check that first. */
function gateOf({ hold }: Enqueue): { readonly gate?: string; readonly pollMs?: Ms } {
  return hold?.by === 'gate' ? { gate: hold.key, pollMs: hold.pollMs ?? GATE_POLL_MS } : {}
}

export function longestDelay(enqueues: readonly Enqueue[]): Ms {
  const finite = enqueues.map(({ delayMs }) => delayMs).filter(Number.isFinite)
  return finite.reduce((longest, delayMs) => Math.max(longest, delayMs), 0)
}
