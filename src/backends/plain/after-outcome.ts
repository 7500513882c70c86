import { topOf } from '../../ports/item.js'
import type { ClosedGroup, CommitResult, EffectOf } from '../../ports/settlement.js'
import { hasEnded } from '../../ports/words.js'
import type { GroupChange, SortedEffects } from '../shared/sort-effects.js'
import type { PlainContext } from './context.js'
import { notifyGate, notifyTreeGates, readWatch } from './gates.js'
import { closeIfEmpty } from './groups.js'
import { type HeldLease, stateAfter } from './held-leases.js'
import { runOf, writeState } from './item-state.js'
import type { Notice } from './notify.js'
import { allDone, type Entry, entry } from './plain-ports.js'

export type EndEffect = EffectOf<'complete' | 'deadLetter'>

/** The writes of an outcome, in order: the last of them is what makes it count. */
export function outcomeEntries({ keys, clock }: PlainContext, held: HeldLease, outcome: EndEffect): readonly Entry[] {
  const { id } = held.lease
  const { keepMs, ending } = outcome
  const endAt = clock.now()
  if (outcome.do === 'complete') {
    const { result } = outcome
    const marks = { ending, isResultless: result === undefined ? true : undefined }
    const state = entry(keys.state(id), writeState(stateAfter(held, { status: 'completed', endAt, marks })), keepMs)
    return result === undefined ? [state] : [state, entry(keys.result(id), result, keepMs)]
  }
  const { error } = outcome
  const marks = { ending, class: outcome.class }
  return [
    entry(keys.error(id), error, keepMs),
    entry(keys.state(id), writeState(stateAfter(held, { status: 'dead', endAt, error, marks })), keepMs),
  ]
}

/** How an item ended, once that is stored. */
interface Ended {
  /** The text of its failure. Undefined: it completed. */
  readonly error?: string | undefined
  /** A copy belongs into the dead-letter queue. */
  readonly isDeadLettered?: boolean
  /** What else its settlement says. Without: it leaves its group. */
  readonly effects?: SortedEffects
}

/**
 * What follows once the outcome of an item is durable: the dead letter, the group's count, the gates, the closing, the ack,
 * the notifications. Every step may be repeated, by this process or by the one that gets the message next; only a dead letter
 * may then be in its queue twice, because a queue cannot be asked what it holds.
 */
export async function afterOutcome(context: PlainContext, held: HeldLease, ended: Ended): Promise<CommitResult> {
  const { progress, lease, envelope, queue, pulled } = held
  const { id, token } = lease
  const { keys, store } = context
  const { error, effects } = ended
  const isCompleted = error === undefined
  if (ended.isDeadLettered === true && queue.hasDeadLetters)
    await progress.once('dead letter', () => queue.deadLetter(held.body, error ?? ''))
  // Gates register before they read states, and the state is written: a gate that is not found here has found the state.
  const [counts, watching] = await Promise.all([
    leaveGroups(context, held, effects?.groupChanges),
    progress.once('watching', async () => readWatch(await store.get(keys.watch(id)))),
  ])
  const { gateNotices = [], notices: asked = [] } = effects ?? {}
  const named = gateNotices.filter(({ member }) => member === id).map(({ key }) => key)
  const own = new Set([...(envelope.gates ?? []), ...watching, ...named])
  await allDone([
    progress.once('trees', () => notifyTreeGates(context, envelope, isCompleted, token)),
    ...[
      ...[...own].map((key) => ({ key, member: id, completed: isCompleted })),
      // The gates of its own trees are notified above, also when no notice says so.
      ...gateNotices.filter(({ member }) => member !== id && topOf(member) !== id),
    ].map((notice) =>
      progress.once(`gate ${notice.key} of ${notice.member}`, () => notifyGate(context, notice, token)),
    ),
  ])
  const closed = await allDone(
    counts.map(({ groupId, open }) =>
      progress.once(`close ${groupId}`, () => closeIfEmpty(context, groupId, open, token)),
    ),
  ).then((lists) => lists.flat())
  if (pulled !== undefined) await progress.once('ack', () => queue.ack(pulled))
  context.leases.finish(held)
  const { groupId } = envelope
  const notices = asked.flatMap(({ ids }) => ids.filter((other) => other !== id)).map(doneNotice)
  if (await isAwaited(context, held, closed))
    notices.unshift({ kind: 'done', id, groupId, ...(error === undefined ? {} : { error }) })
  for (const group of closed) if (group.watched === true) notices.push({ kind: 'group-done', groupId: group.groupId })
  context.outbox.publish(notices)
  return { kind: 'applied', closed }
}

