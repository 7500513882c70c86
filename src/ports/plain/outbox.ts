import { GroupCommit } from '../group-commit.js'
import type { PubSub } from '../ports.js'
import { called } from './call.js'

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

/** The messages for a batch: those of `@ayepi/work` for single notices, one `done-batch` for many of a kind. */
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
