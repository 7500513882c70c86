import type { At } from '../../core/time.js'
import type { Settled } from '../../ports/ledger.js'

/** What a transaction makes known once it is written: which queues have work, which inboxes have news. */
export class Told {
  /** Queue to when its first new item is due; now, or before now, means at once. */
  readonly ready = new Map<string, At>()
  readonly inboxes = new Map<string, { readonly ids: string[]; readonly groups: string[] }>()

  /** Ended items whose time was over and whose id was asked for again. */
  removed = 0

  nudge(queue: string, dueAt: At): void {
    const known = this.ready.get(queue)
    if (known === undefined || dueAt < known) this.ready.set(queue, dueAt)
  }

  end(inbox: string, id: string): void {
    this.#inbox(inbox).ids.push(id)
  }

  close(inbox: string, groupId: string): void {
    this.#inbox(inbox).groups.push(groupId)
  }

  #inbox(name: string): { readonly ids: string[]; readonly groups: string[] } {
    let inbox = this.inboxes.get(name)
    if (inbox === undefined) {
      inbox = { ids: [], groups: [] }
      this.inboxes.set(name, inbox)
    }
    return inbox satisfies Settled
  }
}