export const doneNotice = (id: string): Notice => ({ kind: 'done', id })

/**
 * Whether a caller waits for the item or its group: otherwise nothing is published. A caller that begins to wait after this
 * was asked reads the item first, and finds the outcome, which is durable by now.
 */
async function isAwaited(
  { store, keys }: PlainContext,
  { envelope }: HeldLease,
  closed: readonly ClosedGroup[],
): Promise<boolean> {
  if (envelope.waiter !== undefined) return true
  const own = closed.find(({ groupId }) => groupId === envelope.groupId)
  if (own !== undefined) return own.watched === true
  try {
    return (await store.get(keys.wait(envelope.groupId))) !== undefined
  } catch {
    return true // A notification that is not needed does no harm.
  }
}

/** The item leaves the counts of its groups, once for each of its lives. */
export async function leaveGroups(
  context: PlainContext,
  { progress, lease, envelope }: HeldLease,
  changes?: ReadonlyMap<string, GroupChange>,
) {
  const { keys, counters, store } = context
  const run = runOf(envelope)
  const ttl = context.keptFor()
  const own = envelope.groupId
  const leaves =
    changes === undefined ? [{ groupId: own, left: 1 }] : [...changes.values()].filter(({ left }) => left > 0)
  if (leaves.length === 0) {
    await progress.once('settle', () => store.claim(keys.settled(lease.id, run), lease.token, ttl))
    return []
  }
  // The first marker says that the item has settled: that of its own group, if it leaves that.
  leaves.sort((a, b) => Number(b.groupId === own) - Number(a.groupId === own))
  return allDone(
    leaves.map(({ groupId, left }, i) =>
      progress.once(`settle ${groupId}`, async () => {
        const marker = keys.settled(lease.id, run, i === 0 ? undefined : groupId)
        const counted = await counters.incrementOnce(keys.open(groupId), marker, -left, ttl, lease.token)
        return { groupId, open: counted.value }
      }),
    ),
  )
}

/**
 * A delivery of an item that has ended: does what its last holder did not get to, and acks the message. Most often only the
 * ack is missing.
 */
export async function completeEnded(context: PlainContext, held: HeldLease, isSettled: boolean): Promise<CommitResult> {
  const { state, queue, pulled } = held
  if (state === undefined || !hasEnded(state.status)) {
    // It has left its group, and nothing else is known of it: there is nothing to notify of.
    if (state !== undefined) await restoreState(context, held)
    if (pulled !== undefined) await queue.ack(pulled)
    context.leases.finish(held)
    return { kind: 'applied', closed: [] }
  }
  if (state.status === 'completed') return afterOutcome(context, held, {})
  const error = (await context.store.get(context.keys.error(state.id))) ?? state.error ?? ''
  // Once it has left its group it has been dead-lettered too: that comes first.
  return afterOutcome(context, held, { error, isDeadLettered: !isSettled && state.marks?.ending !== 'cancelled' })
}

/** A repeated enqueue wrote over the state of an item that has ended: the state says its outcome again. */
async function restoreState(context: PlainContext, held: HeldLease): Promise<void> {
  const { keys, store, clock } = context
  const { id } = held.lease
  const [result, error] = await store.getAll([keys.result(id), keys.error(id)])
  const endAt = clock.now()
  const isResultless = result === undefined ? true : undefined
  const state =
    isResultless && error !== undefined
      ? stateAfter(held, { status: 'dead', endAt, error })
      : stateAfter(held, { status: 'completed', endAt, marks: { ending: 'completed', isResultless } })
  await store.set(keys.state(id), writeState(state), context.keptFor())
}

/** A delivery of an item that was cancelled: it ends here, without a run. */
export async function cancelDelivered(context: PlainContext, held: HeldLease, reason: string): Promise<CommitResult> {
  // The mark of a cancel that ended the item itself says so already.
  const error = reason === '' || reason.startsWith('cancelled') ? reason || 'cancelled' : `cancelled: ${reason}`
  const outcome = { do: 'deadLetter', id: held.lease.id, ending: 'cancelled', class: 'unclassified', error } as const
  await context.store.write(outcomeEntries(context, held, { ...outcome, keepMs: context.options.retentionMs }))
  return afterOutcome(context, held, { error })
}
