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
  /** The ledger keeps the payloads of dead items, so that they can be reopened in place. */
  readonly canReopen: boolean
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

  /** One round over at most `count` of them. */
  async round(): Promise<void> {
    try {
      const pulled = await this.#o.dlq.pop(this.#o.count, this.#o.visibility)
      await Promise.all(pulled.map((p) => this.#move(p)))
    } catch (error) {
      this.#o.onError(error)
    }
  }

  async #move(pulled: PulledWork): Promise<void> {
    const { dlq, maxRedrives } = this.#o
    try {
      const dead = readEnvelope(pulled.body)
      if (dead === undefined) {
        await dlq.ack(pulled)
        return
      }
      const redrives = dead.redrives ?? 0
      const view = await this.#o.read(dead.id)
      // Only what ran out of attempts may do better another time: what was aborted, expired or cancelled is a person's.
      const isHopeless = view?.status === 'dead' && view.ending !== undefined && view.ending !== 'exhausted'
      if (redrives >= maxRedrives || isHopeless) {
        await dlq.fail(pulled, HOUR_MS)
        return
      }
      const item = renewed(dead, redrives, this.#o.now())
      const result = await this.#o.commit(this.#settlement(item, view))
      if (result.kind !== 'applied' && result.kind !== 'repeated') {
        throw result.kind === 'failed' ? result.error : new Error(`redrive of ${item.id} was ${result.kind}`)
      }
      await dlq.ack(pulled)
      if (result.kind === 'applied') this.#o.queued(item)
    } catch (error) {
      this.#o.onError(error)
    }
  }

  #settlement(item: Envelope, view: ItemView | undefined): Settlement {
    const { now, queueOf, keep, canReopen } = this.#o
    const delayMs = Math.max(0, item.startAt - now())
    const reopened =
      view === undefined || !canReopen
        ? undefined
        : act(view, 'redrive', { who: 'dlq', why: 'fed back', keep, delayMs })
    return reopened ?? submit(item, queueOf(item.type), now())
  }
}

/** The dead item as a new one: the same id and group, its first attempt, and no deadline that has already passed. */
function renewed(dead: Envelope, redrives: number, now: At): Envelope {
  const startAt = now + Math.min(HOUR_MS, FIRST_WAIT_MS * 2 ** redrives)
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
