import type { WaitBeforeClose } from '../../ports/find-ledger.js'

/**
 * What a backend waits for before it closes. A system hands its commits to the backend one after the other, so the backend
 * itself cannot know what is still to come.
 */
export class BeforeClose {
  readonly #waits = new Set<{ readonly wait: WaitBeforeClose }>()

  /** A close waits for this, until the returned function is called. */
  readonly add = (wait: WaitBeforeClose): (() => void) => {
    const one = { wait }
    this.#waits.add(one)
    return () => void this.#waits.delete(one)
  }

  /** Resolves when everything that was handed in before this call has been waited for. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#waits].map(({ wait }) => wait()))
  }
}
