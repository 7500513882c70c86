import type { FailureClass } from '../core/failure/failure.js'
import type { At, Ms } from '../core/time/time.js'
import type { Attempt, Ending, EnvelopeHead, Hold, ItemStatus } from './item.js'
import type { Ledger, ScheduleRecord, WorkerRecord } from './ledger.js'
import type { ItemState } from './words.js'

/**
 * An item without anything it carries: no input, result or progress. It is all that lists, counts and audits read, so
 * what they cost does not depend on how large the payloads are.
 */
export interface ItemSummary {
  readonly envelope: EnvelopeHead
  readonly queue?: string
  readonly status: ItemStatus
  readonly ending?: Ending
  readonly class?: FailureClass
  readonly hold?: Hold
  readonly dueAt?: At
  readonly worker?: string
  readonly leaseUntil?: At
  /** When it was last handed to a worker. */
  readonly runAt?: At
  /**
   * Present while it is leased, on ledgers that keep what heartbeats say: true, the last one said that its handler runs;
   * false, it said otherwise, or there was none yet (a claim does not report a start).
   */
  readonly running?: boolean
  /** Once it is dead. Of an {@link ItemSummary} only the first line, at most 500 characters (`listedError`). */
  readonly error?: string
  readonly endAt?: At
  /** Why it is to stop, if a cancel was requested and it has not ended yet. */
  readonly cancelReason?: string
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
  readonly state?: ItemState
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

/** Counts by state, in the words of `words.ts`, per queue and type. */
export interface TypeCounts {
  readonly queue: string
  readonly type: string
  readonly counts: Readonly<Partial<Record<ItemState, number>>>
}

/** A gate that has not decided yet. */
export interface GateView {
  readonly key: string
  /** Id of the item that it holds. */
  readonly heldId: string
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
export interface Throughput {
  readonly queue: string
  readonly type: string
  /** How many ended well, and how many died (not: were cancelled), within the window, of those that are still kept. */
  readonly completed: number
  readonly failed: number
  /** When the oldest of those that wait to be claimed became due. Undefined: none waits. */
  readonly oldestDueAt?: At
}

/** Dead and retrying items that failed alike. What died without a failed run has the fingerprint that its `deadLetter` effect gave it. */
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
  /** A page of items. It reads no result, progress or input from storage. */
  list(query: ItemQuery): Promise<{ readonly items: readonly ItemSummary[]; readonly next?: string }>
  /** Items by their ids, as `list` would show them: for those who need to know how they stand, and not what they carry. */
  summaries(ids: readonly string[]): Promise<readonly (ItemSummary | undefined)[]>
  /**
   * Ids of items that begin with a text that is not empty, at most `limit` of them, in any order. A range of an index; where no index is
   * in the order of ids, the ids themselves are looked through, and `isComplete: false` says that there were too many of them.
   */
  idsStartingWith(
    prefix: string,
    limit: number,
  ): Promise<{ readonly ids: readonly string[]; readonly isComplete: boolean }>
  /** How many items of each group have not ended, without reading its value. Undefined: no such group, or it has expired. */
  openCounts(groupIds: readonly string[]): Promise<readonly (number | undefined)[]>
  attempts(id: string): Promise<readonly Attempt[]>
  counts(): Promise<readonly TypeCounts[]>
  workers(): Promise<readonly (WorkerRecord & { readonly seenAt: At })[]>
  /** Every schedule that the effect `schedule` has recorded. */
  schedules?(): Promise<readonly (ScheduleRecord & { readonly name: string })[]>
  /** The input as it was encoded. Undefined: no such item, or its input is no longer kept. */
  input(id: string): Promise<string | undefined>
  /** Undefined: no such gate, or it has decided. */
  gate(key: string): Promise<GateView | undefined>
  /** The last acts, the newest first. */
  log(limit: number): Promise<readonly LogEntry[]>
  /** Per queue and type, what ended later than `windowMs` ago, and since when the oldest waits. Those of nothing are left out. */
  throughput(windowMs: Ms): Promise<readonly Throughput[]>
  /** Dead and retrying items by fingerprint, class and type; the largest groups first, of equal ones the latest. */
  failures(limit: number): Promise<readonly FailureGroup[]>
  /** How many items a query matches, all pages together. */
  count(query: Omit<ItemQuery, 'cursor' | 'limit'>): Promise<number>
  /**
   * Unfinished items that nothing will ever put to work: running without a lease, or pending without a due time, a hold
   * or a place in the ready index. A sound backend has none; `audit` frees what it finds by the effect `release`.
   */
  stuckItems(ask: {
    readonly cursor?: string
    readonly limit: number
  }): Promise<{ readonly items: readonly ItemSummary[]; readonly next?: string }>
}

/**
 * How items stand, without what they carry: for callers that do not want a result. Plain ports have no such call: there it is
 * the result that makes a success final, so it is read in any case.
 */
export function summariesOf(
  ledger: Pick<Ledger, 'inspect' | 'read'>,
  ids: readonly string[],
): Promise<readonly (ItemSummary | undefined)[]> {
  return ledger.inspect === undefined ? ledger.read(ids) : ledger.inspect.summaries(ids)
}
