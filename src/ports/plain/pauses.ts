import type { PausedNames } from '../ledger.js'
import type { Desk } from './desk.js'

/**
 * What is paused. A plain queue cannot be told to hold its bodies, so that each round reads a key: paused queues are not
 * popped, and what is met of a paused type is put back for longer and longer.
 */
export class Pauses {
  readonly #desk: Desk
  #queues: ReadonlySet<string> = new Set()

  constructor(desk: Desk) {
    this.#desk = desk
  }

  isQueuePaused(queue: string): boolean {
    return this.#queues.has(queue)
  }

  /** Looks at these queues. A store that cannot be asked pauses nothing. */
  async look(queues: readonly string[]): Promise<void> {
    const { keys, store } = this.#desk
    try {
      const found = await store.getAll(queues.map((queue) => keys.pause('queue', queue)))
      this.#queues = new Set(queues.filter((_, i) => found[i] === '1'))
    } catch (error) {
      this.#desk.report(error, 'queue')
      this.#queues = new Set()
    }
  }

  async isTypePaused(type: string): Promise<boolean> {
    return (await this.#desk.store.get(this.#desk.keys.pause('type', type))) === '1'
  }
}

/** Which of these are paused: a plain store cannot list its keys, so that whoever asks has to name them. */
export async function readPaused({ keys, store }: Desk, { queues, types }: PausedNames): Promise<PausedNames> {
  const [ofQueues, ofTypes] = await Promise.all([
    store.getAll(queues.map((queue) => keys.pause('queue', queue))),
    store.getAll(types.map((type) => keys.pause('type', type))),
  ])
  return { queues: queues.filter((_, i) => ofQueues[i] === '1'), types: types.filter((_, i) => ofTypes[i] === '1') }
}
