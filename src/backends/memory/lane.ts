import { Heap } from '../../core/heap.js'
import { Fifo } from './fifo.js'

/** The slot of an item that stands in no lane. */
export const NO_SLOT = -1

/**
 * A sorted list that is nearly always added to at its end: due times, lease ends and expiry rise with time. Such an item
 * costs O(1) to add, to take and to remove from the middle; one that belongs further forward goes through a heap and costs
 * O(log n). `placed` tells an item its slot, which is how it is removed again.
 */
export class Lane<T> {
  readonly #before: (a: T, b: T) => boolean
  readonly #placed: (item: T, slot: number) => void
  readonly #inOrder: Fifo<T>
  readonly #stragglers: Heap<T>

  constructor(before: (a: T, b: T) => boolean, placed: (item: T, slot: number) => void) {
    this.#before = before
    this.#placed = placed
    this.#inOrder = new Fifo(placed)
    // Slots below NO_SLOT are indexes of the heap. It says -1 for "left", which is NO_SLOT's own mark.
    this.#stragglers = new Heap(before, (item, index) => placed(item, index < 0 ? NO_SLOT : -2 - index))
  }

  get size(): number {
    return this.#inOrder.size + this.#stragglers.size
  }

  add(item: T): void {
    const last = this.#inOrder.last()
    if (last === undefined || !this.#before(item, last)) this.#placed(item, this.#inOrder.append(item))
    else this.#stragglers.push(item)
  }

  peek(): T | undefined {
    const first = this.#inOrder.first()
    if (this.#stragglers.size === 0) return first
    const straggler = this.#stragglers.peek()
    if (first === undefined || straggler === undefined) return first ?? straggler
    return this.#before(straggler, first) ? straggler : first
  }

  /** Takes out the item at `slot`, as last told to `placed`. Its rank may have changed by then. */
  remove(item: T, slot: number): void {
    if (slot > NO_SLOT) {
      this.#placed(item, NO_SLOT)
      this.#inOrder.remove(slot)
    } else if (slot < NO_SLOT) this.#stragglers.removeAt(-2 - slot)
  }

  /** The items in no particular order. */
  *values(): IterableIterator<T> {
    yield* this.#inOrder.values()
    yield* this.#stragglers.values()
  }
}
