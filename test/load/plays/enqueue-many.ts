import { codeOf, type Outcome, type Stage } from '../stage.js'
import { itemsOf } from './items.js'

/** One call with everything in it, beside a worker that takes it. */
export async function enqueueMany(stage: Stage): Promise<Outcome> {
  const { items } = stage.load
  const { item, make } = itemsOf(stage)
  const w = stage.system([item])
  // The list is the caller's: it is there before anything is measured.
  const works = Array.from({ length: items }, (_, n) => make(n))
  await stage.begin()
  w.start()
  const askedAt = performance.now()
  let refusedWith: string | undefined
  try {
    await w.enqueueMany(works)
  } catch (error) {
    refusedWith = codeOf(error)
  }
  const acceptedMs = Math.round(performance.now() - askedAt)
  if (refusedWith === undefined) await stage.ended(items)
  await stage.stop(w)
  return {
    expected: refusedWith === undefined ? items : 0,
    facts: { acceptedMs },
    broken: refusedWith === undefined ? [] : [`enqueueMany of ${items} was refused with ${refusedWith}`],
  }
}
