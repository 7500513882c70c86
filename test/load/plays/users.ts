import { defineWork } from 'millrace'
import { codeOf, type Outcome, type Stage } from '../stage.js'
import { itemsOf } from './items.js'

const USERS = 500
/** When they come, as shares of the drain. */
const WAVES = [0.1, 0.3, 0.5]

/** Requests of users in the process that drains a backlog: each of them enqueues something and waits for the receipt. */
export async function users(stage: Stage): Promise<Outcome> {
  const { load, runs } = stage
  const { items } = load
  const { item, make } = itemsOf(stage)
  const asked = defineWork('asked', ({ n }: { readonly n: number }, ctx) => {
    runs.start(n)
    runs.end(n)
    return ctx.void()
  })
  await stage.fill(items, make)
  const w = stage.system([item, asked])
  const refused: Record<string, number> = {}
  let accepted = 0
  let longestMs = 0
  const one = async (n: number) => {
    const askedAt = performance.now()
    try {
      await w.enqueue(asked({ n })).accepted()
      accepted += 1
    } catch (error) {
      refused[codeOf(error)] = (refused[codeOf(error)] ?? 0) + 1
    }
    longestMs = Math.max(longestMs, performance.now() - askedAt)
  }
  await stage.begin()
  w.start()
  await Promise.all(
    WAVES.map(async (share, wave) => {
      await runs.mark(Math.ceil(items * share))
      await Promise.all(Array.from({ length: USERS }, (_, i) => one(items + wave * USERS + i)))
    }),
  )
  await stage.ended(items + accepted)
  await stage.stop(w)
  return {
    expected: items + accepted,
    facts: { accepted, longestAcceptMs: Math.round(longestMs), ...refused },
    broken: Object.entries(refused).map(([code, count]) => `${count} users were refused with ${code}`),
  }
}
