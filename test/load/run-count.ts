/** How often each item was run, counted by the handlers themselves. Items are numbers from 0. */
export class RunCount {
  #starts = new Uint8Array(1_024)
  #ends = new Uint8Array(1_024)
  #marks: { readonly at: number; readonly reached: () => void }[] = []
  started = 0
  ended = 0
  secondRuns = 0
  mostAtOnce = 0

  start(n: number): void {
    if (n >= this.#starts.length) this.#grow(n)
    if (this.#starts[n]! > 0) this.secondRuns += 1
    if (this.#starts[n]! < 255) this.#starts[n]! += 1
    this.started += 1
    this.mostAtOnce = Math.max(this.mostAtOnce, this.started - this.ended)
    if (this.#marks.length > 0) this.#resolveMarks()
  }

  end(n: number): void {
    this.#ends[n] = 1
    this.ended += 1
  }

  hasEnded(n: number): boolean {
    return this.#ends[n] === 1
  }

  /** Resolves when that many runs have begun. */
  mark(at: number): Promise<void> {
    return new Promise((reached) => {
      this.#marks.push({ at, reached })
      this.#resolveMarks()
    })
  }

  #resolveMarks(): void {
    for (const { reached } of this.#marks.filter(({ at }) => at <= this.started)) reached()
    this.#marks = this.#marks.filter(({ at }) => at > this.started)
  }

  #grow(n: number): void {
    const larger = (old: Uint8Array) => {
      const grown = new Uint8Array(2 ** Math.ceil(Math.log2(n + 1)))
      grown.set(old)
      return grown
    }
    this.#starts = larger(this.#starts)
    this.#ends = larger(this.#ends)
  }
}
