import type { AsyncResource } from 'node:async_hooks'
import { Heap } from '../heap.js'
import type { At, Ms } from '../time.js'
import type { DoerTaskOptions } from './doer.js'
import type { Gates } from './rate-options.js'

/** A task that waits to be let through. */
export interface WaitingTask {
  readonly task: () => Promise<void>
  readonly hints: DoerTaskOptions & { readonly createdAt: At }
  /** Counts up with every task. */
  readonly order: number
  /** The context of whoever gave it. */
  readonly scope: AsyncResource
}

/** Tasks that wait at the same gates, oldest first: when the oldest cannot pass, neither can the others. */
export interface Lane {
  readonly gates: Gates
  readonly tasks: Heap<WaitingTask>
  /** Until then it need not be looked at; `undefined` while it is open. */
  blockedUntil: Ms | undefined
  /** Its place among the open lanes or among the blocked ones. */
  index: number
}

/** All that waits, by lane: the oldest task that may be able to pass is found in O(log n), past any number that cannot. */
export class RateLanes {
  readonly #lanes = new Map<string, Lane>()
  readonly #open = new Heap<Lane>((a, b) => isOlder(a.tasks.peek()!, b.tasks.peek()!), placeLane)
  readonly #blocked = new Heap<Lane>((a, b) => a.blockedUntil! < b.blockedUntil!, placeLane)
  #size = 0
  #openSize = 0

  /** How many tasks wait. */
  get size(): number {
    return this.#size
  }

  /** How many of them wait in open lanes. */
  get openSize(): number {
    return this.#openSize
  }

  push(gates: Gates, task: WaitingTask): void {
    const id = idOf(gates)
    let lane = this.#lanes.get(id)
    this.#size += 1
    if (lane === undefined) {
      lane = { gates, tasks: new Heap(isOlder), blockedUntil: undefined, index: -1 }
      this.#lanes.set(id, lane)
    }
    lane.tasks.push(task)
    if (lane.blockedUntil !== undefined) return
    this.#openSize += 1
    if (lane.index < 0) this.#open.push(lane)
    else this.#open.moved(lane.index)
  }

  /** The open lane with the oldest task. */
  first(): Lane | undefined {
    return this.#open.peek()
  }

  /** Takes the oldest task out of an open lane that has one. */
  shift(lane: Lane): WaitingTask {
    // Taken out before its first task is: a heap compares by what stands in it.
    this.#open.removeAt(lane.index)
    const task = lane.tasks.pop()!
    this.#size -= 1
    this.#openSize -= 1
    if (lane.tasks.size > 0) this.#open.push(lane)
    else this.#lanes.delete(idOf(lane.gates))
    return task
  }

  block(lane: Lane, until: Ms): void {
    this.#open.removeAt(lane.index)
    this.#openSize -= lane.tasks.size
    lane.blockedUntil = until
    this.#blocked.push(lane)
  }

  /** Opens the lanes whose time has come. */
  unblock(now: Ms): void {
    for (
      let lane = this.#blocked.peek();
      lane !== undefined && lane.blockedUntil! <= now;
      lane = this.#blocked.peek()
    ) {
      this.#blocked.pop()
      lane.blockedUntil = undefined
      this.#openSize += lane.tasks.size
      this.#open.push(lane)
    }
  }

  /** When the next lane opens. */
  nextUnblock(): Ms | undefined {
    return this.#blocked.peek()?.blockedUntil
  }
}

function isOlder(a: WaitingTask, b: WaitingTask): boolean {
  const at = a.hints.createdAt
  return at !== b.hints.createdAt ? at < b.hints.createdAt : a.order < b.order
}

function placeLane(lane: Lane, index: number): void {
  lane.index = index
}

function idOf({ all, group }: Gates): string {
  return group === undefined ? all.id : `${group.id}\0${all.id}`
}
