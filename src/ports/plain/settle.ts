import { unreachable } from '../../core/unreachable.js'
import type { Lease } from '../item.js'
import type { CommitResult, Effect } from '../settlement.js'
import { doAsides } from './asides.js'
import { allDone } from './call.js'
import { pushItems } from './children.js'
import { type Desk, keptFor, notSupported } from './desk.js'
import { putBack, retryLater } from './give-back.js'
import { type Contribute, foldValue, lockValue, overwrites } from './groups.js'
import type { Held } from './held.js'
import { stateAfter } from './held-state.js'
import { badSettlement, type End, type Outcome, type Parts, partsOf } from './parts.js'
import { type Entry, entry } from './plain-store.js'
import { claimPlan, longestDelay } from './plan.js'
import { readState, runOf, writeState } from './state.js'
import { windUp } from './wind-up.js'

/**
 * A run settles. The order is the contract: what was decided is made durable, then its consequences, then the message is
 * acked, then everybody hears. A repetition goes on where the last one stopped.
 */
export function settleByLease(desk: Desk, lease: Lease, effects: readonly Effect[]): Promise<CommitResult> {
  return desk.turns.inTurn(`lease ${lease.token}`, async () => {
    const held = desk.leases.find(lease)
    if (held === undefined)
      return desk.leases.hasFinished(lease) ? { kind: 'repeated', id: lease.id } : { kind: 'stale' }
    const parts = partsOf(effects)
    const { outcome } = parts
    if (outcome === undefined) throw badSettlement('it says nothing about the item whose lease it stands on')
    if (outcome.id !== lease.id) throw badSettlement(`it holds ${lease.id} and decides about ${outcome.id}`)
    // Another outcome than the one on record can only be put back: whoever gets the item next completes what is on record.
    if (held.decided !== undefined && outcome.do !== held.decided && outcome.do !== 'release')
      throw badSettlement(`${lease.id} is on record as ${held.decided}, and now it says ${outcome.do}`)
    await held.begun
    const seen = await look(desk, held, parts)
    return seen.isTaken ? lost(desk, held) : settleHeld(desk, held, parts, outcome, effects, seen.isLocked)
  })
}

type IsLocked = (groupId: string) => boolean

async function settleHeld(
  desk: Desk,
  held: Held,
  parts: Parts,
  outcome: Outcome,
  effects: readonly Effect[],
  isLocked: IsLocked,
): Promise<CommitResult> {
  switch (outcome.do) {
    case 'finish':
    case 'park':
      return (await decide(desk, held, parts, outcome, effects)) ?? record(desk, held, parts, outcome, isLocked)
    case 'retryAt':
      await retryLater(desk, held, outcome)
      return { kind: 'applied', closed: [] }
    case 'release':
      await putBack(desk, held, outcome)
      return { kind: 'applied', closed: [] }
    case 'reopen':
    case 'erase':
      throw notSupported(`${outcome.do} an item that is running`, 'Let it end first.')
    default:
      return unreachable(outcome)
  }
}

/** Finishes what another run had decided and not completed. */
export async function resumePlan(desk: Desk, held: Held, effects: readonly Effect[]): Promise<CommitResult> {
  const parts = partsOf(effects)
  const { outcome } = parts
  if (outcome?.do !== 'finish' && outcome?.do !== 'park') throw badSettlement('its plan does not end the item')
  held.decided = outcome.do
  await held.progress.once('plan', async () => true)
  const { isLocked } = await look(desk, held, parts)
  await carryOut(desk, held, parts, false)
  return record(desk, held, parts, outcome, isLocked)
}

/**
 * One look before anything is written: another delivery may have taken over, and a locked group takes no more values. While
 * the lease runs, the token of the run tells; that token expires with its lease, so that a late settlement also looks at
 * who has come after it.
 */
async function look(
  desk: Desk,
  held: Held,
  { contributions }: Parts,
): Promise<{ isTaken: boolean; isLocked: IsLocked }> {
  const { keys, store } = desk
  const { id, token } = held.lease
  const groups = [...new Set(contributions.map(({ groupId }) => groupId))]
  const [holder, settled, state, ...finals] = await found(store, [
    held.isMarked ? keys.run(id) : undefined,
    ...(isLate(desk, held) ? [keys.settled(id, runOf(held.envelope)), keys.state(id)] : [undefined, undefined]),
    ...groups.map((groupId) => keys.final(groupId)),
  ])
  const newest = readState(state)?.marks?.fence ?? 0
  const isEnded = settled !== undefined && held.decided === undefined
  const locked = new Set(groups.filter((_, i) => finals[i] !== undefined))
  return {
    isTaken: isEnded || newest > held.lease.fence || (holder !== undefined && holder !== token),
    isLocked: (groupId) => locked.has(groupId),
  }
}

