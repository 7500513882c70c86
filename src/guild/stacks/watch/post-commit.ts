import type { StacksWarning } from '../api.js'
import { bookKey } from '../documents/names.js'
import { type Doc, privateCopy } from '../documents/value.js'
import { FifoLock } from '../transaction/fifo-lock.js'
import type { Scope, ScopeSlot } from '../transaction/scope.js'
import type { ChangeEvent } from './events.js'
import type { Watchers } from './watchers.js'

export interface PostCommitOptions {
  readonly watchers: Watchers
  readonly runIn: <T>(scope: Scope, run: () => T) => T
  readonly warn: (warning: StacksWarning) => void
}

/** Runs phase-2 handlers: one transaction after the other in commit order, events and handlers strictly in sequence. */
export class PostCommit {
  readonly #options: PostCommitOptions
  readonly #turns = new FifoLock()

  constructor(options: PostCommitOptions) {
    this.#options = options
  }

  /**
   * Takes the transaction's turn now, and returns the function that waits for it and runs the handlers. A write made by a
   * handler of the turn that is going on runs its own immediately: that handler waits for it.
   */
  turn(events: readonly ChangeEvent<Doc>[], scope: Scope): () => Promise<void> {
    const watched = events.filter((event) => this.#options.watchers.phase2(event).length > 0)
    if (watched.length === 0) return async () => undefined
    const { slot } = scope
    if (slot !== undefined && !slot.isOver) return () => this.#deliver(watched, scope, slot)
    const taken = this.#turns.take()
    return async () => {
      const release = await taken
      const own: ScopeSlot = { isOver: false }
      try {
        await this.#deliver(watched, scope, own)
      } finally {
        own.isOver = true
        release()
      }
    }
  }

  async #deliver(events: readonly ChangeEvent<Doc>[], from: Scope, slot: ScopeSlot): Promise<void> {
    const { watchers, runIn, warn } = this.#options
    const scope: Scope = { ...from, frame: undefined, hops: from.hops + 1, slot }
    for (const event of events) {
      for (const { handler } of watchers.phase2(event)) {
        try {
          await runIn(scope, async () => handler(privateCopy(event)))
        } catch (error) {
          // A chain that is too long rejects the call that began it.
          if (error === scope.chain.refusal) continue
          const message = `A phase-2 watcher of ${bookKey(event)} failed on the ${event.type} of a document; the write stays.`
          warn({ code: 'PHASE2_FAILED', message, error })
        }
      }
    }
  }
}
