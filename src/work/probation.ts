import type { Clock } from '../core/clock.js'
import type { Ms } from '../core/time.js'

interface Entrant {
  readonly hasCrashed: boolean
  readonly admit: () => void
  readonly letOut: () => void
}

/**
 * Where items begin whose lease has lapsed before. What a dead process held comes back together, and what killed that process
 * with it: begun side by side, the quick and healthy ones would go down once more before they are written. So one that may have
 * crashed its process begins by itself, and no other begins while it is on probation. Probation ends when the item is settled, or
 * when it has lived for a while. With each that has, one more of its kind may begin beside the next: a thousand that are healthy
 * are not kept waiting for a thousand probations. When none is left, that is forgotten: the next that come are those of another
 * death, and say nothing of each other.
 */
export class Probation {
  readonly #clock: Clock
  readonly #ms: Ms
  readonly #entrants: Entrant[] = []
  /** On probation now: those that may have crashed their process, and the others. */
  #crashed = 0
  #others = 0
  /** How many that may have crashed their process may be on probation together. */
  #mostCrashed = 1

  constructor(clock: Clock, ms: Ms) {
    this.#clock = clock
    this.#ms = ms
  }

  /**
   * Resolves when an item may begin, with what is to be called when it is settled; more than once does no harm. Undefined: it was
   * let out before its turn.
   */
  enter(hasCrashed: boolean): Promise<(() => void) | undefined> {
    return new Promise((resolve) => {
      this.#entrants.push({
        hasCrashed,
        admit: () => resolve(this.#begun(hasCrashed)),
        letOut: () => resolve(undefined),
      })
      this.#admit()
    })
  }

  /** Lets out all that wait. */
  letOut(): void {
    for (const entrant of this.#entrants.splice(0)) entrant.letOut()
  }

  #begun(hasCrashed: boolean): () => void {
    let isOver = false
    const leave = () => {
      if (isOver) return
      isOver = true
      cancel()
      if (hasCrashed) {
        this.#crashed -= 1
        const areAllOver = this.#crashed === 0 && !this.#entrants.some((one) => one.hasCrashed)
        this.#mostCrashed = areAllOver ? 1 : this.#mostCrashed + 1
      } else this.#others -= 1
      this.#admit()
    }
    const cancel = this.#clock.after(this.#ms, leave)
    return leave
  }

  /** In the order in which they came: one that has crashed is not passed over for ever. */
  #admit(): void {
    for (let next = this.#entrants[0]; next !== undefined; next = this.#entrants[0]) {
      if (next.hasCrashed ? this.#others > 0 || this.#crashed >= this.#mostCrashed : this.#crashed > 0) return
      this.#entrants.shift()
      if (next.hasCrashed) this.#crashed += 1
      else this.#others += 1
      next.admit()
    }
  }
}
