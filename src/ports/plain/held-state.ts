import type { Held } from './held.js'
import { type Marks, type Standing, type StoredState, stateOf } from './state.js'

/** The state of a held item after a step. */
export function stateAfter(held: Held, standing: Standing): StoredState {
  const { runAt } = held
  const marks = { ...lasting(held), ...standing.marks }
  return stateOf(held.envelope, { ...(runAt === undefined ? {} : { runAt }), ...standing, marks })
}

/** The marks that stay with an item from one run to the next. */
export function lasting({ queue, lease, crashes, state }: Held): Marks {
  const { gate, dueAt } = state?.marks ?? {}
  return {
    queue: queue.name,
    fence: lease.fence,
    ...(crashes === 0 ? {} : { crashes }),
    ...(gate === undefined ? {} : { gate }),
    ...(gate === undefined || dueAt === undefined ? {} : { dueAt }),
  }
}
