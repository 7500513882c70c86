import type { At } from '../../../core/time/time.js'
import type { DeadLetter } from '../../../ports/ports.js'
import { type Bytes, bytesOfBody, bytesOfText } from '../items/bytes.js'

/** A body that was given up, and why. */
export interface DeadLettered {
  readonly body: string
  readonly error: string
}

/** What is known of a letter beyond its body and its error. */
export interface LetterFacts {
  readonly id: string
  readonly at: At
  readonly detail?: string | undefined
}

/** What a sink writes down of its changes, when its queue has a file. */
export interface DeadLog {
  buried(queue: string, no: number, entry: DeadLettered, letter?: LetterFacts): void
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

interface Kept {
  readonly no: number
  readonly weight: number
  readonly letter: LetterFacts | undefined
}

/** The dead-letter sink of one queue: a live array that people read, bounded, the oldest leaving first. */
export class DeadLetters {
  /** The very array that is shown to people, in the order of burial. */
  readonly list: DeadLettered[] = []
  readonly #numbers = new Map<DeadLettered, Kept>()
  /** Those that were dead-lettered through the plain port. Items that died are listed by the ledger. */
  readonly #letters = new Map<string, DeadLettered>()
  readonly #options: DeadLetterOptions

  constructor(options: DeadLetterOptions) {
    this.#options = options
  }

  /** `text` is what it takes in memory, where its body is only made when it is read. */
  add(entry: DeadLettered, text?: string, letter?: LetterFacts): void {
    const { queue, log, nextNo } = this.#options
    const known = letter && this.#letters.get(letter.id)
    if (known !== undefined) this.remove(known)
    const no = nextNo()
    log?.buried(queue, no, entry, letter)
    this.restore(no, entry, text, letter)
    while (this.list.length > this.#options.max) this.evict(this.list[0]!)
  }

  /** An entry that is in the file already. */
  restore(no: number, entry: DeadLettered, text = entry.body, letter?: LetterFacts): void {
    const weight = bytesOfBody(text) + bytesOfText(entry.error) + bytesOfText(letter?.detail ?? '')
    this.list.push(entry)
    this.#numbers.set(entry, { no, weight, letter })
    if (letter !== undefined) this.#letters.set(letter.id, entry)
    this.#options.bytes.stored += weight
  }

  /** False when it had gone before. */
  remove(entry: DeadLettered): boolean {
    const index = this.list.indexOf(entry)
    const kept = this.#numbers.get(entry)
    if (index < 0 || kept === undefined) return false
    this.list.splice(index, 1)
    this.#numbers.delete(entry)
    if (kept.letter !== undefined) this.#letters.delete(kept.letter.id)
    this.#options.bytes.stored -= kept.weight
    this.#options.log?.exhumed(kept.no, entry)
    return true
  }

  *numbered(): IterableIterator<readonly [no: number, entry: DeadLettered, letter: LetterFacts | undefined]> {
    for (const [entry, { no, letter }] of this.#numbers) yield [no, entry, letter]
  }

  get letterCount(): number {
    return this.#letters.size
  }

  /** The letters behind a cursor, in the order of burial. */
  letters(after: number, limit: number): DeadLetter[] {
    const found: DeadLetter[] = []
    for (const [{ body, error }, { no, letter }] of this.#numbers) {
      if (found.length >= limit) break
      if (letter !== undefined && no > after) found.push({ ...letter, body, error, cursor: String(no) })
    }
    return found
  }

  /** The entry of a letter, if it is still the one that was listed. */
  entryOf({ id, cursor }: DeadLetter): DeadLettered | undefined {
    const entry = this.#letters.get(id)
    return entry !== undefined && String(this.#numbers.get(entry)?.no) === cursor ? entry : undefined
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
