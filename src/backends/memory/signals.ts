import type { At } from '../../core/time.js'
import type { Settled } from '../../ports/ledger.js'
import type { MessageQueue } from './message-queue.js'
import type { MemoryPubSub } from './pubsub.js'

type Wake = (queue: string, dueAt?: At) => void
type Hear = (what: Settled) => void

interface Inbox {
  readonly listeners: Set<{ readonly hear: Hear }>
  ids: string[]
  groups: string[]
}

/**
 * What a step makes known, told when the step is over and on disk: which queues have work, which inboxes have news. A
 * listener that throws is the listener's affair; neither the others nor the step notice.
 */
export class Signals {
  readonly #wakes = new Set<{ readonly wake: Wake }>()
  readonly #inboxes = new Map<string, Inbox>()
  readonly #pubsub: MemoryPubSub
  #nudged: MessageQueue[] = []
  #full: Inbox[] = []
  /** For systems on the plain path, which listen on the channel. */
  #endedIds: string[] = []
  #closedGroups: string[] = []

  constructor(pubsub: MemoryPubSub) {
    this.#pubsub = pubsub
  }

  onReady(wake: Wake): () => void {
    const one = { wake }
    this.#wakes.add(one)
    return () => {
      this.#wakes.delete(one)
    }
  }

  onInbox(name: string, hear: Hear): () => void {
    let inbox = this.#inboxes.get(name)
    if (inbox === undefined) {
      inbox = { listeners: new Set(), ids: [], groups: [] }
      this.#inboxes.set(name, inbox)
    }
    const { listeners } = inbox
    const one = { hear }
    listeners.add(one)
    return () => {
      listeners.delete(one)
      if (listeners.size === 0 && this.#inboxes.get(name)?.listeners === listeners) this.#inboxes.delete(name)
    }
  }

  /** Work is ready in this queue, or will be. */
  ready(queue: MessageQueue, dueAt: At, now: At): void {
    if (dueAt === Number.POSITIVE_INFINITY) return
    if (!queue.isNudged && queue.nudgeDueAt === undefined) this.#nudged.push(queue)
    if (dueAt <= now) queue.isNudged = true
    else queue.nudgeDueAt = Math.min(queue.nudgeDueAt ?? dueAt, dueAt)
  }

  /** An inbox that nobody listens to is told nothing: who comes later reads. True: somebody listens. */
  tell(inbox: string, id: string): boolean {
    return this.#listened(inbox)?.ids.push(id) !== undefined
  }

  tellGroup(inbox: string, groupId: string): boolean {
    return this.#listened(inbox)?.groups.push(groupId) !== undefined
  }

  ended(id: string): void {
    if (this.#pubsub.listeners() > 0) this.#endedIds.push(id)
  }

  closed(groupId: string): void {
    if (this.#pubsub.listeners() > 0) this.#closedGroups.push(groupId)
  }

  /** Tells everything that the step made known. */
  flush(): void {
    if (this.#nudged.length > 0) this.#flushNudges()
    if (this.#full.length > 0) this.#flushInboxes()
    if (this.#endedIds.length > 0 || this.#closedGroups.length > 0) this.#flushChannel()
  }

  #flushNudges(): void {
    const nudged = this.#nudged
    this.#nudged = []
    for (const queue of nudged) {
      const { isNudged, nudgeDueAt } = queue
      queue.isNudged = false
      queue.nudgeDueAt = undefined
      for (const { wake } of [...this.#wakes]) {
        if (isNudged) quietly(() => wake(queue.name))
        if (nudgeDueAt !== undefined) quietly(() => wake(queue.name, nudgeDueAt))
      }
    }
  }

  #flushInboxes(): void {
    const full = this.#full
    this.#full = []
    for (const inbox of full) {
      const what: Settled = { ids: inbox.ids, groups: inbox.groups }
      inbox.ids = []
      inbox.groups = []
      for (const { hear } of [...inbox.listeners]) quietly(() => hear(what))
    }
  }

  #flushChannel(): void {
    const message = JSON.stringify({ kind: 'done-batch', ids: this.#endedIds, groups: this.#closedGroups })
    this.#endedIds = []
    this.#closedGroups = []
    this.#pubsub.publish(message)
  }

  #listened(name: string): Inbox | undefined {
    const inbox = this.#inboxes.get(name)
    if (inbox !== undefined && inbox.ids.length === 0 && inbox.groups.length === 0) this.#full.push(inbox)
    return inbox
  }
}

function quietly(tell: () => void): void {
  try {
    tell()
  } catch {
    // What it was told stays true; whoever threw has only missed it, and reads again at its next poll.
  }
}
