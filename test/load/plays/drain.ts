import type { Outcome, Stage } from '../stage.js'
import { itemsOf } from './items.js'

/** A backlog that waits, and a worker that is started beside it. */
export async function drain(stage: Stage): Promise<Outcome> {
  const { items } = stage.load
  const { item, make } = itemsOf(stage)
  await stage.fill(items, make)
  const w = stage.system([item])
  await stage.begin()
  w.start()
  await stage.ended(items)
  await stage.stop(w)
  return { expected: items }
}
