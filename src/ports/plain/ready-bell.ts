import { Heap } from '../../core/heap.js'
import type { At } from '../../core/time.js'

type Wake = (queue: string, dueAt?: At) => void

/** Due times beyond this many per queue are left to the idle poll. */
const MAX_DUE = 10_000

/** Tells the loops of this process that something was pushed, and remembers when what was pushed with a delay falls due. */
export class ReadyBell {
  readonly #wakes = new Set<Wake>()
  readonly #due = new Map<string, Heap<At>>()
  readonly #onError: (error: unknown) => void

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError
  }

  onReady(wake: Wake): () => void {
    // A fresh function each time: the same one registered twice is two registrations.
    const own: Wake = (queue, dueAt) => wake(queue, dueAt)
    this.#wakes.add(own)
    return () => void this.#wakes.delete(own)
  }

  ring(queue: string, dueAt?: At): void {
    if (dueAt !== undefined) this.#remember(queue, dueAt)
    for (const wake of [...this.#wakes]) {
      try {
        wake(queue, dueAt)
      } catch (error) {
        this.#onError(error)
      }
    }
  }

  /** When the next body that this process pushed into one of these queues falls due. What is due by `now` is forgotten. */
  nextDueAt(queues: readonly string[], now: At): At | undefined {
    let next: At | undefined
    for (const queue of queues) {
      const due = this.#due.get(queue)
      let first = due?.peek()
      while (due !== undefined && first !== undefined && first <= now) {
        due.pop()
        first = due.peek()
      }
      if (first !== undefined && (next === undefined || first < next)) next = first
    }
    return next
  }

  #remember(queue: string, dueAt: At): void {
    const due = this.#due.get(queue) ?? new Heap<At>((a, b) => a < b)
    this.#due.set(queue, due)
    if (due.size < MAX_DUE) due.push(dueAt)
  }
}
