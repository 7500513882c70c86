import type { Queue } from '../../ports/ports.js'

export const DEFAULT_QUEUE = 'default'

/** The queues of a world, by name: every process has its own end of each. */
export class QueueNames {
  /** Every name in use. */
  readonly used = new Set<string>([DEFAULT_QUEUE])
  readonly #standIns = new Map<Queue, string>()

  /** The name of the queue that stands for one from outside: the same for every process. */
  standIn(queue: Queue): string {
    let name = this.#standIns.get(queue)
    if (name === undefined) {
      name = `queue${this.#standIns.size + 1}`
      this.#standIns.set(queue, name)
    }
    return name
  }
}
