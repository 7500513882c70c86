import type { RedisContext } from './context.js'

/** How many expired items one call removes, once a claim or commit has found many. */
const STEP = 500

/** Counts the items that retention removed until they are reported, and removes more where claims and commits cannot keep up. */
export class Swept {
  readonly #context: RedisContext
  #unreported = 0
  #isSweeping = false

  constructor(context: RedisContext) {
    this.#context = context
  }

  /** A call removed `count` ended items; `hasMore`: it found more of them. */
  removed(count: number, hasMore: boolean): void {
    this.#unreported += count
    if (hasMore && !this.#isSweeping) void this.#sweep()
  }

  /** How many were removed since the last call. */
  take(): number {
    const removed = this.#unreported
    this.#unreported = 0
    return removed
  }

  async #sweep(): Promise<void> {
    this.#isSweeping = true
    try {
      for (let more = 1; more === 1; ) {
        const [isMore, removed] = (await this.#context.run('promote', [STEP, 'no queue'])) as [number, number]
        this.#unreported += removed
        more = isMore
      }
    } catch {
      // The connection is lost, or closed: a later claim finds it again.
    } finally {
      this.#isSweeping = false
    }
  }
}
