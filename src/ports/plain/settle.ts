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
import { type IsLocked, isStillOurs, look } from './look.js'
import { outcomeEntries } from './outcome-entries.js'
import { badSettlement, type End, type Outcome, type Parts, partsOf } from './parts.js'
import { claimPlan, longestDelay } from './plan.js'
import { runOf } from './state.js'
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
    // A put-back writes nothing that could be wrong, unless the start is on record: a queue knows its own leases.
    if (outcome.do === 'release' && (held.begun === undefined || held.decided !== undefined))
      return settleHeld(desk, held, parts, outcome, effects, () => false)
    const seen = await look(desk, held, parts)
    return seen.isTaken ? lost(desk, held) : settleHeld(desk, held, parts, outcome, effects, seen.isLocked)
  })
}

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
  if (!(await isStillOurs(desk, held, parts))) return lost(desk, held)
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
