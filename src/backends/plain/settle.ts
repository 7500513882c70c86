import { newToken } from '../../core/ids.js'
import type { At } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import { nextTry, writeEnvelope } from '../../ports/envelope.js'
import type { Lease } from '../../ports/item.js'
import type { CommitResult, Effect, EffectOf } from '../../ports/settlement.js'
import { STALE } from '../shared/check-guard.js'
import { type SortedEffects, sortEffects } from '../shared/sort-effects.js'
import { afterOutcome, type EndEffect, outcomeEntries } from './after-outcome.js'
import { badSettlement, notSupported, outcomeIn, type PlainContext } from './context.js'
import { applySideEffects, sideEffectsOf } from './control.js'
import { longestDelay, pushItems } from './enqueue.js'
import { foldValue, lockValue, writeValue } from './groups.js'
import { type HeldLease, lastingMarks } from './held-leases.js'
import { readState, runOf, storedStateOf, writeState } from './item-state.js'
import { allDone, entry, readObject } from './plain-ports.js'

/**
 * A run settles. The order is the contract: first what was decided is made durable, then its consequences, then the message
 * is acked, then waiters are notified. A repetition continues where the last one stopped.
 */
export function settleByLease(context: PlainContext, lease: Lease, effects: readonly Effect[]): Promise<CommitResult> {
  return context.mutex.run(`lease ${lease.token}`, async () => {
    const held = context.leases.find(lease)
    if (held === undefined) return context.leases.hasFinished(lease) ? { kind: 'repeated', id: lease.id } : STALE
    const sorted = sortEffects(effects)
    const outcome = outcomeIn(sorted)
    if (outcome === undefined) throw badSettlement('it says nothing about the item whose lease it holds')
    if (outcome.id !== lease.id) throw badSettlement(`it holds ${lease.id} and decides about ${outcome.id}`)
    // Another outcome than the stored one can only be a release: the next holder completes what is stored.
    if (held.decided !== undefined && outcome.do !== held.decided && outcome.do !== 'release')
      throw badSettlement(`${lease.id} is stored as ${held.decided}, and now it says ${outcome.do}`)
    await held.begun
    // A release writes nothing that could be wrong, unless the start is stored: a queue knows its own leases.
    const isHarmless = outcome.do === 'release' && (held.begun === undefined || held.decided !== undefined)
    const { isTaken, isLocked } = isHarmless ? OURS : await checkOwnership(context, held, sorted)
    if (isTaken) return lost(context, held)
    switch (outcome.do) {
      case 'complete':
      case 'deadLetter':
        return (
          (await decide(context, held, sorted, outcome, effects)) ?? record(context, held, sorted, outcome, isLocked)
        )
      case 'retry':
        return retryLater(context, held, outcome)
      case 'release':
        return release(context, held, outcome)
      case 'redrive':
      case 'delete':
        throw notSupported(`${outcome.do} an item that is running`, 'Let it end first.')
      default:
        return unreachable(outcome)
    }
  })
}

/** Finishes what another run had decided and not completed. */
export async function resumePlan(context: PlainContext, held: HeldLease, plan: SettlePlan): Promise<CommitResult> {
  const sorted = sortEffects(effectsOf(plan, context.clock.now()))
  const outcome = outcomeIn(sorted)
  if (outcome?.do !== 'complete' && outcome?.do !== 'deadLetter') throw badSettlement('its plan does not end the item')
  held.decided = outcome.do
  await held.progress.once('plan', async () => true)
  const { isLocked } = await checkOwnership(context, held, sorted)
  await carryOut(context, held, sorted, false)
  return record(context, held, sorted, outcome, isLocked)
}

function lost(context: PlainContext, held: HeldLease): CommitResult {
  context.leases.drop(held)
  return STALE
}

/**
 * Before the outcome: folds, then the plan, then the consequences. A leaf needs none of it, because its result is itself the
 * durable outcome. Answers only when the settlement cannot continue.
 */
