import { Heap } from '../../core/collections/heap.js'
import { GroupCommit } from '../../core/group-commit.js'
import type { At } from '../../core/time/time.js'
import type { Notification } from '../../ports/ledger.js'
import type { PubSub } from '../../ports/ports.js'
import { Listeners } from '../shared/listeners.js'
import { readObject } from './plain-ports.js'

type OnError = (error: unknown) => void

/** Due times beyond this many per queue are left to the idle poll. */
const MAX_DUE = 10_000

/** The plain channel has one inbox: every process receives every message. */
const INBOX = ''

/**
 * Notifies the loops and waiters of this process: of pushes made here, and of what ended anywhere, by one subscription
 * however many listen. Remembers when delayed bodies fall due.
 */
export class Notifier {
  readonly #listeners: Listeners
  readonly #due = new Map<string, Heap<At>>()
  #unsubscribe: (() => void) | undefined

  constructor(pubsub: PubSub, onError: OnError) {
    const changed = () => {
      if (this.#listeners.hasInbox(INBOX)) this.#unsubscribe ??= pubsub.subscribe((message) => this.#receive(message))
      else {
        this.#unsubscribe?.()
        this.#unsubscribe = undefined
      }
    }
    this.#listeners = new Listeners(changed, (call) => {
      try {
        call()
      } catch (error) {
        onError(error)
      }
    })
  }

  onReady(wake: (queue: string, dueAt?: At) => void): () => void {
    return this.#listeners.onReady(wake)
  }

  onInbox(onNotification: (ended: Notification) => void): () => void {
    return this.#listeners.onInbox(INBOX, onNotification)
  }

  wake(queue: string, dueAt?: At): void {
    if (dueAt !== undefined) {
      const due = this.#due.get(queue) ?? new Heap<At>((a, b) => a < b)
      this.#due.set(queue, due)
      if (due.size < MAX_DUE) due.push(dueAt)
    }
    this.#listeners.wake(queue, dueAt)
  }

  /** When the next body that this process pushed into one of these queues falls due. What is due by `now` is forgotten. */
  nextDueAt(queues: readonly string[], now: At): At | undefined {
    const next = queues.map((queue) => {
      const due = this.#due.get(queue)
      while ((due?.peek() ?? Infinity) <= now) due?.pop()
      return due?.peek() ?? Infinity
    })
    const first = Math.min(...next)
    return first === Infinity ? undefined : first
  }

  #receive(message: string): void {
    const ended = readMessage(message)
    if (ended !== undefined) this.#listeners.notify(INBOX, ended)
  }
}

/** Something that ended, or is to be cancelled, as it is published to all processes. */
export type Notice =
  | { readonly kind: 'done'; readonly id: string; readonly groupId?: string; readonly error?: string }
  | { readonly kind: 'group-done'; readonly groupId: string }
  | { readonly kind: 'cancel'; readonly id: string }

/**
 * Publishes what ended, detached from the settlement: nothing waits for it, and a failure is only reported. What is
 * published in the same turn, or while an earlier message is in flight, travels as one message.
 */
export class NoticeOutbox {
  readonly #notices: GroupCommit<Notice, void>
  readonly #onError: OnError

  constructor(pubsub: PubSub, onError: OnError) {
    this.#onError = onError
    this.#notices = new GroupCommit<Notice, void>({
      maxUnsent: 100_000,
      flush: async (batch) => {
        for (const message of messagesFor(batch)) await pubsub.publish(message)
        return batch.map(() => undefined)
      },
    })
  }

  publish(notices: readonly Notice[]): void {
    // One report for all of them: they share the message, and hence its failure.
    if (notices.length > 0) this.#notices.addMany(notices).catch(this.#onError)
  }
}

/** The messages for a batch: those of `@ayepi/work` for single notices, one `done-batch` for many of a kind. */
export function messagesFor(batch: readonly Notice[]): readonly string[] {
  const done = batch.filter((notice) => notice.kind === 'done')
  const groups = batch.filter((notice) => notice.kind === 'group-done')
  const rest = batch.filter((notice) => notice.kind === 'cancel')
  const ended =
    done.length <= 1 && groups.length <= 1
      ? [...done, ...groups]
      : [{ kind: 'done-batch', ids: done.map(({ id }) => id), groups: groups.map(({ groupId }) => groupId) }]
  return [...ended, ...rest].map((message) => JSON.stringify(message))
}

/** What a message says, or nothing: others may share the channel. */
export function readMessage(message: string): Notification | undefined {
  const { kind, id, groupId, ids, groups } = readObject<Record<string, unknown>>(message) ?? {}
  const texts = (value: unknown) => [value].flat().filter((one) => typeof one === 'string')
  // A cancel is no end, but callers should query the item: its holder learns of it by the next heartbeat.
  if (kind === 'done' || kind === 'cancel') return unlessEmpty({ itemIds: texts(id), groupIds: [] })
  if (kind === 'group-done') return unlessEmpty({ itemIds: [], groupIds: texts(groupId) })
  if (kind === 'done-batch') return unlessEmpty({ itemIds: texts(ids), groupIds: texts(groups) })
  return undefined
}

const unlessEmpty = (ended: Notification): Notification | undefined =>
  ended.itemIds.length + ended.groupIds.length > 0 ? ended : undefined
