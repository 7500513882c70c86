import type { Statements } from './sql.js'

/** Every queue and type that has items in a state: one index lookup for each, however many items there are. */
export function* queueTypesOf(
  sql: Statements,
  state: number,
): IterableIterator<readonly [queue: string, type: string]> {
  for (let queueType = sql.nextQueue.get(state, ''); queueType !== undefined; ) {
    yield queueType
    queueType = sql.nextType.get(state, ...queueType) ?? sql.nextQueue.get(state, queueType[0])
  }
}
