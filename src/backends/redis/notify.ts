import { callObserver } from '../../core/call-observer.js'
import type { At } from '../../core/time/time.js'
import type { Notification } from '../../ports/ledger.js'
import type { RedisContext } from './context.js'

type Wake = (queue: string, dueAt?: At) => void
type OnNotification = (what: Notification) => void

/** Ready queues and inboxes, as channels of the server. */
export class Notifier {
  readonly #context: RedisContext
  readonly #wakes = new Set<{ readonly wake: Wake }>()
  /** The queues that were claimed from here: after missed notifications, they are claimed from again. */
  readonly #served = new Set<string>()

  constructor(context: RedisContext) {
    this.#context = context
  }

  serves(queue: string): void {
    this.#served.add(queue)
  }

  onReady(wake: Wake): () => void {
    const one = { wake }
    this.#wakes.add(one)
    const leave = this.#context.subscriptions.on(`${this.#context.tag}:ready-channel`, (message) => {
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

  onInbox(inbox: string, onNotification: OnNotification): () => void {
    return this.#context.subscriptions.on(`${this.#context.tag}:inbox:${inbox}`, (message) => {
      const [ids, groups] = JSON.parse(message) as [unknown, unknown]
      onNotification({ itemIds: listFrom(ids), groupIds: listFrom(groups) })
    })
  }

  /** The connection was lost, and notifications with it: every queue may have work. */
  missed(): void {
    for (const { wake } of [...this.#wakes]) for (const queue of this.#served) callObserver(() => wake(queue))
  }
}

/** An empty list leaves the server as an empty object. */
const listFrom = (list: unknown): readonly string[] => (Array.isArray(list) ? list : [])
