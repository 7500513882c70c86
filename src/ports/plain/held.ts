import type { At, Ms } from '../../core/time.js'
import type { Envelope, Lease } from '../item.js'
import type { PulledWork } from '../ports.js'
import type { PlainQueue } from './plain-queue.js'
import { Progress } from './progress.js'
import type { StoredState } from './state.js'

/** One lease of one item in this process, from the claim to its end. */
export interface Held {
  readonly lease: Lease
  readonly envelope: Envelope
  /** As it was delivered: unknown fields, and the spelling of known ones, survive. */
  readonly body: string
  readonly queue: PlainQueue
  /** Undefined for an item that was born leased: nothing of it stands in the queue. */
  readonly pulled: PulledWork | undefined
  readonly worker: string
  readonly crashes: number
  /** The state that was stored when it was claimed. */
  readonly state: StoredState | undefined
  readonly progress: Progress
  /** When its run began, if it did. */
  runAt: At | undefined
  /** Monotonic time at which the lease was last known to be ours, and how long it lasts from there. */
  heardMs: Ms
  leaseMs: Ms
  /** Monotonic time of the last look at who runs the item. */
  lookedMs: Ms
  /** The writing of its start, which must be over before anything else is written about it. */
  begun: Promise<void> | undefined
  /** `run:<id>` carries our token. */
  isMarked: boolean
  /** `idle:<id>` says that its handler no longer runs. */
  isIdle: boolean
  /** The outcome that stands in the store: from now on it may be completed by anybody, and undone by nobody. */
  decided: 'finish' | 'park' | 'retryAt' | undefined
}

/** What a lease begins without. */
type Later = 'progress' | 'lookedMs' | 'runAt' | 'begun' | 'isMarked' | 'isIdle' | 'decided'

export function held(given: Omit<Held, Later>): Held {
  const nothing = {
    lookedMs: 0,
    runAt: undefined,
    begun: undefined,
    isMarked: false,
    isIdle: false,
    decided: undefined,
  }
  return { ...given, ...nothing, progress: new Progress() }
}

const MAX_FINISHED = 10_000

/** The leases of this process, by token and by item. */
export class HeldTable {
  readonly #byToken = new Map<string, Held>()
  readonly #byId = new Map<string, Held>()
  /** Tokens that settled: a commit repeated after its reply was lost is told apart from a stale one by them. */
  readonly #finished = new Set<string>()

  /** A lease of the same item that has run out is over with this. */
  add(one: Held): void {
    const last = this.#byId.get(one.lease.id)
    if (last !== undefined) this.drop(last)
    this.#byToken.set(one.lease.token, one)
    this.#byId.set(one.lease.id, one)
  }

  find(lease: Lease): Held | undefined {
    const found = this.#byToken.get(lease.token)
    return found?.lease.id === lease.id ? found : undefined
  }

  /** Who holds the item here, if the lease can still be ours. */
  holderOf(id: string, nowMs: Ms): Held | undefined {
    const found = this.#byId.get(id)
    return found !== undefined && nowMs - found.heardMs < found.leaseMs ? found : undefined
  }

  hasFinished(lease: Lease): boolean {
    return this.#finished.has(`${lease.id} ${lease.token}`)
  }

  /** The lease ended by a settlement. */
  finish(one: Held): void {
    this.drop(one)
    this.#finished.add(`${one.lease.id} ${one.lease.token}`)
    const [oldest] = this.#finished
    if (this.#finished.size > MAX_FINISHED && oldest !== undefined) this.#finished.delete(oldest)
  }

  /** The lease was lost. */
  drop(one: Held): void {
    this.#byToken.delete(one.lease.token)
    if (this.#byId.get(one.lease.id) === one) this.#byId.delete(one.lease.id)
  }
}
