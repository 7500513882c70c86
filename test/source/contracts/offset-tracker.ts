/** Which offsets of a partition are open: the position of a group is one number, and must not pass any of them. */
export class OffsetTracker {
  readonly #open = new Set<number>()
  #highest: number | undefined
  #doneAbove = new Set<number>()

  open(offset: number): void {
    this.#open.add(offset)
    this.#highest = Math.max(this.#highest ?? offset, offset)
  }

  done(offset: number): void {
    this.#open.delete(offset)
    this.#doneAbove.add(offset)
    const { position } = this
    for (const done of this.#doneAbove) if (position !== undefined && done < position) this.#doneAbove.delete(done)
  }

  /** The lowest open offset, or the one behind all that are done. Undefined: nothing was delivered yet. */
  get position(): number | undefined {
    if (this.#highest === undefined) return undefined
    return this.#open.size > 0 ? Math.min(...this.#open) : this.#highest + 1
  }

  /** How many are done behind an open one. */
  get doneAhead(): number {
    return this.#doneAbove.size
  }
}
