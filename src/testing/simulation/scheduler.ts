import { setImmediate as afterMicrotasks } from 'node:timers'
import { Heap } from '../../core/collections/heap.js'
import type { Random } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import { SimulationStuckError } from './errors.js'

/** Whose event it is. What belongs to a dead process never happens; what belongs to a paused one happens when it goes on. */
export interface Owner {
  readonly isDead: boolean
  readonly pausedUntilMs: Ms
}

interface Scheduled {
  atMs: Ms
  /** Decides among events of one instant: drawn from the seed, so some seed tries every order. */
  readonly tie: number
  readonly order: number
  readonly owner: Owner | undefined
  readonly run: () => void
  index: number
}

/** So many events without time passing mean that something spins. */
const MAX_AT_ONCE = 20_000

/**
 * Virtual time and the one decision in it: which event is next. Everything that happens in a simulated world is an event here, and
 * between two events all promise chains come to rest, so a seed fixes the whole history.
 */
export class Scheduler {
  readonly #random: Random
  readonly #maxEvents: number
  #nowMs: Ms = 0
  #events = 0
  #atOnce = 0
  #scheduled = 0
  readonly #queue = new Heap<Scheduled>(
    (a, b) => (a.atMs !== b.atMs ? a.atMs < b.atMs : a.tie !== b.tie ? a.tie < b.tie : a.order < b.order),
    (event, index) => {
      event.index = index
    },
  )

  constructor(random: Random, maxEvents: number) {
    this.#random = random
    this.#maxEvents = maxEvents
  }

  /** Virtual milliseconds since the beginning of the world. */
  get nowMs(): Ms {
    return this.#nowMs
  }

  /** How many events have happened. */
  get events(): number {
    return this.#events
  }

  /** Lets `run` happen in `ms`. Returns a function that takes it back. */
  schedule(ms: Ms, owner: Owner | undefined, run: () => void): () => void {
    if (ms === Infinity) return () => undefined
    const event: Scheduled = {
      atMs: this.#nowMs + Math.max(0, ms),
      tie: this.#random(),
      order: this.#scheduled++,
      owner,
      run,
      index: -1,
    }
    this.#queue.push(event)
    return () => {
      if (event.index >= 0) this.#queue.removeAt(event.index)
    }
  }

  /** Lets the world go on until `isOver` says so, or until this instant. True: it was over. */
  async run(isOver: () => boolean, untilMs: Ms): Promise<boolean> {
    await atRest()
    while (!isOver()) {
      const next = this.#queue.peek()
      if (next === undefined || next.atMs > untilMs) {
        this.#nowMs = Math.max(this.#nowMs, untilMs)
        return isOver()
      }
      this.#queue.removeAt(next.index)
      this.#moveTo(next.atMs)
      if (next.owner?.isDead) continue
      if (next.owner !== undefined && next.owner.pausedUntilMs > this.#nowMs) {
        next.atMs = next.owner.pausedUntilMs
        this.#queue.push(next)
        continue
      }
      this.#count()
      next.run()
      await atRest()
    }
    return true
  }

  #moveTo(atMs: Ms): void {
    if (atMs > this.#nowMs) this.#atOnce = 0
    this.#nowMs = Math.max(this.#nowMs, atMs)
  }

  #count(): void {
    this.#events += 1
    this.#atOnce += 1
    if (this.#atOnce > MAX_AT_ONCE)
      throw new SimulationStuckError(`${MAX_AT_ONCE} events happened without time passing`)
    if (this.#events > this.#maxEvents) throw new SimulationStuckError(`${this.#maxEvents} events were not enough`)
  }
}

/** One turn of the event loop: it begins only when no promise chain has anything left to do. */
function atRest(): Promise<void> {
  return new Promise((resolve) => afterMicrotasks(resolve))
}
