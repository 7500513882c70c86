import { Heap } from '../../core/heap.js'
import type { At } from '../../core/time.js'
import { GroupCommit } from '../group-commit.js'
import type { Settled } from '../ledger.js'
import type { PubSub } from '../ports.js'
import { called } from './call.js'

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

/** Something that ended, on its way to everybody. */
export type Notice =
  | { readonly kind: 'done'; readonly id: string; readonly groupId?: string; readonly error?: string }
  | { readonly kind: 'group-done'; readonly groupId: string }
  | { readonly kind: 'cancel'; readonly id: string }

/**
 * Publishes what ended, detached from the settlement: nothing waits for it, and a failure is only reported. What is
 * published in the same turn, or while an earlier message is under way, travels as one message.
 */
export class Outbox {
  readonly #notices: GroupCommit<Notice, void>
  readonly #onError: (error: unknown) => void

  constructor(pubsub: PubSub, onError: (error: unknown) => void) {
    this.#onError = onError
    this.#notices = new GroupCommit<Notice, void>({
      maxUnsent: 100_000,
      flush: async (batch) => {
        for (const message of messagesFor(batch)) await called(() => pubsub.publish(message))
        return batch.map(() => undefined)
      },
    })
  }

  tell(notices: readonly Notice[]): void {
    // One report for all of them: they share the message, and hence its failure.
    if (notices.length > 0) this.#notices.addMany(notices).catch(this.#onError)
  }
}

/** The messages for a batch: the seed's own for single notices, one `done-batch` for many of a kind. */
export function messagesFor(batch: readonly Notice[]): readonly string[] {
  const done = batch.filter((notice) => notice.kind === 'done')
  const groups = batch.filter((notice) => notice.kind === 'group-done')
  const rest = batch.filter((notice) => notice.kind === 'cancel')
  if (done.length <= 1 && groups.length <= 1)
    return [...done, ...groups, ...rest].map((notice) => JSON.stringify(notice))
  const ids = done.map((notice) => notice.id)
  const all = { kind: 'done-batch', ids, groups: groups.map((notice) => notice.groupId) }
  return [all, ...rest].map((message) => JSON.stringify(message))
}

/** What a message says, or nothing: others may share the channel. */
export function readMessage(message: string): Settled | undefined {
  const read = parsed(message)
  const text = (value: unknown) => (typeof value === 'string' ? [value] : [])
  const texts = (value: unknown) => (Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [])
  switch (read?.['kind']) {
    case 'done':
    // Not an end, but whoever runs it or waits for it should look: the holder then hears by its next heartbeat.
    case 'cancel':
      return said({ ids: text(read['id']), groups: [] })
    case 'group-done':
      return said({ ids: [], groups: text(read['groupId']) })
    case 'done-batch':
      return said({ ids: texts(read['ids']), groups: texts(read['groups']) })
    default:
      return undefined
  }
}

/** Hears what ended, by one subscription for the whole process, however many listen. */
export class Inbox {
  readonly #pubsub: PubSub
  readonly #onError: (error: unknown) => void
  readonly #hearers = new Set<(what: Settled) => void>()
  #leave: (() => void) | undefined

  constructor(pubsub: PubSub, onError: (error: unknown) => void) {
    this.#pubsub = pubsub
    this.#onError = onError
  }

  onInbox(hear: (what: Settled) => void): () => void {
    const own = (what: Settled) => hear(what)
    this.#hearers.add(own)
    this.#leave ??= this.#pubsub.subscribe((message) => this.#heard(message))
    return () => {
      if (!this.#hearers.delete(own) || this.#hearers.size > 0) return
      this.#leave?.()
      this.#leave = undefined
    }
  }

  #heard(message: string): void {
    const what = readMessage(message)
    if (what === undefined) return
    for (const hear of [...this.#hearers]) {
      try {
        hear(what)
      } catch (error) {
        this.#onError(error)
      }
    }
  }
}

const said = (what: Settled): Settled | undefined => (what.ids.length + what.groups.length > 0 ? what : undefined)

function parsed(message: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const read: unknown = JSON.parse(message)
    return typeof read === 'object' && read !== null ? (read as Readonly<Record<string, unknown>>) : undefined
  } catch {
    return undefined
  }
}
