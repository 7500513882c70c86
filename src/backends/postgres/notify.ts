import type { At } from '../../core/time/time.js'
import type { PostgresDriver } from '../../drivers/postgres/index.js'
import type { Notification } from '../../ports/ledger.js'
import { Listeners } from '../shared/listeners.js'

type Entry = readonly [string, string | number | null]
interface Payload {
  readonly r?: readonly Entry[]
  readonly i?: readonly Entry[]
  readonly g?: readonly Entry[]
}

/** Delivers the notifications of commits from every process. The channel of the schema is listened to while there are listeners. */
export class Notifier {
  readonly #driver: PostgresDriver
  readonly #channel: string
  readonly #listeners = new Listeners(() => this.#listenOrLeave())
  /** Queues that are claimed from here: after a lost connection, all of them may have work. */
  readonly #served = new Set<string>()
  #leave: (() => void) | undefined

  constructor(driver: PostgresDriver, channel: string) {
    this.#driver = driver
    this.#channel = channel
  }

  serves(queue: string): void {
    this.#served.add(queue)
  }

  onReady(wake: (queue: string, dueAt?: At) => void): () => void {
    return this.#listeners.onReady(wake)
  }

  onInbox(inbox: string, onNotification: (what: Notification) => void): () => void {
    return this.#listeners.onInbox(inbox, onNotification)
  }

  #listenOrLeave(): void {
    if (this.#listeners.size === 0) {
      this.#leave?.()
      this.#leave = undefined
      return
    }
    this.#leave ??= this.#driver.listen(
      this.#channel,
      (payload) => this.#deliver(payload),
      () => {
        for (const queue of this.#served) this.#listeners.wake(queue)
      },
    )
  }

  #deliver(text: string): void {
    const { r = [], i = [], g = [] } = readPayload(text)
    for (const [queue, due] of r) this.#listeners.wake(queue, due === null ? undefined : Number(due))
    const inboxes = new Map<string, { itemIds: string[]; groupIds: string[] }>()
    const add = (ids: 'itemIds' | 'groupIds', [inbox, id]: Entry): void => {
      if (!this.#listeners.hasInbox(inbox)) return
      const what = inboxes.get(inbox) ?? { itemIds: [], groupIds: [] }
      inboxes.set(inbox, what)
      what[ids].push(String(id))
    }
    for (const entry of i) add('itemIds', entry)
    for (const entry of g) add('groupIds', entry)
    for (const [inbox, what] of inboxes) this.#listeners.notify(inbox, what)
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
    // Another program's notification on our channel.
    return {}
  }
}
