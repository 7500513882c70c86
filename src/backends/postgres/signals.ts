import type { At } from '../../core/time.js'
import type { PostgresDriver } from '../../drivers/postgres/index.js'
import type { Settled } from '../../ports/ledger.js'

type Wake = (queue: string, dueAt?: At) => void
type Hear = (what: Settled) => void

type Entry = readonly [string, string | number | null]
interface Payload {
  readonly r?: readonly Entry[]
  readonly i?: readonly Entry[]
  readonly g?: readonly Entry[]
}

/**
 * What commits make known, from every process, over the one channel of a schema. The channel is listened to while somebody
 * wants to know.
 */
export class Signals {
  readonly #driver: PostgresDriver
  readonly #channel: string
  readonly #wakes = new Set<{ readonly wake: Wake }>()
  readonly #inboxes = new Map<string, Set<{ readonly hear: Hear }>>()
  /** Queues that somebody serves here: after a gap in hearing, all of them may have work. */
  readonly #served = new Set<string>()
  #leave: (() => void) | undefined

  constructor(driver: PostgresDriver, channel: string) {
    this.#driver = driver
    this.#channel = channel
  }

  serves(queue: string): void {
    this.#served.add(queue)
  }

  onReady(wake: Wake): () => void {
    const one = { wake }
    this.#wakes.add(one)
    this.#listen()
    return () => {
      this.#wakes.delete(one)
      this.#leaveIfIdle()
    }
  }

  onInbox(inbox: string, hear: Hear): () => void {
    const one = { hear }
    const known = this.#inboxes.get(inbox)
    if (known === undefined) this.#inboxes.set(inbox, new Set([one]))
    else known.add(one)
    this.#listen()
    return () => {
      const listeners = this.#inboxes.get(inbox)
      if (listeners?.delete(one) !== true) return
      if (listeners.size === 0) this.#inboxes.delete(inbox)
      this.#leaveIfIdle()
    }
  }

  #listen(): void {
    this.#leave ??= this.#driver.listen(
      this.#channel,
      (payload) => this.#heard(payload),
      () => {
        for (const queue of this.#served) this.#wake(queue, undefined)
      },
    )
  }

  #leaveIfIdle(): void {
    if (this.#wakes.size > 0 || this.#inboxes.size > 0) return
    this.#leave?.()
    this.#leave = undefined
  }

  #heard(text: string): void {
    const payload = readPayload(text)
    for (const [queue, due] of payload.r ?? []) this.#wake(queue, due === null ? undefined : Number(due))
    const told = new Map<string, { ids: string[]; groups: string[] }>()
    const box = (inbox: string) => {
      const known = told.get(inbox)
      if (known !== undefined) return known
      const made = { ids: [], groups: [] }
      told.set(inbox, made)
      return made
    }
    for (const [inbox, id] of payload.i ?? []) if (this.#inboxes.has(inbox)) box(inbox).ids.push(String(id))
    for (const [inbox, id] of payload.g ?? []) if (this.#inboxes.has(inbox)) box(inbox).groups.push(String(id))
    for (const [inbox, what] of told) {
      for (const { hear } of [...(this.#inboxes.get(inbox) ?? [])]) quietly(() => hear(what))
    }
  }

  #wake(queue: string, dueAt: At | undefined): void {
    for (const { wake } of [...this.#wakes]) quietly(() => (dueAt === undefined ? wake(queue) : wake(queue, dueAt)))
  }
}

/** One object, or, where it was too long for one notification, a list of entries with their kinds. */
function readPayload(text: string): Payload {
  try {
    const read = JSON.parse(text) as Payload | readonly ['r' | 'i' | 'g', Entry][]
    if (!Array.isArray(read)) return read as Payload
    const payload: { r: Entry[]; i: Entry[]; g: Entry[] } = { r: [], i: [], g: [] }
    for (const [kind, entry] of read as readonly ['r' | 'i' | 'g', Entry][]) payload[kind].push(entry)
    return payload
  } catch {
    // Somebody else's notification on our channel.
    return {}
  }
}

function quietly(tell: () => void): void {
  try {
    tell()
  } catch {
    // What it was told stays true; whoever threw has only missed it, and reads again at its next poll.
  }
}
