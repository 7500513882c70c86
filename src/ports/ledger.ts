import type { FailureClass } from '../core/failure.js'
import type { RetryPolicy } from '../core/retry-policy.js'
import type { At, Maybe, Ms } from '../core/time.js'
import type { Attempt, Claimed, Ending, Envelope, EnvelopeHead, Hold, Lease, Status } from './item.js'
import type { ClosedGroup, CommitResult, GroupValue, Settlement } from './settlement.js'
import type { ItemStateWord } from './words.js'

/** What a worker asks of a ledger when it has room. */
export interface ClaimAsk {
  /** Which queues, and how many at most from each. Served in this order. */
  readonly from: readonly { readonly queue: string; readonly max: number }[]
  /**
   * What the worker can run, and how much of it: an item counts against the room that names its type, and what no room
   * names stays where it is. A type stands in at most one room. Absent: any type. A plain queue delivers anything: over plain
   * ports rooms are not kept, and the engine gives back what it has no room for.
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
export type LeaseWord = 'held' | 'lost' | 'cancelled' | 'unknown'

/** What a ledger answers to a claim. */
export interface ClaimReply {
  readonly items: readonly Claimed[]
  /** The same claim, made again now, would find work. What was left for lack of room does not count. */
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
  /** The types of the runs that this claim found cut off: the last extension of a lapsed lease said that it ran. Each is told once. */
  readonly crashed?: readonly string[]
  /** How many ended items were removed, because they had been kept long enough, since the last reply told. */
  readonly removed?: number
  /** Queues that could not be asked. The others were. */
  readonly failed?: readonly { readonly queue: string; readonly error: unknown }[]
}

/**
 * An item without anything it carries: no input, result or progress. It is all that lists, counts and audits read, so
 * what they cost does not depend on how large the payloads are.
 */
export interface ItemSummary {
  readonly envelope: EnvelopeHead
  readonly queue?: string
  readonly status: Status
  readonly ending?: Ending
  readonly class?: FailureClass
  readonly hold?: Hold
  readonly dueAt?: At
  readonly holder?: string
  readonly leaseUntil?: At
  /** When it was last handed to a worker. */
  readonly runAt?: At
  /**
   * Present while it is leased, on ledgers that keep what heartbeats say: true, the last one said that its handler runs;
   * false, it said otherwise, or there was none yet (a claim tells of no start).
   */
  readonly running?: boolean
  /** Once it is dead. Of an {@link ItemSummary} only the first line, at most 500 characters (`listedError`). */
  readonly error?: string
  readonly endAt?: At
  /** Somebody asked for it to stop, and it has not ended yet: why. */
  readonly cancelled?: string
  readonly lapses?: number
  readonly crashes?: number
}

/** One item as waiters and people who ask for it see it: with its result, its progress and its whole error, without its input. */
export interface ItemView extends ItemSummary {
  /** Once it succeeded. */
  readonly result?: string
  readonly progress?: string
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
  /** Only what ended before then, or, if it has not ended, was enqueued before then. */
  readonly before?: At
  /** Only what ended then or later, or, if it has not ended, was enqueued then or later. With `before` it is a window. */
  readonly after?: At
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
  /** How it is set up: what people are shown, and what `doctor` compares. */
  readonly settings?: WorkerSettings
}

/** What a person elsewhere may ask about a process: how it is set up, and what it knows of its clock. */
export interface WorkerSettings {
  readonly leaseMs: Ms
  /** How long ended items are kept. */
  readonly keepMs: { readonly done: Ms; readonly dead: Ms }
  /** How far its own clock is ahead of the backend's (behind: less than 0), and how exactly it knows. Absent: not measured yet. */
  readonly clock?: { readonly aheadMs: Ms; readonly giveOrTakeMs: Ms }
  /** Per type, what differs from nothing: its whole retry policy, and how long a run may take. */
  readonly types: Readonly<Record<string, { readonly retry: RetryPolicy; readonly runTimeoutMs?: Ms }>>
}

/** What was heard in an inbox: items that ended, groups that closed. */
export interface Settled {
  readonly ids: readonly string[]
  readonly groups: readonly string[]
}

/** Names of queues and types that are paused, or may be. */
export interface PausedNames {
  readonly queues: readonly string[]
  readonly types: readonly string[]
}

/** Counts by state, in the words of `words.ts`, per queue and type. */
export interface Counted {
  readonly queue: string
  readonly type: string
  readonly counts: Readonly<Partial<Record<ItemStateWord, number>>>
}

/** When a schedule fires next, and by which rule: what a fleet agrees on, and what people see. */
export interface ScheduleRecord {
  readonly spec: string
  readonly nextAt: At
}

/** A gate that has not decided yet. */
export interface GateView {
  readonly key: string
  /** Id of the item that it holds. */
  readonly holds: string
  /** How many more of the members must end, or end well. */
  readonly need: number
  readonly of: 'done' | 'success'
  /** The members that have not ended. */
  readonly waiting: readonly string[]
}

/** An act of a person or a tool, as it was logged. */
export interface LogEntry {
  readonly at: At
  readonly who: string
  readonly why: string
  readonly what: string
}

/** What flows through one type on one queue. */
export interface Flow {
  readonly queue: string
  readonly type: string
  /** How many ended well, and how many died (not: were cancelled), within the window, of those that are still kept. */
  readonly completed: number
  readonly failed: number
  /** When the oldest of those that wait to be claimed became due. Undefined: none waits. */
  readonly oldestDueAt?: At
}

/** Dead and retrying items that failed alike. What died without a failed run has the fingerprint that its `park` gave it. */
export interface FailureGroup {
  readonly fingerprint: string
  /** That of the item once it is dead, that of its last run while it is retried. */
  readonly class?: FailureClass
  readonly type: string
  readonly dead: number
  readonly retrying: number
  /** When the first and the last of those that are still here failed: died, or ended their last run. */
  readonly firstAt: At
  readonly lastAt: At
  /** One of them, the last to fail, with the first line of its error (`listedError`). */
  readonly sample: { readonly id: string; readonly error: string }
}

/** What people can ask. Absent where it would have to be faked: on plain ports and NATS. */
export interface Inspect {
  /** A page of items. No result and no progress is read from storage for it, let alone an input. */
  list(query: ItemQuery): Promise<{ readonly items: readonly ItemSummary[]; readonly next?: string }>
  /** Items by their ids, as `list` would show them: for those who need to know how they stand, and not what they carry. */
  summaries(ids: readonly string[]): Promise<readonly (ItemSummary | undefined)[]>
  /** How many items of each group have not ended, without reading its value. Undefined: no such group, or it has expired. */
  openCounts(groupIds: readonly string[]): Promise<readonly (number | undefined)[]>
  attempts(id: string): Promise<readonly Attempt[]>
  counts(): Promise<readonly Counted[]>
  workers(): Promise<readonly (Worker & { readonly seenAt: At })[]>
  /** Every schedule that the effect `schedule` has recorded. */
  schedules?(): Promise<readonly (ScheduleRecord & { readonly name: string })[]>
  /** The input as it was encoded. Undefined: no such item, or its input is no longer kept. */
  input(id: string): Promise<string | undefined>
  /** Undefined: no such gate, or it has decided. */
  gate(key: string): Promise<GateView | undefined>
  /** The last acts, the newest first. */
  log(limit: number): Promise<readonly LogEntry[]>
  /** Per queue and type, what ended later than `windowMs` ago, and since when the oldest waits. Those of nothing are left out. */
  flow(windowMs: Ms): Promise<readonly Flow[]>
  /** Dead and retrying items by fingerprint, class and type; the largest groups first, of equal ones the latest. */
  failures(limit: number): Promise<readonly FailureGroup[]>
  /** How many items a query matches, all pages together. */
  count(query: Omit<ItemQuery, 'cursor' | 'limit'>): Promise<number>
  /**
   * Unfinished items that nothing will ever put to work: running without a lease, or pending without a due time, a hold
   * or a place in the ready index. A sound backend has none; `audit` frees what it finds by the effect `release`.
   */
  strays(ask: {
    readonly cursor?: string
    readonly limit: number
  }): Promise<{ readonly items: readonly ItemSummary[]; readonly next?: string }>
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
  /**
   * Heartbeats of many leases in one call, carrying the process's own record with them. `running` says whether the handler
   * runs right now: a lease that lapses counts as a crash only if its last extension said so. Never waits for a lock that
   * another transaction holds: such a lease answers `unknown`.
   */
  extend(
    held: readonly { readonly lease: Lease; readonly running: boolean; readonly progress?: string }[],
    leaseMs: Ms,
    me: Worker,
  ): Promise<readonly LeaseWord[]>
  /** A process that has stopped in order tells so: its record goes at once instead of growing old. Goes with `inspect.workers`. */
  leave?(worker: string): Promise<void>
  /** Each settlement is atomic and fenced; the batch is only a shared round trip. Results align with the batch. */
  commit(batch: readonly Settlement[]): Promise<readonly CommitResult[]>
  read(ids: readonly string[]): Promise<readonly (ItemView | undefined)[]>
  /** Undefined: no such group, or its record has expired. */
  groups(ids: readonly string[]): Promise<readonly ((GroupValue & { readonly open: number }) | undefined)[]>
  /** The records that the effect `schedule` wrote last. Without it nothing can be scheduled on this ledger. */
  schedules?(names: readonly string[]): Promise<readonly (ScheduleRecord | undefined)[]>
  /** "Tell my inbox": only needed when the wait began after the push had left. Read again afterwards. */
  watch(inbox: string, what: Settled): Promise<void>
  /** Work became ready in a queue, or will at `dueAt`. May be lost; the idle poll is the net. */
  onReady(wake: (queue: string, dueAt?: At) => void): () => void
  onInbox(inbox: string, hear: (what: Settled) => void): () => void
  /** What is paused. A ledger that cannot list answers for those that it is asked about. */
  paused?(among: PausedNames): Promise<PausedNames>
  readonly inspect?: Inspect
  /** Only where what was accepted dies with this process: how much of it has not ended. A process that owes some stays. */
  unfinished?(): number
  /** Commit inside the user's own database transaction. */
  enlist?(tx: unknown): { commit(batch: readonly Settlement[]): Promise<readonly CommitResult[]> }
}
