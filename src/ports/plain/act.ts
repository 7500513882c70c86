import { unreachable } from '../../core/unreachable.js'
import type { Envelope } from '../item.js'
import type { CommitResult, Guard } from '../settlement.js'
import { doAsides } from './asides.js'
import { allDone } from './call.js'
import { type Desk, keptFor, notSupported, queueNamed } from './desk.js'
import { closeIfEmpty } from './groups.js'
import { type Held, held } from './held.js'
import { outcomeEntries } from './outcome-entries.js'
import { badSettlement, type End, type Outcome, type Parts } from './parts.js'
import { entry } from './plain-store.js'
import { envelopeOf, hasEnded, readState, runOfState, type StoredState } from './state.js'
import { leaveGroups, windUp } from './wind-up.js'

const DEFAULT_QUEUE = 'default'

type ByStatus = Extract<Guard, { by: 'status' }>

/**
 * A person, or a cancel, acts on an item by its status. The status is looked at first, and only those of this process wait for
 * each other meanwhile: an item that starts in that moment runs on, and hears of it by the mark that is left for it.
 */
export function act(desk: Desk, guard: ByStatus, parts: Parts): Promise<CommitResult> {
  return desk.turns.inTurn(`act ${guard.id}`, () => actNow(desk, guard, parts))
}

async function actNow(desk: Desk, guard: ByStatus, parts: Parts): Promise<CommitResult> {
  const { keys, store } = desk
  const { outcome } = parts
  const known = desk.unfinished.get(guard.id)
  const state = readState(await store.get(keys.state(guard.id)))
  // A repetition of our own half-done action goes on, though its first half has changed the status.
  const isHalfDone = known !== undefined && state?.marks?.ending === endingOf(outcome)
  if (state === undefined || !(isHalfDone || guard.in.includes(state.status))) return { kind: 'stale' }
  if (outcome !== undefined && outcome.id !== guard.id)
    throw badSettlement(`it looks at ${guard.id} and decides about ${outcome.id}`)
  await doAsides(desk, parts.asides)
  desk.outbox.tell(parts.notified.map((id) => ({ kind: 'done', id })))
  return outcome === undefined ? { kind: 'applied', closed: [] } : decide(desk, state, outcome, parts)
}

const endingOf = (outcome: Outcome | undefined): string =>
  outcome?.do === 'finish' || outcome?.do === 'park' ? outcome.ending : 'none'

async function decide(desk: Desk, state: StoredState, outcome: Outcome, parts: Parts): Promise<CommitResult> {
  switch (outcome.do) {
    case 'finish':
    case 'park':
      return end(desk, state, outcome, parts)
    case 'erase':
      return erase(desk, state, parts)
    case 'retryAt':
    case 'release':
      throw notSupported(`move an item that stands in a queue (${outcome.do})`, 'It runs when it falls due.')
    case 'reopen':
      throw notSupported(
        'reopen an item, because its input is not kept once it has ended',
        'Redrive it from the dead-letter queue (the `dlq` of the system).',
      )
    default:
      return unreachable(outcome)
  }
}

async function end(desk: Desk, state: StoredState, outcome: End, parts: Parts): Promise<CommitResult> {
  const one = standIn(desk, state)
  const { keys, store } = desk
  desk.unfinished.set(state.id, { token: one.lease.token, progress: one.progress })
  await one.progress.once('outcome', () =>
    store.write([
      // First of all the mark: whoever pops the item from now on parks it, or hears of it by its heartbeat.
      ...(outcome.do === 'park' ? [entry(keys.cancel(state.id), outcome.error, keptFor(desk))] : []),
      ...outcomeEntries(desk, one, outcome),
    ]),
  )
  const result = await windUp(desk, one, {
    ok: outcome.do === 'finish',
    ...(outcome.do === 'park' ? { error: outcome.error } : {}),
    // Its body stands in the queue, unseen: there is nothing to bury.
    isBuried: false,
    closes: parts.closes,
    tells: parts.tells,
    notified: parts.notified,
  })
  desk.unfinished.delete(state.id)
  return result
}

/** What the steps of a settlement need of a lease, for an item that nobody holds. */
function standIn(desk: Desk, state: StoredState): Held {
  const known = desk.unfinished.get(state.id)
  const queue = state.marks?.queue ?? DEFAULT_QUEUE
  const token = known?.token ?? desk.options.newToken()
  const { fence = 0, crashes = 0 } = state.marks ?? {}
  const one = held({
    lease: { id: state.id, queue, token, fence, until: desk.clock.now() },
    envelope: { ...envelopeOf(state), input: '' } as Envelope,
    body: '',
    queue: queueNamed(desk, desk.queues.has(queue) ? queue : DEFAULT_QUEUE),
    pulled: undefined,
    worker: '',
    leaseMs: 0,
    crashes,
    state,
    heardMs: desk.clock.monotonic(),
  })
  return known === undefined ? one : { ...one, progress: known.progress }
}

/**
 * Nothing remains of it. A message of it may still stand in a queue, where nobody can take it out: then the marker of its end
 * stays for as long as markers do, and the message is dropped when it comes.
 */
async function erase(desk: Desk, state: StoredState, { closes }: Parts): Promise<CommitResult> {
  const { keys, store } = desk
  const { id } = state
  const one = standIn(desk, state)
  const run = runOfState(state)
  const traces = [
    keys.result(id),
    keys.error(id),
    keys.plan(id),
    keys.progress(id),
    keys.crash(id),
    keys.idle(id),
    keys.cancel(id),
  ]
  if (hasEnded(state.status)) {
    await allDone([...traces, keys.settled(id, run), keys.enqueued(id, run)].map((key) => store.remove(key)))
    await store.remove(keys.state(id))
    return { kind: 'applied', closed: [] }
  }
  // Whoever runs it finds another token than its own, and has lost it.
  await store.set(keys.run(id), one.lease.token, keptFor(desk))
  const counts = await leaveGroups(desk, one, closes)
  await allDone([...traces, keys.state(id)].map((key) => store.remove(key)))
  const closed = await allDone(counts.map(({ groupId, open }) => closeIfEmpty(desk, groupId, open, one.lease.token)))
  return { kind: 'applied', closed: closed.flat() }
}