async function decide(
  context: PlainContext,
  held: HeldLease,
  sorted: SortedEffects,
  outcome: EndEffect,
  effects: readonly Effect[],
): Promise<CommitResult | undefined> {
  const { progress, lease } = held
  const folder = { id: lease.id, run: runOf(held.envelope), token: lease.token }
  for (const fold of sorted.groupValues) {
    const { groupId, ifVersion } = fold
    if (ifVersion === undefined) continue
    const conflict = await progress.once(`fold ${groupId}`, () => foldValue(context, fold, folder))
    if (conflict === undefined) continue
    progress.forget(`fold ${groupId}`)
    return { kind: 'conflict', groupId, now: conflict }
  }
  if (!(await isStillOurs(context, held, sorted))) return lost(context, held)
  const { enqueues, gates, groupValues } = sorted
  // Whatever could not be found out again, should the process die half-way, needs a plan.
  if (enqueues.length + gates.length + sideEffectsOf(sorted).length === 0 && !groupValues.some(isLock)) return undefined
  const isFresh = !progress.has('plan')
  if (!(await progress.once('plan', () => claimPlan(context, held, effects)))) return lost(context, held)
  held.decided = outcome.do
  await carryOut(context, held, sorted, isFresh)
  return undefined
}

const isLock = ({ final, ifVersion }: EffectOf<'setGroupValue'>): boolean => final && ifVersion === undefined

/** Children are counted before any of them can end, and are in the queue before their parent settles. */
async function carryOut(
  context: PlainContext,
  held: HeldLease,
  sorted: SortedEffects,
  isFresh: boolean,
): Promise<void> {
  const { progress, lease, envelope } = held
  const { keys, counters } = context
  const ttl = context.keptFor(longestDelay(sorted.enqueues))
  await allDone(
    [...sorted.groupChanges.values()]
      .filter(({ joined }) => joined > 0)
      .map(({ groupId, joined }) => {
        const marker = keys.held(lease.id, runOf(envelope), groupId === envelope.groupId ? undefined : groupId)
        return progress.once(`join ${groupId}`, () =>
          counters.incrementOnce(keys.open(groupId), marker, joined, ttl, lease.token),
        )
      }),
  )
  await pushItems(context, sorted, progress, lease.token, isFresh)
  await progress.once('side effects', () => applySideEffects(context, sideEffectsOf(sorted)))
}

/** The outcome itself, and what follows from it. */
async function record(
  context: PlainContext,
  held: HeldLease,
  sorted: SortedEffects,
  outcome: EndEffect,
  isLocked: Ownership['isLocked'],
): Promise<CommitResult> {
  const { progress, lease } = held
  const locks = sorted.groupValues.filter(isLock)
  // A group that is locked already stays as it is; one that this very item locked gets its value.
  await allDone(
    locks.map(({ groupId, value }) =>
      progress.once(`lock ${groupId}`, () => lockValue(context, groupId, value, lease.token)),
    ),
  )
  // Other values overwrite, but for folds, which are done. A locked group takes none.
  const values = sorted.groupValues
    .filter((one) => one.ifVersion === undefined && !one.final && !isLocked(one.groupId))
    .map(({ groupId, value }) => entry(context.keys.value(groupId), writeValue(value), context.keptFor()))
  await progress.once('outcome', () => context.store.write([...values, ...outcomeEntries(context, held, outcome)]))
  held.decided = outcome.do
  const result = await afterOutcome(context, held, {
    error: outcome.do === 'complete' ? undefined : outcome.error,
    isDeadLettered: outcome.do === 'deadLetter' && outcome.ending !== 'cancelled',
    effects: sorted,
  })
  if (progress.has('plan')) closePlan(context, held).catch((error: unknown) => context.report(error, 'commit'))
  return result
}

/**
 * The item runs again later: its new state, then the new message, then the ack of the old one. Should the process die after
 * the first step, the old message comes back, finds the newer state and pushes what it asks for.
 */
