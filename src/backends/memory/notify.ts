import type { At } from '../../core/time/time.js'
import { Listeners } from '../shared/listeners.js'
import { Notifications } from '../shared/notifications.js'
import type { MessageQueue } from './queue/message-queue.js'

/** Collects what a step changes for listeners, and calls them once the step is complete and on disk. */
export class Notifier {
  readonly listeners = new Listeners()
  #collected = new Notifications()

  /** Work is ready in this queue, or will be. */
  ready(queue: MessageQueue, dueAt: At, now: At): void {
    if (dueAt !== Number.POSITIVE_INFINITY) this.#collected.wake(queue.name, dueAt <= now ? 0 : dueAt)
  }

  /** An item ended, or its run is to be cancelled. False: nothing listens to this inbox, and a later listener reads. */
  item(inbox: string, id: string): boolean {
    if (!this.listeners.hasInbox(inbox)) return false
    this.#collected.end(inbox, id)
    return true
  }

  groupClosed(inbox: string, groupId: string): boolean {
    if (!this.listeners.hasInbox(inbox)) return false
    this.#collected.close(inbox, groupId)
    return true
  }

  flush(): void {
    const { ready, inboxes } = this.#collected
    if (ready.size + inboxes.size === 0) return
    this.#collected = new Notifications()
    for (const [queue, dueAt] of ready) this.listeners.wake(queue, dueAt === 0 ? undefined : dueAt)
    for (const [inbox, what] of inboxes) this.listeners.notify(inbox, what)
  }
}