/** The values of those keys that there are to ask for. */
async function found(store: Desk['store'], keys: readonly (string | undefined)[]): Promise<(string | undefined)[]> {
  const values = await store.getAll(keys.filter((key) => key !== undefined))
  return keys.map((key) => (key === undefined ? undefined : values.shift()))
}

/** The queue has not confirmed the lease for all its length: somebody else may have had the item since. */
function isLate({ clock }: Desk, { pulled, heardMs, leaseMs }: Held): boolean {
  return pulled !== undefined && clock.monotonic() - heardMs >= leaseMs
}

function lost(desk: Desk, held: Held): CommitResult {
  desk.leases.drop(held)
  return { kind: 'stale' }
}

/**
 * Before the outcome: folds, then the plan, then the consequences. A leaf needs none of it, because its result is itself the
 * durable outcome. Answers only when the settlement cannot go on.
 */
async function decide(
  desk: Desk,
  held: Held,
  parts: Parts,
  outcome: End,
  effects: readonly Effect[],
): Promise<CommitResult | undefined> {
  const { progress, lease } = held
  const who = { id: lease.id, run: runOf(held.envelope), token: lease.token }
  for (const contribution of parts.contributions) {
    if (contribution.expect === undefined) continue
    const { groupId } = contribution
    const { conflict } = await progress.once(`fold ${groupId}`, () => foldValue(desk, contribution, who))
    if (conflict === undefined) continue
    progress.forget(`fold ${groupId}`)
    return { kind: 'conflict', groupId, now: conflict }
  }
  if (!needsPlan(parts)) return undefined
  const isFresh = !progress.has('plan')
  if (!(await progress.once('plan', () => claimPlan(desk, held, effects)))) return lost(desk, held)
  held.decided = outcome.do
  await carryOut(desk, held, parts, isFresh)
  return undefined
}

/** Whatever could not be found out again, should the process die half-way. */
function needsPlan({ pushes, gates, asides, contributions }: Parts): boolean {
  return pushes.length + gates.length + asides.length > 0 || contributions.some(isLock)
}

const isLock = ({ final, expect }: Contribute): boolean => final && expect === undefined

/** Children are counted before any of them can end, and stand in the queue before their parent settles. */
async function carryOut(desk: Desk, held: Held, parts: Parts, isFresh: boolean): Promise<void> {
  const { progress, lease, envelope } = held
  const { keys, counters } = desk
  const ttl = keptFor(desk, longestDelay(parts.pushes))
  await allDone(
    parts.opens.map(({ groupId, by }) => {
      const marker = keys.held(lease.id, runOf(envelope), groupId === envelope.groupId ? undefined : groupId)
      return progress.once(`hold ${groupId}`, () =>
        counters.incrementOnce(keys.open(groupId), marker, by, ttl, lease.token),
      )
    }),
  )
  await pushItems(desk, parts, progress, lease.token, isFresh)
  await progress.once('asides', () => doAsides(desk, parts.asides))
}

/** The outcome itself, and what follows from it. */
async function record(desk: Desk, held: Held, parts: Parts, outcome: End, isLocked: IsLocked): Promise<CommitResult> {
  const { progress, lease } = held
  const finals = parts.contributions.filter(isLock)
  // A group that is locked already stays as it is; one that this very item locked is made whole.
  await allDone(
    finals.map(({ groupId, value }) =>
      progress.once(`lock ${groupId}`, () => lockValue(desk, groupId, value, lease.token)),
    ),
  )
  const others = parts.contributions.filter((contribution) => !finals.includes(contribution))
  await progress.once('outcome', () =>
    desk.store.write([...overwrites(desk, others, isLocked), ...outcomeEntries(desk, held, outcome)]),
  )
  held.decided = outcome.do
  return windUp(desk, held, {
    ok: outcome.do === 'finish',
    ...(outcome.do === 'finish' ? {} : { error: outcome.error }),
    isBuried: outcome.do === 'park' && outcome.ending !== 'cancelled',
    closes: parts.closes,
    tells: parts.tells,
    notified: parts.notified,
  })
}

/** The writes of an outcome, in order: the last of them is what makes it count. */
export function outcomeEntries({ keys, clock }: Desk, held: Held, outcome: End): readonly Entry[] {
  const { id } = held.lease
  const { keepMs } = outcome
  const endAt = clock.now()
  if (outcome.do === 'finish') {
    const { result, ending } = outcome
    const marks = { ending, keepMs, ...(result === undefined ? { isResultless: true } : {}) }
    const state = entry(keys.state(id), writeState(stateAfter(held, { status: 'success', endAt, marks })), keepMs)
    return result === undefined ? [state] : [state, entry(keys.result(id), result, keepMs)]
  }
  const { error, ending, class: failureClass } = outcome
  const marks = { ending, class: failureClass, keepMs }
  return [
    entry(keys.error(id), error, keepMs),
    entry(keys.state(id), writeState(stateAfter(held, { status: 'dead', endAt, error, marks })), keepMs),
  ]
}
