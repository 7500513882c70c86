import type { Outcome, Stage } from '../stage.js'
import { itemsOf } from './items.js'

/** A worker that is stopped in the middle of its backlog, and another one that does the rest. */
export async function stopMidDrain(stage: Stage): Promise<Outcome> {
  const { load, runs } = stage
  const { items } = load
  const { item, make, idOf } = itemsOf(stage)
  await stage.fill(items, make)
  const first = stage.system([item])
  await stage.begin()
  first.start()
  await runs.mark(Math.ceil(items / 2))
  const stopMs = await stage.stop(first)
  const ran = Array.from({ length: items }, (_, n) => n).filter((n) => runs.hasEnded(n))
  const areDone = await stage.areDone(ran.map(idOf))
  const unrecorded = areDone.filter((isDone) => !isDone).length
  const { active = 0 } = await stage.counts()
  const rest = stage.system([item])
  rest.start()
  await stage.ended(items)
  await stage.stop(rest)
  return {
    expected: items,
    facts: { stopMs, endedBefore: ran.length },
    broken: [
      ...(unrecorded > 0 ? [`${unrecorded} of ${ran.length} finished handlers were not recorded by stop()`] : []),
      ...(active > 0 ? [`${active} items were still leased after stop()`] : []),
      ...(ran.length === items ? ['nothing was left when stop() came: a larger load is needed'] : []),
    ],
  }
}
