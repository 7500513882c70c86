import type { ClosedGroup, CommitResult, Effect } from '../settlement.js'
import { topOf } from '../tree.js'
import { allDone } from './call.js'
import { type Desk, keptFor } from './desk.js'
import { readWatch, tellGate, tellTrees } from './gates.js'
import { closeIfEmpty } from './groups.js'
import type { Held } from './held.js'
import type { Notice } from './outbox.js'
import { closePlan } from './plan.js'
import { runOf } from './state.js'

/** How an item ended, once that stands in the store. */
export interface Ended {
  readonly ok: boolean
  /** The text of its failure. */
  readonly error?: string
  /** A copy belongs into the dead-letter sink. */
  readonly isBuried: boolean
  readonly closes: readonly { readonly groupId: string; readonly by: number }[]
  /** Gates to tell about other items. */
  readonly tells: readonly Extract<Effect, { do: 'tellGate' }>[]
  readonly notified: readonly string[]
}

/**
 * What follows once the outcome of an item is durable: the dead letter, the group's count, the gates, the closing, the ack,
 * the news. Every step may be repeated, by this process or by the one that gets the message next; only a dead letter may
 * then stand in its sink twice, because a sink cannot be asked what it holds.
 */
export async function windUp(desk: Desk, held: Held, ended: Ended): Promise<CommitResult> {
  const { progress, lease, envelope, queue, pulled } = held
  const { id, token } = lease
  const { keys, store } = desk
  if (ended.isBuried && queue.hasDeadLetters)
    await progress.once('bury', () => queue.deadLetter(held.body, ended.error ?? ''))
  // Gates register before they look at states, and the state is written: whoever is not found here has found the state.
  const [counts, watching] = await Promise.all([
    leaveGroups(desk, held, ended.closes),
    progress.once('watching', async () => readWatch(await store.get(keys.watch(id)))),
  ])
  const gates = new Set([...(envelope.gates ?? []), ...watching])
  for (const { key, member } of ended.tells) if (member === id) gates.add(key)
  await allDone([
    progress.once('trees', () => tellTrees(desk, envelope, ended.ok, token)),
    ...[...gates].map((key) => progress.once(`tell ${key}`, () => tellGate(desk, key, id, ended.ok, token))),
    ...ended.tells
      // Of its own trees it tells by itself, also when nobody is left who could say so.
      .filter(({ member }) => member !== id && topOf(member) !== id)
      .map(({ key, member, ok }) =>
        progress.once(`tell ${key} of ${member}`, () => tellGate(desk, key, member, ok, token)),
      ),
  ])
  const closed = (
    await allDone(
      counts.map(({ groupId, open }) =>
        progress.once(`close ${groupId}`, () => closeIfEmpty(desk, groupId, open, token)),
      ),
    )
  ).flat()
  if (pulled !== undefined) await progress.once('ack', () => queue.ack(pulled))
  desk.leases.finish(held)
  const { groupId } = envelope
  const notices = ended.notified.filter((other) => other !== id).map((other): Notice => ({ kind: 'done', id: other }))
  if (await isAwaited(desk, held, closed)) {
    notices.unshift({ kind: 'done', id, groupId, ...(ended.error === undefined ? {} : { error: ended.error }) })
  }
  for (const group of closed) if (group.watched === true) notices.push({ kind: 'group-done', groupId: group.groupId })
  if (notices.length > 0) desk.outbox.tell(notices)
  if (progress.has('plan')) closePlan(desk, held).catch((error: unknown) => desk.report(error, 'commit'))
  return { kind: 'applied', closed }
}

/**
 * Whether anybody waits for the item or its group: where nobody does, nothing is published. Whoever begins to wait after
 * this was asked looks for himself, and finds the outcome, which is durable by now.
 */
async function isAwaited(desk: Desk, { envelope }: Held, closed: readonly ClosedGroup[]): Promise<boolean> {
  if (envelope.waiter !== undefined) return true
  const own = closed.find(({ groupId }) => groupId === envelope.groupId)
  if (own !== undefined) return own.watched === true
  try {
    return (await desk.store.get(desk.keys.wait(envelope.groupId))) !== undefined
  } catch {
    return true // Not knowing, tell: news that nobody needs does no harm.
  }
}

/** The item leaves the counts of its groups, once for each of its lives. */
export async function leaveGroups(desk: Desk, { progress, lease, envelope }: Held, closes: Ended['closes']) {
  const { keys, counters, store } = desk
  const run = runOf(envelope)
  const ttl = keptFor(desk)
  if (closes.length === 0) {
    await progress.once('settle', () => store.claim(keys.settled(lease.id, run), lease.token, ttl))
    return []
  }
  return allDone(
    closes.map(({ groupId, by }, i) =>
      progress.once(`settle ${groupId}`, async () => {
        const marker = keys.settled(lease.id, run, i === 0 ? undefined : groupId)
        const counted = await counters.incrementOnce(keys.open(groupId), marker, -by, ttl, lease.token)
        return { groupId, open: counted.value }
      }),
    ),
  )
}
