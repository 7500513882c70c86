import type { FailureClass } from '../core/failure.js'
import type { At, Maybe, Ms } from '../core/time.js'
import type { Attempt, Claimed, Ending, Envelope, EnvelopeHead, Hold, Lease, Status } from './item.js'
import type { ClosedGroup, CommitResult, GroupValue, Settlement } from './settlement.js'
import type { ItemStateWord } from './words.js'

export interface ClaimAsk {
  /** Which queues, and how many at most from each. Served in this order. */
  readonly from: readonly { readonly queue: string; readonly max: number }[]
  readonly leaseMs: Ms
  readonly worker: string
  /** How many of the items returned will start at once; the rest are prefetched. */
  readonly startNow: number
}

export interface ClaimReply {
  readonly items: readonly Claimed[]
  /** Another claim now would find work. */
  readonly more: boolean
  /** When the next item of these queues falls due: arm one timer. */
  readonly nextDueAt?: At
  /** The backend's time, so that the engine learns the offset of its own. */
  readonly at: At
  /** Bodies that are not envelopes: removed from the queue, reported by the engine. */
  readonly unreadable?: readonly { readonly queue: string; readonly body: string }[]
  /** Items that arrived before their time and were pushed again with what is left. Only on plain queues. */
  readonly rescheduled?: readonly { readonly envelope: Envelope; readonly byMs: Ms }[]
  /** Groups that closed while this claim completed what a dead process had begun. */
  readonly closed?: readonly ClosedGroup[]
  /** Queues that could not be asked. The others were. */
  readonly failed?: readonly { readonly queue: string; readonly error: unknown }[]
}

/** An item as people and waiters see it. The payload is left out; `result` and `error` are there once it ended. */
export interface ItemView {
  readonly envelope: EnvelopeHead
  readonly queue?: string
  readonly status: Status
  readonly ending?: Ending
  readonly class?: FailureClass
  readonly hold?: Hold
  readonly dueAt?: At
  readonly holder?: string
  readonly leaseUntil?: At
  readonly runAt?: At
  readonly result?: string
  readonly error?: string
  readonly endAt?: At
  readonly progress?: string
  readonly lapses?: number
  readonly crashes?: number
}

/** Index-backed for `state` with at most one of the others; further filters scan a bounded page. */
export interface ItemQuery {
  readonly state?: ItemStateWord
  readonly type?: string
  readonly queue?: string
  readonly groupId?: string
  readonly tag?: string
  readonly class?: FailureClass
  readonly fingerprint?: string
  readonly before?: At
  readonly cursor?: string
  readonly limit: number
}

/** A process that runs work, as it tells of itself with every heartbeat. */
export interface Worker {
  readonly id: string
  readonly host: string
  readonly version: string
  readonly types: readonly string[]
  readonly queues: readonly string[]
}

/** What was heard in an inbox: items that ended, groups that closed. */
export interface Settled {
  readonly ids: readonly string[]
  readonly groups: readonly string[]
}

/** Counts by state, in the words of `words.ts`, per queue and type. */
export interface Counted {
  readonly queue: string
  readonly type: string
  readonly counts: Readonly<Partial<Record<ItemStateWord, number>>>
}

/** What people can ask. Absent where it would have to be faked: on plain ports and NATS. */
export interface Inspect {
  list(query: ItemQuery): Promise<{ readonly items: readonly ItemView[]; readonly next?: string }>
  attempts(id: string): Promise<readonly Attempt[]>
  counts(): Promise<readonly Counted[]>
  workers(): Promise<readonly (Worker & { readonly seenAt: At })[]>
}

/**
 * The one thing the engine talks to. Memory, SQLite, Postgres and Redis implement it natively; `overPlainPorts` implements
 * it over any three ports by ordered, repeatable steps, and says `atomic: false`.
 *
 * A call that rejects has an unknown outcome: the caller repeats it with the same arguments, and the guards make that
 * harmless.
 */
export interface Ledger {
  readonly atomic: boolean
  readonly limits: { readonly maxItemBytes: number; readonly maxDelayMs: Ms }
  claim(ask: ClaimAsk): Promise<ClaimReply>
  /** Present where a start must be written when it happens. Native ledgers let it ride on the next batched call. */
  begin?(leases: readonly Lease[]): Maybe<void>
  /** Heartbeats of many leases in one call, carrying the process's own record with them. */
  extend(
    held: readonly { readonly lease: Lease; readonly started: boolean; readonly progress?: string }[],
    leaseMs: Ms,
    me: Worker,
  ): Promise<readonly ('held' | 'lost' | 'cancelled')[]>
  /** Each settlement is atomic and fenced; the batch is only a shared round trip. Results align with the batch. */
  commit(batch: readonly Settlement[]): Promise<readonly CommitResult[]>
  read(ids: readonly string[]): Promise<readonly (ItemView | undefined)[]>
  /** Undefined: no such group, or its record has expired. */
  groups(ids: readonly string[]): Promise<readonly ((GroupValue & { readonly open: number }) | undefined)[]>
  /** "Tell my inbox": only needed when the wait began after the push had left. Read again afterwards. */
  watch(inbox: string, what: Settled): Promise<void>
  /** Work became ready in a queue, or will at `dueAt`. May be lost; the idle poll is the net. */
  onReady(wake: (queue: string, dueAt?: At) => void): () => void
  onInbox(inbox: string, hear: (what: Settled) => void): () => void
  readonly inspect?: Inspect
  /** Only where what was accepted dies with this process: how much of it has not ended. A process that owes some stays. */
  unfinished?(): number
  /** Commit inside the user's own database transaction. */
  enlist?(tx: unknown): { commit(batch: readonly Settlement[]): Promise<readonly CommitResult[]> }
}
