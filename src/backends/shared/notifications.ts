import type { At } from '../../core/time/time.js'
import type { Notification } from '../../ports/ledger.js'

/** What listeners are notified of once a transaction is written: which queues have work, which inboxes have news. */
export class Notifications {
  /** Queue to when its first new item is due; now, or before now, means immediately. */
  readonly ready = new Map<string, At>()
  readonly inboxes = new Map<string, { readonly itemIds: string[]; readonly groupIds: string[] }>()

  /** Expired items that this transaction removed because their ids were needed. */
  removed = 0

  wake(queue: string, dueAt: At): void {
    const known = this.ready.get(queue)
    if (known === undefined || dueAt < known) this.ready.set(queue, dueAt)
  }

  end(inbox: string, id: string): void {
    this.#inbox(inbox).itemIds.push(id)
  }

  close(inbox: string, groupId: string): void {
    this.#inbox(inbox).groupIds.push(groupId)
  }

  #inbox(name: string): { readonly itemIds: string[]; readonly groupIds: string[] } {
    let inbox = this.inboxes.get(name)
    if (inbox === undefined) {
      inbox = { itemIds: [], groupIds: [] }
      this.inboxes.set(name, inbox)
    }
    return inbox satisfies Notification
  }
}
