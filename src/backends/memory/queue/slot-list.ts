/** Below this many slots nothing is moved: closing gaps would cost more than it saves. */
const SMALL = 64

/**
 * A first-in-first-out list whose items can leave from anywhere in O(1): an item keeps the position it was given at `append`
 * and is removed by it. Gaps are closed when they outnumber the items; `moved` then gives every item its new position.
 */
export class SlotList<T> {
  #slots: (T | undefined)[] = []
  /** Everything before this index has left. */
  #head = 0
  /** The position of index 0. */
  #base = 0
  #live = 0
  readonly #moved: (item: T, position: number) => void

  constructor(moved: (item: T, position: number) => void) {
    this.#moved = moved
  }

  get size(): number {
    return this.#live
  }

  /** Adds at the end; returns the item's position. */
  append(item: T): number {
    this.#live += 1
    return this.#base + this.#slots.push(item) - 1
  }

  remove(position: number): void {
    this.#slots[position - this.#base] = undefined
    this.#live -= 1
    const gaps = this.#slots.length - this.#live
    if (gaps > SMALL && gaps > this.#live) this.#close()
  }

  first(): T | undefined {
    const slots = this.#slots
    while (this.#head < slots.length) {
      const item = slots[this.#head]
      if (item !== undefined) return item
      this.#head += 1
    }
    return undefined
  }

  last(): T | undefined {
    const slots = this.#slots
    while (slots.length > this.#head) {
      const item = slots[slots.length - 1]
      if (item !== undefined) return item
      slots.pop()
    }
    return undefined
  }

  *values(): IterableIterator<T> {
    for (const item of this.#slots) if (item !== undefined) yield item
  }

  /**
   * The items from the last to the first, beginning with the last one for which `isPast` is false. `isPast` must be false
   * for a first part of the list and true for the rest: the beginning is found by halving.
   */
  *backwards(isPast: (item: T) => boolean): IterableIterator<T> {
    const slots = this.#slots
    let low = this.#head
    let high = slots.length
    while (low < high) {
      const middle = (low + high) >> 1
      let probe = middle
      while (probe > low && slots[probe] === undefined) probe -= 1
      const item = slots[probe]
      if (item !== undefined && isPast(item)) high = probe
      else low = middle + 1
    }
    for (let index = high - 1; index >= 0; index -= 1) {
      const item = slots[index]
      if (item !== undefined) yield item
    }
  }

  #close(): void {
    const kept: T[] = []
    for (const item of this.#slots) if (item !== undefined) kept.push(item)
    this.#slots = kept
    this.#head = 0
    this.#base = 0
    for (let index = 0; index < kept.length; index += 1) this.#moved(kept[index]!, index)
  }
}
