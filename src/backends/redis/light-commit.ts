import type { EffectOf } from '../../ports/settlement.js'
import type { RedisContext } from './context.js'
import { endText, type LightEnd, lightText, longInput } from './light-items.js'
import { attemptText } from './stored-texts.js'
import { msWord } from './time.js'

type Words = (string | number)[]

/** Enqueues light items, in order. Replies which of them were not, because something of their name is known: others have to look at it. */
export async function enqueueLight(
  context: RedisContext,
  enqueues: readonly EffectOf<'enqueue'>[],
): Promise<readonly number[]> {
  const ids: Words = []
  const texts: Words = []
  const long: Words = []
  const lanes = new Map<string, { readonly first: EffectOf<'enqueue'>; readonly numbers: number[] }>()
  let lane: { readonly first: EffectOf<'enqueue'>; readonly numbers: number[] } | undefined
  for (const enqueue of enqueues) {
    const { item, queue } = enqueue
    ids.push(item.id)
    texts.push(lightText(enqueue))
    const input = longInput(enqueue)
    if (input !== undefined) long.push(item.id, input)
    const was = lane?.first
    if (
      was === undefined ||
      was.queue !== queue ||
      was.item.type !== item.type ||
      was.item.priority !== item.priority
    ) {
      const name = JSON.stringify([queue, item.type, item.priority])
      lane = lanes.get(name) ?? { first: enqueue, numbers: [] }
      lanes.set(name, lane)
    }
    lane!.numbers.push(ids.length)
  }
  const words = [ids.length as string | number].concat(ids, texts, long.length / 2, long)
  const woken = new Set<string>()
  for (const { first, numbers } of lanes.values()) {
    const { item, queue } = first
    words.push(queue, item.type, item.priority + 0, lanes.size === 1 ? '' : numbers.join(' '))
    words.push(woken.has(queue) ? '' : JSON.stringify([[queue, 0]]))
    woken.add(queue)
  }
  return numbersFrom(await context.run('light-enqueue', words))
}

/** Completes light items. Replies which of them were not: each of those is no light item any more, or its lease is not held. */
export async function completeLight(context: RedisContext, ends: readonly LightEnd[]): Promise<readonly number[]> {
  const claims = new Map<string, number[]>()
  ends.forEach(({ lease, complete }, i) => {
    const name = `${lease.token} ${complete.keepMs}`
    const known = claims.get(name)
    if (known === undefined) claims.set(name, [i])
    else known.push(i)
  })
  let words: Words = []
  const order: number[] = []
  for (const members of claims.values()) {
    const { lease, complete } = ends[members[0]!]!
    const { no, key, queue, type } = lease.claim
    const ids: Words = []
    const places: Words = []
    const texts: Words = []
    for (const i of members) {
      const end = ends[i]!
      order.push(i)
      ids.push(end.lease.id)
      places.push(end.lease.place)
      const line = end.was === undefined ? '' : attemptText(end.was)
      texts.push(endText(end.complete.ending, line, end.complete.result))
    }
    words = words.concat([no, key, queue, type, msWord(complete.keepMs), ids.length], ids, places, texts)
  }
  return numbersFrom(await context.run('light-complete', words)).map((i) => order[i]!)
}

/** Lua counts from 1; an empty list leaves the server as one. */
const numbersFrom = (reply: unknown): readonly number[] => (reply as readonly number[]).map((number) => number - 1)
