import type { Ms } from '../../core/time/time.js'
import type { RedisContext } from './context.js'
import { joined, type LightEnd, type LightEnqueue, type LightLease } from './light-items.js'
import { msWord } from './time.js'

type Words = (string | number)[]

/** Items of one queue, type and priority: the first, and the numbers of all, from 1. */
interface Lane {
  readonly first: LightEnqueue
  readonly numbers: number[]
}

/** Enqueues light items, in order. Replies the places of those that were not, because something of their name is known. */
export async function enqueueLight(
  context: RedisContext,
  enqueues: readonly LightEnqueue[],
): Promise<readonly number[]> {
  const ids: string[] = []
  const texts: string[] = []
  const long: Words = []
  const lanes = new Map<string, Lane>()
  let lane: Lane | undefined
  for (const one of enqueues) {
    const { item, queue } = one.enqueue
    ids.push(item.id)
    texts.push(one.text)
    if (one.longInput !== undefined) long.push(item.id, one.longInput)
    if (lane === undefined || !isOfLane(lane, one)) {
      const name = JSON.stringify([queue, item.type, item.priority])
      lane = lanes.get(name) ?? { first: one, numbers: [] }
      lanes.set(name, lane)
    }
    lane.numbers.push(ids.length)
  }
  const words: Words = [joined(ids), joined(texts), long.length / 2, ...long]
  const woken = new Set<string>()
  for (const { first, numbers } of lanes.values()) {
    const { item, queue } = first.enqueue
    words.push(queue, item.type, item.priority + 0, lanes.size === 1 ? '' : numbers.join(' '))
    words.push(woken.has(queue) ? '' : JSON.stringify([[queue, 0]]))
    woken.add(queue)
  }
  return placesFrom(await context.run('light-enqueue', words), enqueues)
}

function isOfLane({ first: { enqueue: first } }: Lane, { enqueue: { item, queue } }: LightEnqueue): boolean {
  return first.queue === queue && first.item.type === item.type && first.item.priority === item.priority
}

/** What ends together: one claim, kept for one duration. */
interface Ending {
  readonly lease: LightLease
  readonly keepMs: Ms
  readonly ends: LightEnd[]
}

/** Completes light items. Replies the places of those that were not: each is no light item any more, or its lease is not held. */
export async function completeLight(context: RedisContext, ends: readonly LightEnd[]): Promise<readonly number[]> {
  const endings = new Map<string, Ending>()
  let ending: Ending | undefined
  for (const end of ends) {
    const { lease, keepMs } = end
    if (ending === undefined || ending.lease.claim !== lease.claim || ending.keepMs !== keepMs) {
      const name = `${lease.claim.no} ${lease.claim.key} ${keepMs}`
      ending = endings.get(name) ?? { lease, keepMs, ends: [] }
      endings.set(name, ending)
    }
    ending.ends.push(end)
  }
  const words: Words = []
  const sent: LightEnd[] = []
  for (const { lease, keepMs, ends } of endings.values()) {
    const { no, key, queue, type } = lease.claim
    const ids = joined(ends.map((end) => end.lease.id))
    words.push(no, key, queue, type, msWord(keepMs), ids, joined(ends.map(({ text }) => text)))
    const isAwaited = ends.some((end) => end.lease.waiter !== undefined)
    words.push(isAwaited ? joined(ends.map((end) => end.lease.waiter ?? '')) : '')
    for (const end of ends) sent.push(end)
  }
  return placesFrom(await context.run('light-complete', words), sent)
}

/** Lua counts from 1; an empty list leaves the server as one. */
const placesFrom = (reply: unknown, sent: readonly { readonly i: number }[]): readonly number[] =>
  (reply as readonly number[]).map((number) => sent[number - 1]!.i)
