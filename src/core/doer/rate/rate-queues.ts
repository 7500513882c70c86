import type { AsyncResource } from 'node:async_hooks'
import { Heap } from '../../collections/heap.js'
import type { At, Ms } from '../../time/time.js'
import type { DoerTaskOptions } from '../doer.js'
import type { RateBuckets } from './rate-options.js'

/** A task that waits to be let through. */
export interface WaitingTask {
  readonly task: () => Promise<void>
  readonly hints: DoerTaskOptions & { readonly createdAt: At }
  /** Counts up with every task. */
  readonly order: number
  /** The context of the caller. */
  readonly scope: AsyncResource
}

/** Tasks that wait at the same buckets, oldest first: when the oldest cannot pass, neither can the others. */
export interface RateQueue {
  readonly buckets: RateBuckets
  readonly tasks: Heap<WaitingTask>
  /** Until then it need not be tried; `undefined` while it is open. */
  blockedUntil: Ms | undefined
  /** Its place among the open queues or among the blocked ones. */
  index: number
}

/** All that waits, by queue: the oldest task that may be able to pass is found in O(log n), past any number that cannot. */
export class RateQueues {
  readonly #queues = new Map<string, RateQueue>()
  readonly #open = new Heap<RateQueue>((a, b) => isOlder(a.tasks.peek()!, b.tasks.peek()!), placeQueue)
  readonly #blocked = new Heap<RateQueue>((a, b) => a.blockedUntil! < b.blockedUntil!, placeQueue)
  #size = 0
  #openSize = 0

  /** How many tasks wait. */
  get size(): number {
    return this.#size
  }

  /** How many of them wait in open queues. */
  get openSize(): number {
    return this.#openSize
  }

  push(buckets: RateBuckets, task: WaitingTask): void {
    const id = idOf(buckets)
    let queue = this.#queues.get(id)
    this.#size += 1
    if (queue === undefined) {
      queue = { buckets, tasks: new Heap(isOlder), blockedUntil: undefined, index: -1 }
      this.#queues.set(id, queue)
    }
    queue.tasks.push(task)
    if (queue.blockedUntil !== undefined) return
    this.#openSize += 1
    if (queue.index < 0) this.#open.push(queue)
    else this.#open.moved(queue.index)
  }

  /** The open queue with the oldest task. */
  first(): RateQueue | undefined {
    return this.#open.peek()
  }

  /** Takes the oldest task out of an open queue that has one. */
  shift(queue: RateQueue): WaitingTask {
    // Taken out before its first task is: a heap compares by what is in it.
    this.#open.removeAt(queue.index)
    const task = queue.tasks.pop()!
    this.#size -= 1
    this.#openSize -= 1
    if (queue.tasks.size > 0) this.#open.push(queue)
    else this.#queues.delete(idOf(queue.buckets))
    return task
  }

  block(queue: RateQueue, until: Ms): void {
    this.#open.removeAt(queue.index)
    this.#openSize -= queue.tasks.size
    queue.blockedUntil = until
    this.#blocked.push(queue)
  }

  /** Opens the queues whose time has come. */
  unblock(now: Ms): void {
    for (
      let queue = this.#blocked.peek();
      queue !== undefined && queue.blockedUntil! <= now;
      queue = this.#blocked.peek()
    ) {
      this.#blocked.pop()
      queue.blockedUntil = undefined
      this.#openSize += queue.tasks.size
      this.#open.push(queue)
    }
  }

  /** When the next queue opens. */
  nextUnblock(): Ms | undefined {
    return this.#blocked.peek()?.blockedUntil
  }
}

function isOlder(a: WaitingTask, b: WaitingTask): boolean {
  const at = a.hints.createdAt
  return at !== b.hints.createdAt ? at < b.hints.createdAt : a.order < b.order
}

function placeQueue(queue: RateQueue, index: number): void {
  queue.index = index
}

function idOf({ all, group }: RateBuckets): string {
  return group === undefined ? all.id : `${group.id}\0${all.id}`
}
