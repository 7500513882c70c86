import { newToken } from '../../core/ids.js'
import { unreachable } from '../../core/unreachable.js'
import type { Envelope } from '../../ports/item.js'
import type { PausedNames, ScheduleRecord } from '../../ports/ledger.js'
import type { CommitResult, EffectOf, Guard } from '../../ports/settlement.js'
import { hasEnded } from '../../ports/words.js'
import { checkGuard } from '../shared/check-guard.js'
import type { SortedEffects } from '../shared/sort-effects.js'
import { afterOutcome, doneNotice, type EndEffect, leaveGroups, outcomeEntries } from './after-outcome.js'
import { badSettlement, notSupported, outcomeIn, type PlainContext } from './context.js'
import { closeIfEmpty } from './groups.js'
import { type HeldLease, heldLease } from './held-leases.js'
import { envelopeOfState, readState, runOf, type StoredState } from './item-state.js'
import { allDone, entry } from './plain-ports.js'

/** What a settlement does beside its item. */
export type SideEffect = EffectOf<'schedule' | 'requestCancel' | 'pause' | 'resume'>

/**
 * Attempts and the log of people's actions have no place in three plain ports and are left out: a system on them has no
 * `inspect`.
 */
export function sideEffectsOf({ cancels, controls }: SortedEffects): readonly SideEffect[] {
  return [...cancels, ...controls.filter((effect) => effect.do !== 'log')]
}

/** Marks and records that are simply written, and may be written again. */
export async function applySideEffects(context: PlainContext, effects: readonly SideEffect[]): Promise<void> {
  await allDone(effects.map((effect) => applySideEffect(context, effect)))
}

async function applySideEffect(context: PlainContext, effect: SideEffect): Promise<void> {
  const { keys, store } = context
  switch (effect.do) {
    case 'schedule':
      return store.set(keys.schedule(effect.name), writeSchedule(effect))
    case 'requestCancel':
      await store.set(keys.cancel(effect.id), effect.reason, context.keptFor())
      context.outbox.publish([{ kind: 'cancel', id: effect.id }])
      return
    case 'pause':
      return store.set(keys.pause(effect.what, effect.name), '1')
    case 'resume':
      await store.remove(keys.pause(effect.what, effect.name))
      for (const queue of context.queues.keys()) context.notifier.wake(queue)
      return
    default:
      unreachable(effect)
  }
}

export const writeSchedule = ({ spec, nextAt }: ScheduleRecord): string => JSON.stringify({ spec, nextAt })

/** Which of these are paused: a plain store cannot list its keys, so the caller has to name them. */
export async function readPaused({ keys, store }: PlainContext, { queues, types }: PausedNames): Promise<PausedNames> {
  const names = [...queues.map((name) => keys.pause('queue', name)), ...types.map((name) => keys.pause('type', name))]
  const found = await store.getAll(names)
  return {
    queues: queues.filter((_, i) => found[i] === '1'),
    types: types.filter((_, i) => found[queues.length + i] === '1'),
  }
}

type StatusGuard = Extract<Guard, { by: 'status' }>

/**
 * A person, or a cancel, changes an item by its status. The status is read first, and only actions of this process wait for
 * each other meanwhile: an item that starts in that moment runs on, and its holder finds the mark that is left for it.
 */
