/** A body that was given up, and why. */
export interface DeadLettered {
  readonly body: string
  readonly error: string
}

/** What a sink writes down of its changes, when its queue has a file. */
export interface DeadLog {
  buried(queue: string, no: number, entry: DeadLettered): void
  exhumed(no: number, entry: DeadLettered): void
}

export interface DeadLetterOptions {
  readonly queue: string
  readonly max: number
  readonly onEvict: ((entry: DeadLettered) => void) | undefined
  readonly nextNo: () => number
  readonly log: DeadLog | undefined
}

/** The dead-letter sink of one queue: a live array that people read, bounded, the oldest leaving first. */
export class DeadLetters {
  /** The very array that is shown to people, in the order of burial. */
  readonly list: DeadLettered[] = []
  readonly #numbers = new Map<DeadLettered, number>()
  readonly #options: DeadLetterOptions

  constructor(options: DeadLetterOptions) {
    this.#options = options
  }

  add(entry: DeadLettered): void {
    const { queue, log, nextNo } = this.#options
    const no = nextNo()
    log?.buried(queue, no, entry)
    this.restore(no, entry)
    this.#evict()
  }

  /** An entry that is in the file already. */
  restore(no: number, entry: DeadLettered): void {
    this.list.push(entry)
    this.#numbers.set(entry, no)
  }

  /** False when it had gone before. */
  remove(entry: DeadLettered): boolean {
    const index = this.list.indexOf(entry)
    const no = this.#numbers.get(entry)
    if (index < 0 || no === undefined) return false
    this.list.splice(index, 1)
    this.#numbers.delete(entry)
    this.#options.log?.exhumed(no, entry)
    return true
  }

  *numbered(): IterableIterator<readonly [no: number, entry: DeadLettered]> {
    for (const [entry, no] of this.#numbers) yield [no, entry]
  }

  #evict(): void {
    while (this.list.length > this.#options.max) {
      const oldest = this.list[0]!
      this.remove(oldest)
      try {
        this.#options.onEvict?.(oldest)
      } catch {
        // An observer must not undo what it observes: the entry has left, and the sink goes on.
      }
    }
  }
}
