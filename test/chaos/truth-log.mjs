// The ledger of truth: lines that are on disk before anybody goes on. It knows nothing of Millrace.
import { closeSync, fdatasync, openSync, readFileSync, write } from 'node:fs'
import { promisify } from 'node:util'

const writeTo = promisify(
  /** @type {(fd: number, text: string, done: (error: Error | null) => void) => void} */ (write),
)
const sync = promisify(fdatasync)

/** One file of one process. Lines that are added while others are being flushed share the next flush. */
export class TruthLog {
  #fd
  /** @type {string[]} */
  #waiting = []
  /** @type {Promise<void> | undefined} */
  #flushing

  /** @param {string} file */
  constructor(file) {
    this.#fd = openSync(file, 'a')
  }

  /**
   * Resolves when the line is on disk.
   * @param {Record<string, unknown>} line
   * @returns {Promise<void>}
   */
  async write(line) {
    this.#waiting.push(`${JSON.stringify(line)}\n`)
    // A flush that is under way may have begun before this line came: the next one has it for certain.
    await this.#flushing
    if (this.#waiting.length > 0) this.#flushing = this.#flush()
    await this.#flushing
  }

  close() {
    closeSync(this.#fd)
  }

  async #flush() {
    const lines = this.#waiting.splice(0)
    await writeTo(this.#fd, lines.join(''))
    await sync(this.#fd)
  }
}

/**
 * The lines of a file. The last one may have been cut off by a kill, and then nothing relied on it.
 * @param {string} file
 * @returns {Record<string, unknown>[]}
 */
export function readTruth(file) {
  const lines = readFileSync(file, 'utf8').split('\n')
  lines.pop()
  return lines.map((line) => JSON.parse(line))
}