export function commitItemAction(
  context: PlainContext,
  guard: StatusGuard,
  sorted: SortedEffects,
): Promise<CommitResult> {
  return context.mutex.run(`action ${guard.id}`, async () => {
    const outcome = outcomeIn(sorted)
    const state = readState(await context.store.get(context.keys.state(guard.id)))
    // A repetition of our own half-done action continues, though its first half has changed the status.
    const ending = outcome?.do === 'complete' || outcome?.do === 'deadLetter' ? outcome.ending : 'none'
    const isHalfDone = context.unfinished.has(guard.id) && state?.marks?.ending === ending
    const refused = isHalfDone ? undefined : checkGuard(guard, state)
    if (refused !== undefined || state === undefined) return refused ?? { kind: 'stale' }
    if (outcome !== undefined && outcome.id !== guard.id)
      throw badSettlement(`it guards ${guard.id} and decides about ${outcome.id}`)
    await applySideEffects(context, sideEffectsOf(sorted))
    context.outbox.publish(sorted.notices.flatMap(({ ids }) => ids).map(doneNotice))
    switch (outcome?.do) {
      case undefined:
        return { kind: 'applied', closed: [] }
      case 'complete':
      case 'deadLetter':
        return end(context, state, outcome, sorted)
      case 'delete':
        return deleteItem(context, state, sorted)
      case 'retry':
      case 'release':
        throw notSupported(`move an item that is in a queue (${outcome.do})`, 'It runs when it falls due.')
      case 'redrive':
        throw notSupported(
          'reopen an item, because its input is not kept once it has ended',
          'Redrive it from the dead-letter queue (the `dlq` of the system).',
        )
      default:
        return unreachable(outcome)
    }
  })
}

async function end(
  context: PlainContext,
  state: StoredState,
  outcome: EndEffect,
  sorted: SortedEffects,
): Promise<CommitResult> {
  const { keys, store } = context
  const one = withoutLease(context, state)
  const error = outcome.do === 'deadLetter' ? outcome.error : undefined
  context.unfinished.set(state.id, one)
  await one.progress.once('outcome', () =>
    store.write([
      // First of all the mark: a worker that gets the item from now on ends it, or finds the mark at its heartbeat.
      ...(error === undefined ? [] : [entry(keys.cancel(state.id), error, context.keptFor())]),
      ...outcomeEntries(context, one, outcome),
    ]),
  )
  // No dead letter: its body is in the queue, out of reach.
  const result = await afterOutcome(context, one, { error, effects: sorted })
  context.unfinished.delete(state.id)
  return result
}

const DEFAULT_QUEUE = 'default'

/** What the steps of a settlement need of a lease, for an item that no worker holds. */
function withoutLease(context: PlainContext, state: StoredState): HeldLease {
  const known = context.unfinished.get(state.id)
  const { queue = DEFAULT_QUEUE, fence = 0 } = state.marks ?? {}
  return heldLease({
    lease: { id: state.id, queue, token: known?.lease.token ?? newToken(), fence, until: context.clock.now() },
    envelope: { ...envelopeOfState(state), input: '' } as Envelope,
    body: '',
    queue: context.queueNamed(context.queues.has(queue) ? queue : DEFAULT_QUEUE),
    worker: '',
    state,
    confirmedMs: context.clock.monotonic(),
    leaseMs: 0,
    ...(known === undefined ? {} : { progress: known.progress }),
  })
}

/**
 * Nothing remains of it. A message of it may still be in a queue, out of reach: then the marker of its end stays for as long
 * as markers do, and the message is dropped when it comes.
 */
async function deleteItem(
  context: PlainContext,
  state: StoredState,
  { groupChanges }: SortedEffects,
): Promise<CommitResult> {
  const { keys, store } = context
  const { id } = state
  const one = withoutLease(context, state)
  const { token } = one.lease
  const run = runOf(state.envelope)
  const kinds = ['result', 'error', 'plan', 'progress', 'crash', 'idle', 'cancel'] as const
  const traces = kinds.map((kind) => keys[kind](id))
  if (hasEnded(state.status)) {
    await allDone([...traces, keys.settled(id, run), keys.enqueued(id, run)].map((key) => store.remove(key)))
    await store.remove(keys.state(id))
    return { kind: 'applied', closed: [] }
  }
  // A worker that runs it finds another token than its own, and has lost it.
  await store.set(keys.run(id), token, context.keptFor())
  const counts = await leaveGroups(context, one, groupChanges)
  await allDone([...traces, keys.state(id)].map((key) => store.remove(key)))
  const closed = await allDone(counts.map(({ groupId, open }) => closeIfEmpty(context, groupId, open, token)))
  return { kind: 'applied', closed: closed.flat() }
}
