import type { At } from '../../core/time.js'
import type { Settled } from '../../ports/ledger.js'
import type { Desk } from './desk.js'

type Wake = (queue: string, dueAt?: At) => void
type Hear = (what: Settled) => void

/** Nudges and inboxes, as channels of the server. */
export class Signals {
  readonly #desk: Desk
  readonly #wakes = new Set<{ readonly wake: Wake }>()
  /** The queues that were claimed from here: whoever missed nudges has to look at these. */
  readonly #served = new Set<string>()

  constructor(desk: Desk) {
    this.#desk = desk
  }

  /** Somebody here claims from these queues. */
  serves(queue: string): void {
    this.#served.add(queue)
  }

  onReady(wake: Wake): () => void {
    const one = { wake }
    this.#wakes.add(one)
    const leave = this.#desk.subscriptions.on(`${this.#desk.tag}:nudges`, (message) => {
      for (const [queue, dueAt] of JSON.parse(message) as [string, number][]) {
        if (dueAt === 0) wake(queue)
        else wake(queue, dueAt)
      }
    })
    return () => {
      this.#wakes.delete(one)
      leave()
    }
  }

  onInbox(inbox: string, hear: Hear): () => void {
    return this.#desk.subscriptions.on(`${this.#desk.tag}:inbox:${inbox}`, (message) => {
      const [ids, groups] = JSON.parse(message) as [unknown, unknown]
      hear({ ids: listFrom(ids), groups: listFrom(groups) })
    })
  }

  /** The line was cut: what was said meanwhile is not known, so everybody looks. */
  missed(): void {
    for (const { wake } of [...this.#wakes])
      for (const queue of this.#served) {
        try {
          wake(queue)
        } catch {
          // The listener's affair.
        }
      }
  }
}

/** An empty list leaves the server as an empty object. */
const listFrom = (list: unknown): readonly string[] => (Array.isArray(list) ? list : [])
