/**
 * A binary heap: the first item by `before` on top. Push and pop are O(log n), peek is O(1).
 *
 * With `placed`, the heap passes every item its index (−1: no longer inside), so that an item that knows its own
 * index can be removed, or moved after its rank changed, in O(log n) without a search.
 */
export class Heap<T> {
  readonly #items: T[] = []
  readonly #before: (a: T, b: T) => boolean
  readonly #placed: ((item: T, index: number) => void) | undefined

  constructor(before: (a: T, b: T) => boolean, placed?: (item: T, index: number) => void) {
    this.#before = before
    this.#placed = placed
  }

  get size(): number {
    return this.#items.length
  }

  peek(): T | undefined {
    return this.#items[0]
  }

  push(item: T): void {
    this.#items.push(item)
    this.#rise(this.#items.length - 1, item)
  }

  pop(): T | undefined {
    return this.#items.length === 0 ? undefined : this.removeAt(0)
  }

  /** Takes out the item at `index`, as last passed to `placed`. */
  removeAt(index: number): T {
    const items = this.#items
    const gone = this.#at(index)
    const last = items.pop()!
    if (last !== gone) this.#settle(index, last)
    this.#placed?.(gone, -1)
    return gone
  }

  /** Restores the order after the rank of the item at `index` changed. */
  moved(index: number): void {
    this.#settle(index, this.#at(index))
  }

  /** The items in no particular order: for walks over all of them, never on a hot path. */
  values(): readonly T[] {
    return this.#items
  }

  // An index of −1 is an item that is no longer inside; taken for a place, it would cost another item its own.
  #at(index: number): T {
    if (!(index in this.#items)) throw new RangeError(`the heap has no item at ${index}; its size is ${this.size}`)
    return this.#items[index]!
  }

  #settle(index: number, item: T): void {
    const parent = this.#items[(index - 1) >> 1]
    if (index > 0 && this.#before(item, parent!)) this.#rise(index, item)
    else this.#sink(index, item)
  }

  #rise(from: number, item: T): void {
    const items = this.#items
    let index = from
    while (index > 0) {
      const up = (index - 1) >> 1
      const parent = items[up]!
      if (!this.#before(item, parent)) break
      items[index] = parent
      this.#placed?.(parent, index)
      index = up
    }
    items[index] = item
    this.#placed?.(item, index)
  }

  #sink(from: number, item: T): void {
    const items = this.#items
    const size = items.length
    let index = from
    for (;;) {
      let down = 2 * index + 1
      if (down >= size) break
      if (down + 1 < size && this.#before(items[down + 1]!, items[down]!)) down += 1
      const child = items[down]!
      if (!this.#before(child, item)) break
      items[index] = child
      this.#placed?.(child, index)
      index = down
    }
    items[index] = item
    this.#placed?.(item, index)
  }
}
