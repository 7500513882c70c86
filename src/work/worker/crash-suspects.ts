import { GroupCommit } from '../../core/group-commit.js'
import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { LeaseStatus } from '../../ports/ledger.js'
import type { Delivery } from '../../source/loop/delivery.js'
import { CancelledError } from '../../source/loop/errors.js'
import type { EngineContext } from '../engine-context.js'
import { isLastChance } from '../run/crash-limit.js'

/** How long an item that was held when a process died is on probation once it runs again. */
const PROBATION_MS: Ms = 1_000

/**
 * Items that were held when a process died: each may have caused the crash. Before one runs again, the backend records that it
 * runs, so the next death counts as its crash; and it starts on probation.
 */
export class CrashSuspects {
  readonly #context: EngineContext
  readonly #probation: Probation
  readonly #onProbation = new WeakMap<Delivery<ClaimedItem>, () => void>()
  readonly #marks: GroupCommit<Delivery<ClaimedItem>, LeaseStatus>
  /** Of the last run of the loop: one listener for each run, not for each item. */
  #stopping: AbortSignal | undefined
  /** A backend that does not record it is reported once, until it does. */
  #hasReported = false

  constructor(context: EngineContext) {
    const { o, ledger } = context
    this.#context = context
    this.#probation = new Probation(o.clock, Math.min(o.heartbeat, PROBATION_MS))
    this.#marks = new GroupCommit({
      flush: (batch) =>
        ledger.extend(
          batch.map(({ item }) => ({ lease: item.lease, running: true })),
          o.visibility,
          context.workerRecord(),
        ),
      maxUnsent: Infinity,
      maxUnderWay: Infinity,
      timeout: { ms: o.visibility, clock: o.clock },
    })
  }

  /** Waits until it may start beside the others. False: it may not, for example because the loop stops. */
  async mayBegin(delivery: Delivery<ClaimedItem>, stopping: AbortSignal): Promise<boolean> {
    if (stopping.aborted) return false
    if (this.#stopping !== stopping) {
      this.#stopping = stopping
      stopping.addEventListener('abort', () => this.#probation.letOut(), { once: true })
    }
    const leave = await this.#probation.enter(suspicionOf(delivery.item))
    if (leave === undefined) return false
    this.#onProbation.set(delivery, leave)
    return delivery.state === 'held' && (await this.mark(delivery)) && !stopping.aborted
  }

  /** Records in the backend that it is about to run. False: its lease is lost, or it could not be recorded. */
  async mark(delivery: Delivery<ClaimedItem>): Promise<boolean> {
    // Plain ports record every start.
    if (delivery.item.lapses === 0 || this.#context.ledger.markStarted !== undefined) return true
    // A heartbeat in flight says that it does not run yet: written after the mark, it would undo it.
    if (delivery.extending !== undefined) await this.#answered(delivery.extending)
    delivery.hasBegun = true
    const isMarked = await this.#mark(delivery)
    if (!isMarked) delivery.hasBegun = false
    return isMarked
  }

  /** A heartbeat that hangs is not waited for longer than until the next. */
  #answered(extending: Promise<unknown>): Promise<void> {
    const { clock, heartbeat } = this.#context.o
    return new Promise((go) => {
      const cancel = clock.after(heartbeat, go)
      void extending.then(() => {
        cancel()
        go()
      })
    })
  }

  async #mark(delivery: Delivery<ClaimedItem>): Promise<boolean> {
    const { clock, visibility } = this.#context.o
    try {
      const askedMs = clock.monotonic()
      const status = await this.#marks.add(delivery)
      this.#hasReported = false
      if (status === 'cancelled') delivery.abort(new CancelledError())
      if (status === 'lost') delivery.lose()
      else if (status !== 'unknown') delivery.leasedAt = Math.max(delivery.leasedAt, askedMs)
      // A process that was suspended gets an old answer: by now another may hold the item.
      if (clock.monotonic() - delivery.leasedAt >= visibility) delivery.lose()
      // Unknown: a user's transaction holds the row. A run that is not marked would not count if it crashes the process.
      return delivery.state === 'held' && status !== 'unknown'
    } catch (error) {
      if (!this.#hasReported) this.#context.failed(error, 'queue')
      this.#hasReported = true
      return false
    }
  }

  /** It is settled, or has left: others may start. */
  left(delivery: Delivery<ClaimedItem>): void {
    this.#onProbation.get(delivery)?.()
  }
}

