import { Heap } from '../collections/heap.js'
import { type BoundedDoerOptions, boundedDoer, type HeldTask, higherFirst, type Pending } from './bounded.js'
import type { Doer } from './doer.js'

interface Group {
  readonly waiting: Heap<HeldTask>
  running: number
  /** Its place among the groups that have waiting tasks; −1 while it has none. */
  index: number
}

/**
 * Runs at most `max` tasks at once and shares them out between groups: next is a task of the group with the fewest running;
 * among equals, as for `priorityDoer`. So a group with ten thousand tasks does not keep a small one waiting.
 */
export function balancedDoer(options: BoundedDoerOptions): Doer {
  return boundedDoer('balancedDoer', options, balancedPending())
}

// A heap of groups, each with a heap of its tasks: choosing costs O(log n) however many groups and tasks there are.
function balancedPending(): Pending {
  const groups = new Map<string, Group>()
  let size = 0
  const order = new Heap<Group>(
    (a, b) => (a.running !== b.running ? a.running < b.running : higherFirst(a.waiting.peek()!, b.waiting.peek()!)),
    (group, index) => {
      group.index = index
    },
  )

  function groupOf(name: string): Group {
    let group = groups.get(name)
    if (group === undefined) {
      group = { waiting: new Heap(higherFirst), running: 0, index: -1 }
      groups.set(name, group)
    }
    return group
  }

  function count(name: string, by: 1 | -1): void {
    const group = groupOf(name)
    group.running += by
    if (group.index >= 0) order.moved(group.index)
    else if (group.running === 0) groups.delete(name)
  }

  return {
    get size() {
      return size
    },
    push(task) {
      const group = groupOf(task.group)
      group.waiting.push(task)
      size += 1
      if (group.index >= 0) order.moved(group.index)
      else order.push(group)
    },
    pop() {
      const group = order.peek()
      if (group === undefined) return undefined
      size -= 1
      // Taken out before its first task is: a heap compares by what is in it.
      order.pop()
      const task = group.waiting.pop()
      if (group.waiting.size > 0) order.push(group)
      return task
    },
    started: (task) => count(task.group, 1),
    ended: (task) => count(task.group, -1),
  }
}
