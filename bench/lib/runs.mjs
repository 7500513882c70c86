/** Which items have run, by their numbers, and whether one ran twice. */
export class Runs {
  #seen = new Uint8Array(1_024)
  count = 0
  secondRuns = 0
  /** When the last one ran. */
  lastAt = performance.now()
  /** @type {number[]} */
  #latencies = []
  #expected = Number.POSITIVE_INFINITY
  #reached = () => {}

  /** @param {number} n */
  ran(n) {
    if (n >= this.#seen.length) {
      const larger = new Uint8Array(2 * (n + 1))
      larger.set(this.#seen)
      this.#seen = larger
    }
    this.count += 1
    if (this.#seen[n] === 1) this.secondRuns += 1
    this.#seen[n] = 1
    if (this.count >= this.#expected) this.#reached()
  }

  /**
   * How many runs there shall have been, from the beginning.
   * @param {number} count
   */
  expect(count) {
    this.#expected = count
    this.lastAt = performance.now()
  }

  /**
   * Resolves when there were that many; rejects when none has been added for so long.
   * @param {number} stallMs
   * @returns {Promise<void>}
   */
  reached(stallMs) {
    if (this.count >= this.#expected) return Promise.resolve()
    return new Promise((resolve, reject) => {
      let before = -1
      const watch = setInterval(() => {
        if (this.count === before) {
          clearInterval(watch)
          reject(
            new Error(
              `${this.#expected - this.count} of ${this.#expected} items were lost: nothing ran for ${stallMs} ms`,
            ),
          )
        }
        before = this.count
      }, stallMs)
      this.#reached = () => {
        this.lastAt = performance.now()
        clearInterval(watch)
        resolve()
      }
    })
  }

  /** @param {number} ms */
  startedAfter(ms) {
    this.#latencies.push(ms)
  }

  takeLatencies() {
    const latencies = this.#latencies
    this.#latencies = []
    return latencies
  }
}