function suspicionOf(item: ClaimedItem): Suspicion {
  if (isLastChance(item)) return 'last chance'
  return item.crashes > 0 ? 'crashed' : 'lapsed'
}

/** What is known of an item that begins: whether it may have crashed its process, and whether the next crash would end it. */
export type Suspicion = 'lapsed' | 'crashed' | 'last chance'

interface Entrant {
  readonly suspicion: Suspicion
  readonly admit: () => void
  readonly letOut: () => void
}

/**
 * Where items start whose lease has lapsed before. What a dead process held is delivered again together, with the item that killed
 * it: if all started side by side, the healthy ones would be lost again before they are written. So an item that may have
 * crashed its process starts by itself, and no other starts while it is on probation. Probation ends when the item is settled, or
 * has run for a while. Each time one more may start beside the next, so a thousand healthy items do not wait for a thousand
 * probations. When none is left, the count starts again: the next ones belong to another crash. An item that the next
 * crash would end starts when no other is on probation, and none starts beside it: it would be dead-lettered for what its neighbour
 * does while its outcome is being written.
 */
export class Probation {
  readonly #clock: Clock
  readonly #ms: Ms
  readonly #entrants: Entrant[] = []
  /** On probation now: those that may have crashed their process, and the others. */
  #crashed = 0
  #others = 0
  /** The item on probation is in its last chance, and none may start beside it. */
  #isAlone = false
  /** How many items that may have crashed their process may be on probation together. */
  #mostCrashed = 1

  constructor(clock: Clock, ms: Ms) {
    this.#clock = clock
    this.#ms = ms
  }

  /**
   * Resolves when an item may start, with what to call when it is settled; calling it again does no harm. Undefined: it was
   * released before its turn.
   */
  enter(suspicion: Suspicion): Promise<(() => void) | undefined> {
    return new Promise((resolve) => {
      this.#entrants.push({
        suspicion,
        admit: () => resolve(this.#begun(suspicion)),
        letOut: () => resolve(undefined),
      })
      this.#admit()
    })
  }

  /** Releases all that wait. */
  letOut(): void {
    for (const entrant of this.#entrants.splice(0)) entrant.letOut()
  }

  #begun(suspicion: Suspicion): () => void {
    let isOver = false
    const leave = () => {
      if (isOver) return
      isOver = true
      cancel()
      if (suspicion === 'last chance') this.#isAlone = false
      if (suspicion !== 'lapsed') {
        this.#crashed -= 1
        const areAllOver = this.#crashed === 0 && !this.#entrants.some((one) => one.suspicion !== 'lapsed')
        this.#mostCrashed = areAllOver ? 1 : this.#mostCrashed + 1
      } else this.#others -= 1
      this.#admit()
    }
    const cancel = this.#clock.after(this.#ms, leave)
    return leave
  }

  /** In the order in which they came: an item that has crashed is not passed over forever. */
  #admit(): void {
    for (let next = this.#entrants[0]; next !== undefined; next = this.#entrants[0]) {
      if (!this.#mayBegin(next.suspicion)) return
      this.#entrants.shift()
      if (next.suspicion === 'lapsed') this.#others += 1
      else this.#crashed += 1
      this.#isAlone = next.suspicion === 'last chance'
      next.admit()
    }
  }

  #mayBegin(suspicion: Suspicion): boolean {
    if (this.#isAlone) return false
    if (suspicion === 'lapsed') return this.#crashed === 0
    return this.#others === 0 && this.#crashed < (suspicion === 'last chance' ? 1 : this.#mostCrashed)
  }
}
