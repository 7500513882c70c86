import { LazySignal } from '../core/lazy-signal.js'

/** The signal of a batch: it aborts when that of every member has, since one lost lease is no reason to stop the others. */
export class BatchSignal extends LazySignal {
  readonly #members: readonly LazySignal[]
  #isWatching = false

  constructor(members: readonly LazySignal[]) {
    super()
    this.#members = members
  }

  override get signal(): AbortSignal {
    if (!this.#isWatching) this.#watch()
    return super.signal
  }

  #watch(): void {
    this.#isWatching = true
    let left = this.#members.length
    for (const member of this.#members) {
      const onAbort = () => {
        left -= 1
        if (left === 0) this.abort(member.reason)
      }
      if (member.aborted) onAbort()
      else member.signal.addEventListener('abort', onAbort, { once: true })
    }
  }
}
