import type { PulledWork } from '../../ports/ports.js'

/** What a pop hands out. What the seed's contract does not know is not enumerable: the prototype has it. */
export class PulledMessage implements PulledWork {
  readonly body: string
  readonly handle: unknown
  readonly attempt: number
  readonly #id: string
  readonly #starts: number
  readonly #note: string | undefined

  constructor(lease: PulledWork, message: { id: string; starts: number; note: string | undefined }) {
    this.body = lease.body
    this.handle = lease.handle
    this.attempt = lease.attempt
    this.#id = message.id
    this.#starts = message.starts
    this.#note = message.note
  }

  get id(): string {
    return this.#id
  }

  get starts(): number {
    return this.#starts
  }

  get note(): string | undefined {
    return this.#note
  }
}
