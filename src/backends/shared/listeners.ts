import { callObserver } from '../../core/call-observer.js'
import type { At } from '../../core/time/time.js'
import type { Notification } from '../../ports/ledger.js'

type Wake = (queue: string, dueAt?: At) => void
type OnNotification = (what: Notification) => void
type Call = (listener: () => void) => void

/**
 * The callbacks that this process has registered for ready queues and for inboxes. One that throws disturbs neither the
 * other callbacks nor the backend: it has only missed this notification, and finds the change at its next poll.
 */
export class Listeners {
  readonly #wakes = new Set<{ readonly call: Wake }>()
  readonly #inboxes = new Map<string, Set<{ readonly call: OnNotification }>>()
  readonly #changed: () => void
  readonly #call: Call

  /** `changed` runs after every registration and removal: a backend subscribes to its server while `size` is not 0. */
  constructor(changed: () => void = () => undefined, call: Call = callObserver) {
    this.#changed = changed
    this.#call = call
  }

  /** How many queues' and inboxes' worth of callbacks there are; 0 means that nothing has to be delivered. */
  get size(): number {
    return this.#wakes.size + this.#inboxes.size
  }

  onReady(call: Wake): () => void {
    // An object for each registration: the same function registered twice is called twice.
    const one = { call }
    this.#wakes.add(one)
    this.#changed()
    return () => {
      if (this.#wakes.delete(one)) this.#changed()
    }
  }

  onInbox(inbox: string, call: OnNotification): () => void {
    const one = { call }
    const listeners = this.#inboxes.get(inbox) ?? new Set()
    this.#inboxes.set(inbox, listeners.add(one))
    this.#changed()
    return () => {
      if (!listeners.delete(one)) return
      if (listeners.size === 0 && this.#inboxes.get(inbox) === listeners) this.#inboxes.delete(inbox)
      this.#changed()
    }
  }

  hasInbox(inbox: string): boolean {
    return this.#inboxes.has(inbox)
  }

  /** The queue has work, now or from `dueAt` on. */
  wake(queue: string, dueAt?: At): void {
    for (const { call } of [...this.#wakes]) this.#call(() => (dueAt === undefined ? call(queue) : call(queue, dueAt)))
  }

  notify(inbox: string, what: Notification): void {
    for (const { call } of [...(this.#inboxes.get(inbox) ?? [])]) this.#call(() => call(what))
  }

  clear(): void {
    this.#wakes.clear()
    this.#inboxes.clear()
  }
}
