import { Heap } from '../../../core/collections/heap.js'
import { isDueBefore, type Message } from './message.js'
import { TimeList } from './time-list.js'

/** The messages of one priority. Ours stay around empty only for priority 0, which nearly all of them have. */
interface PriorityLane {
  readonly priority: number
  readonly lane: TimeList<Message>
  isListed: boolean
}

/** What can be claimed now of one type, in the order of claim: priority descending, due time, arrival. */
export class ReadyIndex {
  readonly #lanes = new Map<number, PriorityLane>()
  readonly #highest = new Heap<PriorityLane>((a, b) => a.priority > b.priority)
  readonly #normal: PriorityLane = newLane(0)

  add(message: Message): void {
    const found = this.#laneOf(message.priority)
    if (!found.isListed) {
      found.isListed = true
      this.#highest.push(found)
    }
    found.lane.add(message)
  }

  remove(message: Message): void {
    this.#laneOf(message.priority).lane.remove(message, message.slot)
  }

  peek(): Message | undefined {
    for (;;) {
      const top = this.#highest.peek()
      if (top === undefined) return undefined
      const message = top.lane.peek()
      if (message !== undefined) return message
      this.#highest.pop()
      top.isListed = false
      this.#lanes.delete(top.priority)
    }
  }

  *values(): IterableIterator<Message> {
    for (const { lane } of this.#highest.values()) yield* lane.values()
  }

  #laneOf(priority: number): PriorityLane {
    if (priority === 0) return this.#normal
    let found = this.#lanes.get(priority)
    if (found === undefined) {
      found = newLane(priority)
      this.#lanes.set(priority, found)
    }
    return found
  }
}

function newLane(priority: number): PriorityLane {
  const lane = new TimeList<Message>(isDueBefore, (message, slot) => {
    message.slot = slot
  })
  return { priority, lane, isListed: false }
}
