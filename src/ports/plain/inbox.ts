import type { Settled } from '../ledger.js'
import type { PubSub } from '../ports.js'

/** What a message says, or nothing: others may share the channel. */
export function readMessage(message: string): Settled | undefined {
  const read = parsed(message)
  const text = (value: unknown) => (typeof value === 'string' ? [value] : [])
  const texts = (value: unknown) => (Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [])
  switch (read?.['kind']) {
    case 'done':
    // Not an end, but whoever runs it or waits for it should look: the holder then hears by its next heartbeat.
    case 'cancel':
      return said({ ids: text(read['id']), groups: [] })
    case 'group-done':
      return said({ ids: [], groups: text(read['groupId']) })
    case 'done-batch':
      return said({ ids: texts(read['ids']), groups: texts(read['groups']) })
    default:
      return undefined
  }
}

/** Hears what ended, by one subscription for the whole process, however many listen. */
export class Inbox {
  readonly #pubsub: PubSub
  readonly #onError: (error: unknown) => void
  readonly #hearers = new Set<(what: Settled) => void>()
  #leave: (() => void) | undefined

  constructor(pubsub: PubSub, onError: (error: unknown) => void) {
    this.#pubsub = pubsub
    this.#onError = onError
  }

  onInbox(hear: (what: Settled) => void): () => void {
    const own = (what: Settled) => hear(what)
    this.#hearers.add(own)
    this.#leave ??= this.#pubsub.subscribe((message) => this.#heard(message))
    return () => {
      if (!this.#hearers.delete(own) || this.#hearers.size > 0) return
      this.#leave?.()
      this.#leave = undefined
    }
  }

  #heard(message: string): void {
    const what = readMessage(message)
    if (what === undefined) return
    for (const hear of [...this.#hearers]) {
      try {
        hear(what)
      } catch (error) {
        this.#onError(error)
      }
    }
  }
}

const said = (what: Settled): Settled | undefined => (what.ids.length + what.groups.length > 0 ? what : undefined)

function parsed(message: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const read: unknown = JSON.parse(message)
    return typeof read === 'object' && read !== null ? (read as Readonly<Record<string, unknown>>) : undefined
  } catch {
    return undefined
  }
}
