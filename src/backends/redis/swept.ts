import type { Desk } from './desk.js'

/** So many expired items a call removes when a claim or commit has found that there are many. */
const STEP = 500

/** What retention removed: counted until it is told, and gone on with while there is more than others remove by the way. */
export class Swept {
  readonly #desk: Desk
  #untold = 0
  #isSweeping = false

  constructor(desk: Desk) {
    this.#desk = desk
  }

  /** A call removed so many ended items; `hasMore`: it found that there are more. */
  removed(count: number, hasMore: boolean): void {
    this.#untold += count
    if (hasMore && !this.#isSweeping) void this.#sweep()
  }

  /** How many were removed since this was last asked. */
  tell(): number {
    const told = this.#untold
    this.#untold = 0
    return told
  }

  async #sweep(): Promise<void> {
    this.#isSweeping = true
    try {
      for (let more = 1; more === 1; ) {
        const [isMore, removed] = (await this.#desk.run('promote', [STEP, 'no queue'])) as [number, number]
        this.#untold += removed
        more = isMore
      }
    } catch {
      // The connection is lost, or closed: a later claim finds it again.
    } finally {
      this.#isSweeping = false
    }
  }
}
