/** First in, first out, at a constant cost however long it gets. */
export class Fifo<T> {
  #items: T[] = []
  #head = 0

  get size(): number {
    return this.#items.length - this.#head
  }

  peek(): T | undefined {
    return this.#items[this.#head]
  }

  push(item: T): void {
    this.#items.push(item)
  }

  shift(): T | undefined {
    const item = this.#items[this.#head]
    if (this.#head === this.#items.length) return undefined
    this.#items[this.#head] = undefined as T // Never read again: it only must not be kept alive.
    this.#head += 1
    this.#tidy()
    return item
  }

  /** Takes at most `max` out. */
  take(max: number): T[] {
    const taken = this.#items.slice(this.#head, this.#head + max)
    this.#items.fill(undefined as T, this.#head, this.#head + taken.length)
    this.#head += taken.length
    this.#tidy()
    return taken
  }

  /** Takes out whatever `isWanted` says, and keeps the order of the rest. */
  pick(isWanted: (item: T) => boolean): T[] {
    const all = this.take(this.size)
    this.#items = all.filter((item) => !isWanted(item))
    this.#head = 0
    return all.filter(isWanted)
  }

  #tidy(): void {
    if (this.#head === this.#items.length) {
      this.#items.length = 0
      this.#head = 0
    } else if (this.#head >= 1_024 && this.#head * 2 >= this.#items.length) {
      // Moved rarely enough that each item is moved at most once on average.
      this.#items.splice(0, this.#head)
      this.#head = 0
    }
  }
}
