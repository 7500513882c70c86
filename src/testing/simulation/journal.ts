import type { Ms } from '../../core/time/time.js'

/** How many lines are kept: a failing seed is read from its end. */
const KEPT = 20_000

/** What happened in a world, line by line, and a fingerprint of all of it: two runs of one seed have the same. */
export class Journal {
  readonly #now: () => Ms
  #lines: string[] = []
  #high = 0x811c9dc5
  #low = 0x9747b28c

  constructor(now: () => Ms) {
    this.#now = now
  }

  /** `isDull`: part of the fingerprint, but not worth reading. */
  write(who: string, what: string, isDull = false): void {
    const line = `${this.#now().toFixed(0).padStart(8)} ms  ${who.padEnd(6)} ${what}`
    this.#hash(line)
    if (isDull) return
    this.#lines.push(line)
    if (this.#lines.length >= 2 * KEPT) this.#lines = this.#lines.slice(-KEPT)
  }

  get lines(): readonly string[] {
    return this.#lines.slice(-KEPT)
  }

  get fingerprint(): string {
    return hex(this.#high) + hex(this.#low)
  }

  #hash(line: string): void {
    let high = this.#high
    let low = this.#low
    for (let i = 0; i < line.length; i += 1) {
      const unit = line.charCodeAt(i)
      high = Math.imul(high ^ unit, 0x01000193)
      low = Math.imul(low ^ unit, 0x5bd1e995) ^ (low >>> 15)
    }
    this.#high = high
    this.#low = low
  }
}

function hex(bits: number): string {
  return (bits >>> 0).toString(16).padStart(8, '0')
}
