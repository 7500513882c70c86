import { ACTIVE, WAITING } from '../shared/state-codes.js'
import type { Statements } from './sql.js'

type QueueType = readonly [queue: string, type: string]

/** Every queue and type that has items in a state: one index lookup for each, however many items there are. */
export function queueTypesOf(sql: Statements, state: number): Iterable<QueueType> {
  if (state === ACTIVE) return sql.heldTypes.all()
  const [nextQueue, nextType] =
    state === WAITING
      ? [(queue: string) => sql.nextReadyQueue.get(queue), (of: QueueType) => sql.nextReadyType.get(...of)]
      : [(queue: string) => sql.nextQueue.get(state, queue), (of: QueueType) => sql.nextType.get(state, ...of)]
  return walk(nextQueue, nextType)
}

function* walk(
  nextQueue: (queue: string) => QueueType | undefined,
  nextType: (of: QueueType) => QueueType | undefined,
): IterableIterator<QueueType> {
  for (let queueType = nextQueue(''); queueType !== undefined; ) {
    yield queueType
    queueType = nextType(queueType) ?? nextQueue(queueType[0])
  }
}
