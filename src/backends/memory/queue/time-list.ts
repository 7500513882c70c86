import { Heap } from '../../../core/collections/heap.js'
import { SlotList } from './slot-list.js'

/** The slot of an item that is in no list. */
export const NO_SLOT = -1

/** Rising sequences that a lane keeps apart. Lengths of leases, retentions and delays come in a few sizes, not in many. */
const MAX_RUNS = 4

/**
 * A sorted list for ranks that rise with time: due times, lease ends, expiry. An item that belongs behind all others of its
 * run costs O(1) to add, to take and to remove from the middle. Items of another kind (a day's retention among months) get
 * their own run; only what fits no run goes through a heap and costs O(log n).
 * `placed` gives an item its slot, by which it is removed again.
 */
export class TimeList<T> {
  readonly #before: (a: T, b: T) => boolean
  readonly #placed: (item: T, slot: number) => void
  readonly #runs: SlotList<T>[] = []
  readonly #stragglers: Heap<T>

  constructor(before: (a: T, b: T) => boolean, placed: (item: T, slot: number) => void) {
    this.#before = before
    this.#placed = placed
    // Slots below NO_SLOT are indexes of the heap. It says -1 for "left", which is NO_SLOT's own mark.
    this.#stragglers = new Heap(before, (item, index) => placed(item, index < 0 ? NO_SLOT : -2 - index))
    this.#addRun()
  }

  get size(): number {
    let size = this.#stragglers.size
    for (const run of this.#runs) size += run.size
    return size
  }

  add(item: T): void {
    const run = this.#runFor(item)
    if (run < 0) this.#stragglers.push(item)
    else this.#placed(item, slotOf(this.#runs[run]!.append(item), run))
  }

  peek(): T | undefined {
    let first = this.#runs[0]!.first()
    for (let run = 1; run < this.#runs.length; run += 1) first = this.#earlier(first, this.#runs[run]!.first())
    return this.#stragglers.size === 0 ? first : this.#earlier(first, this.#stragglers.peek())
  }

  /** Takes out the item at `slot`, as last given to `placed`. Its rank may have changed by then. */
  remove(item: T, slot: number): void {
    if (slot > NO_SLOT) {
      this.#placed(item, NO_SLOT)
      this.#runs[slot % MAX_RUNS]!.remove(Math.floor(slot / MAX_RUNS))
    } else if (slot < NO_SLOT) this.#stragglers.removeAt(-2 - slot)
  }

  /** The items in no particular order. */
  *values(): IterableIterator<T> {
    for (const run of this.#runs) yield* run.values()
    yield* this.#stragglers.values()
  }

  /** The run whose last item is the closest one before this item; -1: none. */
  #runFor(item: T): number {
    const runs = this.#runs
    let best = -1
    let bestLast: T | undefined
    for (let run = 0; run < runs.length; run += 1) {
      const last = runs[run]!.last()
      if (last === undefined) {
        // An empty run takes anything, but one that goes on is better.
        if (best < 0) best = run
      } else if (!this.#before(item, last) && (bestLast === undefined || this.#before(bestLast, last))) {
        best = run
        bestLast = last
      }
    }
    return best < 0 && runs.length < MAX_RUNS ? this.#addRun() : best
  }

  #addRun(): number {
    const run = this.#runs.length
    this.#runs.push(new SlotList((item, position) => this.#placed(item, slotOf(position, run))))
    return run
  }

  #earlier(a: T | undefined, b: T | undefined): T | undefined {
    if (a === undefined || b === undefined) return a ?? b
    return this.#before(b, a) ? b : a
  }
}

function slotOf(position: number, run: number): number {
  return position * MAX_RUNS + run
}
