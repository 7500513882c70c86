import { type Bytes, bytesOfBody, bytesOfText } from '../items/bytes.js'

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
  readonly bytes: Bytes
}

/** The dead-letter sink of one queue: a live array that people read, bounded, the oldest leaving first. */
export class DeadLetters {
  /** The very array that is shown to people, in the order of burial. */
  readonly list: DeadLettered[] = []
  readonly #numbers = new Map<DeadLettered, { readonly no: number; readonly weight: number }>()
  readonly #options: DeadLetterOptions

  constructor(options: DeadLetterOptions) {
    this.#options = options
  }

  /** `text` is what it takes in memory, where its body is only made when it is read. */
  add(entry: DeadLettered, text?: string): void {
    const { queue, log, nextNo } = this.#options
    const no = nextNo()
    log?.buried(queue, no, entry)
    this.restore(no, entry, text)
    while (this.list.length > this.#options.max) this.evict(this.list[0]!)
  }

  /** An entry that is in the file already. */
  restore(no: number, entry: DeadLettered, text = entry.body): void {
    const weight = bytesOfBody(text) + bytesOfText(entry.error)
    this.list.push(entry)
    this.#numbers.set(entry, { no, weight })
    this.#options.bytes.stored += weight
  }

  /** False when it had gone before. */
  remove(entry: DeadLettered): boolean {
    const index = this.list.indexOf(entry)
    const kept = this.#numbers.get(entry)
    if (index < 0 || kept === undefined) return false
    this.list.splice(index, 1)
    this.#numbers.delete(entry)
    this.#options.bytes.stored -= kept.weight
    this.#options.log?.exhumed(kept.no, entry)
    return true
  }

  *numbered(): IterableIterator<readonly [no: number, entry: DeadLettered]> {
    for (const [entry, { no }] of this.#numbers) yield [no, entry]
  }

  /** It has to make room. */
  evict(entry: DeadLettered): void {
    if (!this.remove(entry)) return
    try {
      this.#options.onEvict?.(entry)
    } catch {
      // An observer must not undo what it observes: the entry has left, and the sink goes on.
    }
  }
}
