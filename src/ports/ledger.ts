import type { RetryPolicy } from '../core/retry/retry-policy.js'
import type { At, MaybePromise, Ms } from '../core/time/time.js'
import type { Inspect, ItemView } from './inspect.js'
import type { ClaimedItem, Envelope, Lease } from './item.js'
import type { ClosedGroup, CommitResult, GroupValue, Settlement } from './settlement.js'

/** What a worker asks of a ledger when it has room. */
export interface ClaimRequest {
  /** Which queues, and how many at most from each. Served in this order. */
  readonly queues: readonly { readonly queue: string; readonly max: number }[]
  /**
   * What the worker can run, and how much of it: an item counts against the room that names its type, and what no room
   * names stays where it is. A type is in at most one room. Absent: any type. A plain queue delivers anything: over plain
   * ports, rooms are not kept, and the engine releases what it has no room for.
   *
   * A ready item whose deadline has passed needs no room, since it is ended and not run: with rooms, such items come whatever
   * their type, by deadline and arrival, but take at most a quarter of the `max` of their queue, rounded up (`expiredShare`), so that
   * live items come beside them. The others wait for the next claims, or come by their type, in their place, where there is room
   * for them. So a deadline also ends what no live worker knows.
   */
  readonly rooms?: readonly Room[]
  readonly leaseMs: Ms
  readonly worker: string
}

/** How many more items of these types, taken together, a worker has room for. */
export interface Room {
  readonly types: readonly string[]
  readonly max: number
}

/**
 * What an extension learnt of a lease. `cancelled`: still held, but the item was cancelled. `unknown`: it could not be
 * asked about now without waiting; it was neither extended nor found lost.
 */
export type LeaseStatus = 'held' | 'lost' | 'cancelled' | 'unknown'

/** What a ledger answers to a claim. */
export interface ClaimReply {
  readonly items: readonly ClaimedItem[]
  /** The same claim, made again now, would find work. What was left for lack of room does not count. */
  readonly more: boolean
  /** When the next item of these queues falls due: arm one timer. */
  readonly nextDueAt?: At
  /** The backend's time, from which the engine learns the offset of its own clock. */
  readonly now: At
  /** Bodies that are not envelopes: removed from the queue, reported by the engine. */
  readonly unreadable?: readonly { readonly queue: string; readonly body: string }[]
  /** Items that arrived before their time and were pushed again with what is left. Only on plain queues. */
  readonly rescheduled?: readonly { readonly envelope: Envelope; readonly byMs: Ms }[]
  /** Groups that closed while this claim completed what a dead process had begun. */
  readonly closedGroups?: readonly ClosedGroup[]
  /** The types of the runs that this claim found cut off: the last extension of a lapsed lease said that it ran. Each is reported once. */
  readonly crashed?: readonly string[]
  /** How many ended items were removed, because they had been kept long enough, since the last reply. */
  readonly removed?: number
  /** Queues that could not be asked. The others were. */
  readonly failedQueues?: readonly { readonly queue: string; readonly error: unknown }[]
}

/** A process that runs work, as it describes itself with every heartbeat. */
export interface WorkerRecord {
  readonly id: string
  readonly host: string
  readonly version: string
  readonly types: readonly string[]
  readonly queues: readonly string[]
  /** How it is set up: what people are shown, and what `doctor` compares. */
  readonly settings?: WorkerSettings
}

/** What a person elsewhere may ask about a process: how it is set up, and what it knows of its clock. */
export interface WorkerSettings {
  readonly leaseMs: Ms
  /** How long ended items are kept. */
  readonly keepMs: { readonly completed: Ms; readonly dead: Ms }
  /** How far its own clock is ahead of the backend's (behind: less than 0), and how exactly it knows. Absent: not measured yet. */
  readonly clock?: { readonly aheadMs: Ms; readonly giveOrTakeMs: Ms }
  /** Per type, what differs from nothing: its whole retry policy, and how long a run may take. */
  readonly types: Readonly<Record<string, { readonly retry: RetryPolicy; readonly runTimeoutMs?: Ms }>>
}

/** What was heard in an inbox: items that ended, groups that closed. */
export interface Notification {
  readonly itemIds: readonly string[]
  readonly groupIds: readonly string[]
}

/** Names of queues and types that are paused, or may be. */
export interface PausedNames {
  readonly queues: readonly string[]
  readonly types: readonly string[]
}

/** When a schedule fires next, and by which rule: what a fleet agrees on, and what people see. */
export interface ScheduleRecord {
  readonly spec: string
  readonly nextAt: At
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
  claim(ask: ClaimRequest): Promise<ClaimReply>
  /** Present where a start must be written when it happens. Native ledgers let it ride on the next batched call. */
  markStarted?(leases: readonly Lease[]): MaybePromise<void>
  /**
   * Heartbeats of many leases in one call, carrying the process's own record with them. `running` says whether the handler
   * runs right now: a lease that lapses counts as a crash only if its last extension said so. Never waits for a lock that
   * another transaction holds: such a lease answers `unknown`.
   */
  extend(
    held: readonly { readonly lease: Lease; readonly running: boolean; readonly progress?: string }[],
    leaseMs: Ms,
    me: WorkerRecord,
  ): Promise<readonly LeaseStatus[]>
  /** A process that stopped cleanly removes its record, instead of letting it grow old. Goes with `inspect.workers`. */
  removeWorker?(worker: string): Promise<void>
  /** Each settlement is atomic and fenced; the batch is only a shared round trip. Results align with the batch. */
  commit(batch: readonly Settlement[]): Promise<readonly CommitResult[]>
  read(ids: readonly string[]): Promise<readonly (ItemView | undefined)[]>
  /** Undefined: no such group, or its record has expired. */
  groups(ids: readonly string[]): Promise<readonly ((GroupValue & { readonly open: number }) | undefined)[]>
  /** The records that the effect `schedule` wrote last. Without it nothing can be scheduled on this ledger. */
  schedules?(names: readonly string[]): Promise<readonly (ScheduleRecord | undefined)[]>
  /** "Notify my inbox": only needed when the wait began after the enqueue was sent. Read again afterwards. */
  watch(inbox: string, what: Notification): Promise<void>
  /** Work became ready in a queue, or will at `dueAt`. May be lost; the idle poll is the fallback. */
  onReady(wake: (queue: string, dueAt?: At) => void): () => void
  onInbox(inbox: string, hear: (what: Notification) => void): () => void
  /** What is paused. A ledger that cannot list answers for those that it is asked about. */
  paused?(among: PausedNames): Promise<PausedNames>
  readonly inspect?: Inspect
  /** Only where what was accepted dies with this process: how much of it has not ended. A process that owes some stays. */
  openCount?(): number
  /** Commit inside the user's own database transaction. */
  enlist?(tx: unknown): { commit(batch: readonly Settlement[]): Promise<readonly CommitResult[]> }
}
