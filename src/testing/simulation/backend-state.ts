import { keysOf } from '../../backends/plain/keys.js'
import { overPlainPorts } from '../../backends/plain/over-plain-ports.js'
import type { Clock } from '../../core/time/clock.js'
import type { ItemView } from '../../ports/inspect.js'
import type { Ledger } from '../../ports/ledger.js'
import type { Backend } from '../../ports/ports.js'
import type { GroupValue } from '../../ports/settlement.js'
import type { QueueNames } from './queue-names.js'
import { type Ground, ownedOf, sharedQueue } from './remote-backend.js'

const PREFIX = 'work:'

/** The state of the shared backend, read directly: no wire in between, nothing lost. */
export class BackendState {
  readonly ledger: Ledger
  readonly #shared: Backend
  readonly #queues: QueueNames

  constructor(shared: Backend, ground: Ground, queues: QueueNames, clock: Clock) {
    this.#shared = shared
    this.#queues = queues
    this.ledger =
      ground === 'native'
        ? ownedOf(shared).open({ prefix: PREFIX })
        : overPlainPorts(shared, [], { prefix: PREFIX, clock }).ledger
  }

  /** Nothing is left to do: every item has ended; on plain ports, every queue is empty. */
  async isAtRest(): Promise<boolean> {
    const { inspect } = this.ledger
    if (inspect !== undefined) {
      const counted = await inspect.counts()
      return counted.every(({ counts: { waiting = 0, scheduled = 0, retrying = 0, blocked = 0, active = 0 } }) => {
        return waiting + scheduled + retrying + blocked + active === 0
      })
    }
    for (const name of this.#queues.used) if ((await sharedQueue(this.#shared, name).size?.()) !== 0) return false
    return true
  }

  /** Values and counts of groups. A ledger over plain ports shows a count below 0 as 0; here it is shown as it is. */
  async groups(ids: readonly string[]): Promise<readonly ((GroupValue & { readonly open: number }) | undefined)[]> {
    const groups = await this.ledger.groups(ids)
    if (this.ledger.atomic) return groups
    return Promise.all(
      groups.map(async (group, i) => {
        const open = await this.#shared.store.get(keysOf(PREFIX).open(ids[i]!))
        return group === undefined || open === undefined ? group : { ...group, open: Number(open) }
      }),
    )
  }

  /** Every item that exists, with its result; undefined where the backend cannot list. */
  async everything(): Promise<readonly ItemView[] | undefined> {
    const { inspect } = this.ledger
    if (inspect === undefined) return undefined
    const items: ItemView[] = []
    let cursor: string | undefined
    do {
      const page = await inspect.list({ limit: 1_000, ...(cursor === undefined ? {} : { cursor }) })
      const views = await this.ledger.read(page.items.map(({ envelope }) => envelope.id))
      items.push(...views.flatMap((view) => view ?? []))
      cursor = page.next
    } while (cursor !== undefined)
    return items
  }
}
