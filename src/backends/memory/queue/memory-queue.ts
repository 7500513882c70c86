import { functionOption, integerOption, optionsObject } from '../../../core/options.js'
import { checkPersistence, type MemoryQueuePersistence, QueueFile } from '../file/queue-file.js'
import { DEFAULT_QUEUE } from '../file/queue-records.js'
import { type MemoryOptions, timeOf } from '../time.js'
import type { DeadLettered } from './dead-letters.js'
import { type MemoryQueue, queuePort } from './queue-port.js'
import { Queues, type QueuesOptions } from './queues.js'

/** How a memory queue is kept: on file or not, and how many dead letters. */
export interface MemoryQueueKeeping extends MemoryQueuePersistence {
  /** How many dead letters are kept; the oldest leave first. Default: 10 000. */
  readonly maxDead?: number
  /** Called with a dead letter that had to leave. */
  readonly onEvict?: (entry: DeadLettered) => void
}

/** Options of `memoryQueue`: where it is kept, and the clock that it lives by. */
export interface MemoryQueueOptions extends MemoryOptions, MemoryQueueKeeping {}

const KEEPING = ['file', 'fs', 'onError', 'durability', 'maxDead', 'onEvict'] as const

/**
 * A queue in this process, on a file if you name one. Nothing that was accepted is lost then, whenever the process dies:
 * what was leased is delivered again.
 *
 * @example
 * ```ts
 * const queue = memoryQueue({ file: './jobs.queue' })
 * queue.push('hello', { delay: 1_000 })
 * ```
 */
export function memoryQueue(options?: MemoryQueueOptions): MemoryQueue {
  const given = optionsObject('memoryQueue', options, ['now', 'clock', ...KEEPING])
  const time = timeOf(given, 'memoryQueue')
  const { now: _now, clock: _clock, ...keeping } = given
  const queues = new Queues(time, resolveKeeping(keeping, 'memoryQueue'))
  return queuePort(queues.named(DEFAULT_QUEUE), time, {
    popping() {},
    pushing() {},
    pushed() {},
    acked() {},
    settled: () => queues.file?.flush(),
  })
}

/** Checks how queues are kept and opens their file. */
export function resolveKeeping(keeping: MemoryQueueKeeping | undefined, owner: string): QueuesOptions {
  const given = optionsObject(owner, keeping, KEEPING)
  const maxDead = integerOption(`${owner}.maxDead`, given.maxDead, { min: 0, default: 10_000 })
  const onEvict =
    given.onEvict === undefined
      ? undefined
      : functionOption<(entry: DeadLettered) => void>(`${owner}.onEvict`, given.onEvict)
  checkPersistence(given, owner)
  const { file } = given
  return { file: file === undefined ? undefined : new QueueFile({ ...given, file }, owner), maxDead, onEvict }
}