async function retryLater(context: PlainContext, held: HeldLease, outcome: EffectOf<'retry'>): Promise<CommitResult> {
  const { progress, envelope, queue, pulled } = held
  const { attempt, delayMs } = outcome
  const { again, copy } = await progress.once('next', async () => ({
    again: nextTry(envelope, attempt, context.dueIn(delayMs)),
    // Not the key of the copy under lease: that one is still in the queue, and would swallow the next. It is kept with the
    // state, so that another process pushes this try under the same key after a crash.
    copy: `${envelope.id}:${newToken()}`,
  }))
  const state = writeState(storedStateOf(again, { status: 'pending', marks: { ...lastingMarks(held), copy } }))
  await progress.once('pending', () =>
    context.store.set(context.keys.state(envelope.id), state, context.keptFor(delayMs)),
  )
  held.decided = 'retry'
  const { priority } = again
  await progress.once('push', () =>
    context.push(queue, writeEnvelope(again), { priority, delayMs, key: copy, wake: true }),
  )
  if (pulled !== undefined) await queue.ack(pulled)
  context.leases.finish(held)
  return { kind: 'applied', closed: [] }
}

/** The item goes back to its queue: no attempt is spent. */
async function release(context: PlainContext, held: HeldLease, outcome: EffectOf<'release'>): Promise<CommitResult> {
  const { envelope, pulled, queue, body } = held
  const { delayMs } = outcome
  // The store says `running`: left like that, the next delivery would be taken for one after a crash. But an outcome that
  // is stored stays: the next holder completes it.
  if (held.begun !== undefined && held.decided === undefined) {
    const state = writeState(storedStateOf(envelope, { status: 'pending', marks: lastingMarks(held) }))
    await context.store.set(context.keys.state(envelope.id), state, context.keptFor(delayMs))
  }
  const { priority, id } = envelope
  if (pulled !== undefined) await queue.fail(pulled, delayMs)
  else await context.push(queue, body, { priority, delayMs: delayMs ?? 0, key: id, wake: true })
  context.leases.finish(held)
  return { kind: 'applied', closed: [] }
}

/** What a settlement finds before it writes anything. */
interface Ownership {
  /** Another delivery has taken over, or has ended the item. */
  readonly isTaken: boolean
  /** A locked group takes no more values. */
  readonly isLocked: (groupId: string) => boolean
}

const OURS: Ownership = { isTaken: false, isLocked: () => false }

const MAX_CHECKS = 3

/**
 * Before anything is written: who runs the item, and whether another delivery has ended it. The token of a run expires with
 * its lease, so a late settlement also asks who has come after it. A check that took long has seen the past, and is repeated.
 */
async function checkOwnership(context: PlainContext, held: HeldLease, sorted: SortedEffects): Promise<Ownership> {
  const { clock, leases } = context
  for (let checks = 1; ; checks += 1) {
    const startedMs = clock.monotonic()
    const found = await readOwnership(context, held, sorted)
    // This process itself may have got the item anew meanwhile.
    if (found.isTaken || leases.find(held.lease) !== held) return { ...found, isTaken: true }
    held.checkedMs = clock.monotonic()
    if (checks === MAX_CHECKS || held.checkedMs - startedMs < held.leaseMs / 3) return found
  }
}

/**
 * Asked again before there is no way back: whether the item is still ours, when the last check was long ago. What has been
 * decided stays decided.
 */
async function isStillOurs(context: PlainContext, held: HeldLease, sorted: SortedEffects): Promise<boolean> {
  if (held.decided !== undefined) return true
  if (context.leases.find(held.lease) !== held) return false
  if (context.clock.monotonic() - held.checkedMs < held.leaseMs / 3) return true
  return !(await checkOwnership(context, held, sorted)).isTaken
}

