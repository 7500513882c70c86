import { RoomSignal } from '../core/room-signal.js'
import { BufferFullError } from '../ports/group-commit.js'

/** How much work that skips the queue a process holds at most. */
const MOST_HELD = 1_000

/**
 * Room for work that skips the queue. Such work is held from birth, with a lease and its memory, so that there is only so much
 * of it at a time; what comes beyond is accepted when some of it has ended.
 */
export class HeldRoom {
  readonly #maxWaiting: number
  readonly #waiting: (() => void)[] = []
  #held = 0
  readonly #room = new RoomSignal(() => this.#waiting.length > this.#maxWaiting / 2)

  constructor(maxWaiting: number) {
    this.#maxWaiting = maxWaiting
  }

  get isFull(): boolean {
    return this.#held >= MOST_HELD
  }

  /** Undefined where there is room, otherwise what to await first. Throws where too many wait already. */
  enter(): Promise<void> | undefined {
    if (!this.isFull) {
      this.#held += 1
      return undefined
    }
    if (this.#waiting.length >= this.#maxWaiting) {
      throw new BufferFullError('maxUnsent', this.#maxWaiting, this.#waiting.length, 1, {
        waits: `wait beside the ${MOST_HELD} that skip the queue already`,
        because: 'they arrive faster than they run',
      })
    }
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  left(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#held -= 1
    else next()
    this.#room.left()
  }

  /** Undefined where few wait, otherwise a promise of that. */
  whenRoom(): Promise<void> | undefined {
    return this.#room.whenRoom()
  }
}
