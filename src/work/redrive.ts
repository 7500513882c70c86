import type { At, Ms } from '../core/time.js'
import { readEnvelope } from '../ports/envelope.js'
import type { Envelope } from '../ports/item.js'
import type { ItemView } from '../ports/ledger.js'
import type { PulledWork, Queue } from '../ports/ports.js'
import type { CommitResult, Settlement } from '../ports/settlement.js'
import { act } from './act.js'
import type { Retention } from './settle.js'
import { submit } from './submit.js'

const HOUR_MS = 3_600_000
const FIRST_WAIT_MS = 1_000

export interface RedriveOptions {
  readonly dlq: Queue
  readonly count: number
  readonly maxRedrives: number
  readonly visibility: Ms
  readonly now: () => At
  readonly keep: Retention
  readonly queueOf: (type: string) => string
  /** The item as the ledger remembers it, where it does. */
  readonly read: (id: string) => Promise<ItemView | undefined>
  readonly commit: (settlement: Settlement) => Promise<CommitResult>
  readonly queued: (item: Envelope) => void
  readonly onError: (error: unknown) => void
}

/**
 * Feeds dead letters back when there is nothing else to do: each with a longer wait than the last time and at most
 * `maxRedrives` times, so that an item which cannot succeed does not spin.
 */
export class Redrive {
  readonly #o: RedriveOptions

  constructor(options: RedriveOptions) {
    this.#o = options
  }

  /** One round; true if it put anything back to work. */
  async round(): Promise<boolean> {
    if (this.#o.count === 0) return false
    try {
      const pulled = await this.#o.dlq.pop(this.#o.count, this.#o.visibility)
      const moved = await Promise.all(pulled.map((p) => this.#move(p)))
      return moved.includes(true)
    } catch (error) {
      this.#o.onError(error)
      return false
    }
  }

  async #move(pulled: PulledWork): Promise<boolean> {
    const { dlq, maxRedrives } = this.#o
    try {
      const dead = readEnvelope(pulled.body)
      if (dead === undefined) {
        await dlq.ack(pulled)
        return false
      }
      const redrives = dead.redrives ?? 0
      if (redrives >= maxRedrives) {
        await dlq.fail(pulled, HOUR_MS)
        return false
      }
      const item = renewed(dead, redrives, this.#o.now())
      const result = await this.#o.commit(await this.#settlement(item))
      if (result.kind !== 'applied' && result.kind !== 'repeated') {
        throw result.kind === 'failed' ? result.error : new Error(`redrive of ${item.id} was ${result.kind}`)
      }
      await dlq.ack(pulled)
      if (result.kind === 'applied') this.#o.queued(item)
      return result.kind === 'applied'
    } catch (error) {
      this.#o.onError(error)
      return false
    }
  }

  async #settlement(item: Envelope): Promise<Settlement> {
    const view = await this.#o.read(item.id)
    const { now, queueOf, keep } = this.#o
    const delayMs = Math.max(0, item.startAt - now())
    const reopened =
      view === undefined ? undefined : act(view, 'redrive', { who: 'dlq', why: 'fed back', keep, delayMs })
    return reopened ?? submit(item, queueOf(item.type), now())
  }
}

/** The dead item as a new one: the same id and group, its first attempt, and no deadline that has already passed. */
function renewed(dead: Envelope, redrives: number, now: At): Envelope {
  const startAt = now + (redrives === 0 ? 0 : Math.min(HOUR_MS, FIRST_WAIT_MS * 2 ** redrives))
  const { deadline, ...rest } = dead
  return {
    ...rest,
    attempt: 1,
    queueAt: now,
    startAt,
    redrives: redrives + 1,
    ...(deadline === undefined || deadline <= now ? {} : { deadline }),
  } as Envelope // Spreading keeps the unknown fields; the required ones are all in `rest`.
}