async function readOwnership(context: PlainContext, held: HeldLease, sorted: SortedEffects): Promise<Ownership> {
  const { keys, store, clock } = context
  const { id, token, fence } = held.lease
  // The queue has not confirmed the lease for all its length: another worker may have had the item since.
  const isLate = held.pulled !== undefined && clock.monotonic() - held.confirmedMs >= held.leaseMs
  const groups = [...new Set(sorted.groupValues.map(({ groupId }) => groupId))]
  const [holder, settled, state, ...finals] = await store.getAll([
    held.isMarked ? keys.run(id) : undefined,
    keys.settled(id, runOf(held.envelope)),
    isLate ? keys.state(id) : undefined,
    ...groups.map((groupId) => keys.final(groupId)),
  ])
  const newest = readState(state)?.marks?.fence ?? 0
  const isEnded = settled !== undefined && held.decided === undefined
  const locked = new Set(groups.filter((_, i) => finals[i] !== undefined))
  return {
    isTaken: isEnded || newest > fence || (holder !== undefined && holder !== token),
    isLocked: (groupId) => locked.has(groupId),
  }
}

/**
 * `plan:<id>`: what a run decided, written before any of it is done. The next holder carries it out instead of running the
 * handler again, so that children keep their ids and none is lost or doubled.
 */
export interface SettlePlan {
  readonly token: string
  readonly run: number
  readonly at: At
  readonly effects: readonly Effect[]
}

/** Writes the plan, unless another run of the same life wrote one first: then that one counts. True: the plan is ours. */
async function claimPlan(context: PlainContext, held: HeldLease, effects: readonly Effect[]): Promise<boolean> {
  const { keys, store, clock } = context
  const run = runOf(held.envelope)
  const planned = effects.filter((effect) => {
    // A fold is applied before the plan is written, and noted in the group's own record.
    if (effect.do === 'setGroupValue') return effect.ifVersion === undefined
    return effect.do !== 'recordAttempt' && effect.do !== 'log'
  })
  const plan: SettlePlan = { token: held.lease.token, run, at: clock.now(), effects: planned }
  const own = JSON.stringify(plan)
  const ttl = context.keptFor(longestDelay(effects.filter((effect) => effect.do === 'enqueue')))
  const first = await store.claim(keys.plan(held.lease.id), own, ttl)
  if (first === own) return true
  const other = readPlan(first)
  if (other !== undefined && other.run >= run) return other.token === plan.token
  // The plan of an earlier life, or no plan at all: it binds no run of this life.
  await store.set(keys.plan(held.lease.id), own, ttl)
  return true
}

/**
 * The plan has been carried out: what it said is dropped, and that there was one stays. A run that comes back late then finds
 * that another one was first.
 */
async function closePlan(context: PlainContext, { lease, envelope }: HeldLease): Promise<void> {
  const closed: SettlePlan = { token: lease.token, run: runOf(envelope), at: context.clock.now(), effects: [] }
  await context.store.set(context.keys.plan(lease.id), JSON.stringify(closed), context.keptFor())
}

export function readPlan(text: string | undefined): SettlePlan | undefined {
  const { token, run = 0, at = 0, effects } = readObject<SettlePlan>(text) ?? {}
  return typeof token === 'string' && Array.isArray(effects) ? { token, run, at, effects } : undefined
}

/** The effects of a plan as they are to be done now: time that has passed since is taken off their delays. */
function effectsOf(plan: SettlePlan, now: At): readonly Effect[] {
  const passed = Math.max(0, now - plan.at)
  // JSON has no Infinity: a time without end was written as null.
  const ms = (written: number | null) => written ?? Infinity
  return plan.effects.map((effect) => {
    if (effect.do === 'enqueue') return { ...effect, delayMs: Math.max(0, ms(effect.delayMs) - passed) }
    return effect.do === 'complete' || effect.do === 'deadLetter' ? { ...effect, keepMs: ms(effect.keepMs) } : effect
  })
}
