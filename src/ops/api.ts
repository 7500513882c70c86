import type { FailureClass } from '../core/failure/failure.js'
import type { RetryPolicyOptions } from '../core/retry/retry-policy.js'
import type { At, Ms } from '../core/time/time.js'
import type { WatcherReport } from '../guild/stacks/api.js'
import type { FailureGroup, ItemQuery, ItemSummary, LogEntry, TypeCounts } from '../ports/inspect.js'
import type { Attempt, EndedRun } from '../ports/item.js'
import type { WorkerRecord } from '../ports/ledger.js'
import type { ItemState } from '../ports/words.js'
import type { WritReason } from './guild/writ-facts.js'
import type { Reason } from './items/explain.js'
import type { LetterOps } from './letters/api.js'

/** What people and tools can ask of a backend and do to it. No handler is loaded and nothing is claimed. */
export interface Ops extends LetterOps {
  /** Per queue and type: items by state, what ended in the last minute, how long the oldest has waited; and the workers. */
  overview(): Promise<Overview>
  /** How many items are in each state, by queue and type. */
  counts(): Promise<readonly TypeCounts[]>
  /** Items by state, type, queue, group, tag, class or fingerprint, newest first, page by page. Never loads payloads. */
  list(query?: Partial<ItemQuery>): Promise<Page>
  /** One item with its attempts and its timeline; `undefined` when the backend has no item with that id. */
  item(id: string): Promise<ItemReport | undefined>
  /**
   * The id of an item from the beginning of it: the item with exactly that id, or the only one whose id begins so. Rejects with
   * `AMBIGUOUS_ID` when several do; `undefined` when none does. All other calls take whole ids.
   */
  findId(idOrPrefix: string): Promise<string | undefined>
  /** Why an item does not run, the deciding reason first, each with what would resolve it. */
  explain(id: string): Promise<readonly [Reason, ...Reason[]]>
  /** What would happen after that failure: its class, and when each attempt would run. */
  preview(type: string, error: unknown, options?: PreviewPolicy): Promise<Preview>
  /** Dead and retrying items grouped by failure, largest groups first. Items that died without a run are grouped by ending. */
  failures(limit?: number): Promise<readonly FailureGroup[]>
  /** The workers seen within the last hour, except those that were stopped cleanly. */
  workers(): Promise<readonly WorkerReport[]>
  /** Every schedule with its next occurrences, and the clock changes of its zone in between. */
  schedules(fires?: number): Promise<readonly ScheduleReport[]>
  /** The latest actions of people and tools, newest first; with `stacks`, also those on writs. */
  log(limit?: number): Promise<readonly LogEntry[]>

  /** Dead items run again from attempt 1, with their id, group and history. */
  redrive(what: ItemSelector, by: RedriveOptions): Promise<ActionReport>
  /** Removes dead items completely. */
  discard(what: ItemSelector, by: ActionOptions): Promise<ActionReport>
  /** Unfinished items end as cancelled. A running handler is notified by its signal; the item counts as done even if the handler ignores it. */
  cancel(what: ItemSelector, by: ActionOptions): Promise<ActionReport>
  /** Makes scheduled, retrying and held items ready now. */
  runNow(what: ItemSelector, by: ActionOptions): Promise<ActionReport>
  /** No worker starts items of that queue or type until it is resumed. The answer says whether that changed anything. */
  pause(what: PauseTarget, by: PauseOptions): Promise<PauseReport>
  /** What is paused runs again. The answer says whether it was paused. */
  resume(what: PauseTarget, by: Actor): Promise<PauseReport>
  /** Bulk actions and their progress, newest first. */
  actions(): Promise<readonly ActionReport[]>
  /** Continues a bulk action that was interrupted. Another process still running it stops after its current page. */
  continue(actionId: string, options?: ContinueOptions): Promise<ActionReport>

  /** Finds unfinished items without a live lease, a due time, or a blocker that can itself finish, and says how to repair them. */
  audit(options?: AuditOptions): Promise<AuditReport>

  /** The guild's writs by phase, type or parent, newest first. Needs `stacks`. */
  writs(query?: WritQuery): Promise<readonly WritSummary[]>
  /** One writ, by its id or the beginning of it: its phase, links, rigs as attempts against the cap, why it is stuck, what the retry observer decided. */
  writ(id: string): Promise<WritReport | undefined>
  /** One rig with its engines, by its id or the beginning of it. */
  rig(id: string): Promise<RigReport | undefined>
  /** The guild's durable watchers: how many events wait for each, and how many it could not handle. Needs `stacks`. */
  watchers(): Promise<readonly WatcherReport[]>

  /** Opens a draft. It takes the id of a writ or its beginning, as the next two do; who and why are logged with the change. */
  openWrit(id: string, by: Actor): Promise<WritSummary>
  /** Ends a writ as cancelled, with those below it and the rig that goes on for it. `why` becomes its resolution. */
  cancelWrit(id: string, by: Actor): Promise<WritSummary>
  /** Gives a stuck writ one more rig, also at its cap; one that waits for its next rig gets it now. */
  retryWrit(id: string, by: Actor): Promise<WritSummary>
}

/** Who acts, and why. Both go into the log. */
export interface Actor {
  readonly who: string
  readonly why?: string
}

/** One item by id, or all that match a query. Each action applies to certain states; `state` narrows them. */
export type ItemSelector = string | { readonly [K in Exclude<keyof ItemQuery, 'cursor' | 'limit'>]?: ItemQuery[K] }

/** What can be paused: a queue or a type. */
export type PauseTarget = { readonly queue: string } | { readonly type: string }

/** Options of `pause`. */
export interface PauseOptions extends Actor {
  /** Pauses nothing if no item has that name and no worker serves it: it was probably mistyped. Default false. */
  readonly mustBeKnown?: boolean
}

/** What came of `pause` or `resume`. */
export interface PauseReport {
  readonly what: 'queue' | 'type'
  readonly name: string
  /** False: it was paused already, was not paused, or is unknown and had to be known. Nothing was written. */
  readonly isChanged: boolean
  /** Whether an item has that name, or a worker serves it. Absent where the backend cannot list its items. */
  readonly isKnown?: boolean
}

/** How the caller follows and stops a bulk action. */
export interface Watching {
  /** Called after every page. */
  readonly onProgress?: (report: ActionReport) => void
  /** Stops it after the current page; {@link Ops.continue} resumes it. */
  readonly signal?: AbortSignal
}

/** Options of `continue`. `who` and `why` are for the log; default: those of the action. */
export interface ContinueOptions extends Watching, Partial<Actor> {}

/** Options of an action on one item or many. */
export interface ActionOptions extends Actor, Watching {
  /** Only counts. */
  readonly dryRun?: boolean
  /** How many items one commit changes. Default 500. */
  readonly pageSize?: number
}

/** Options of `redrive`. */
export interface RedriveOptions extends ActionOptions {
  /**
   * Redrives one item first, then ten, then the rest. Stops when one of those sent ahead fails with a failure that any of them had
   * died of (even if it is retried after that), dies again of another cause, or has not ended in time.
   */
  readonly canary?: boolean
  /** How long to wait for the end of those sent ahead. Default 60 000. */
  readonly canaryWaitMs?: Ms
}

/** What can be done to items in bulk. */
export type BulkVerb = 'redrive' | 'discard' | 'cancel' | 'runNow'

/** A bulk action, and how far it has come. */
export interface ActionReport {
  readonly id: string
  readonly verb: BulkVerb
  readonly target: ItemSelector
  readonly who: string
  readonly why: string
  readonly startedAt: At
  /** How many matched when it began. */
  readonly total: number
  /** How many it has changed. */
  readonly done: number
  /** How many had moved on before the action reached them. */
  readonly passed: number
  readonly state: 'running' | 'done' | 'stopped'
  /** Why it stopped early. */
  readonly because?: string
}

/** Items by queue, type and state, the workers, and what is paused. */
export interface Overview {
  readonly at: At
  readonly rows: readonly OverviewRow[]
  readonly workers: readonly WorkerReport[]
  readonly paused: { readonly queues: readonly string[]; readonly types: readonly string[] }
  /** How many writs of the guild are open, and how many are stuck. Only with `stacks`. */
  readonly writs?: { readonly open: number; readonly stuck: number }
}

/** One type on one queue. */
export interface OverviewRow {
  readonly queue: string
  readonly type: string
  readonly counts: Readonly<Record<ItemState, number>>
  readonly completedPerMinute: number
  readonly failedPerMinute: number
  /** How long the oldest ready item has waited. Undefined: none waits. */
  readonly oldestWaitMs?: Ms
  /** How many live workers run this type from this queue. */
  readonly workers: number
}

/** A process that runs work, as last seen. */
export interface WorkerReport extends WorkerRecord {
  readonly seenAt: At
  readonly isAlive: boolean
  /** How many items it holds now. Only in `workers()`, and absent while the fleet runs more than a thousand. */
  readonly holds?: number
}

/** One page of a list. */
export interface Page {
  readonly items: readonly ListedItem[]
  /** Cursor of the next page. */
  readonly next?: string
}

/**
 * An item in a list. Payloads are not loaded; `item(id)` has them. The error is its first line, at most 300 characters, passed
 * through `redact`.
 */
export interface ListedItem extends ItemSummary {
  readonly id: string
  readonly type: string
  /** Its state, in the words used everywhere. */
  readonly state: ItemState
}

/** One item with its history and payloads. Payloads and errors have passed through `redact`. */
export interface ItemReport extends ListedItem {
  /** Every run, with its outcome, class, rule, error, worker and times. Empty where the backend keeps none. */
  readonly attempts: readonly RunReport[]
  /** What happened to it, in order, as far as the backend keeps it. */
  readonly timeline: readonly TimelineEntry[]
  /** The encoded input. Absent where it is no longer kept. */
  readonly input?: string
  /** The encoded result, once it succeeded. */
  readonly result?: string
  /** The progress its run reported last, encoded. */
  readonly progress?: string
  /** Ids of the items that it enqueued, at most a hundred. */
  readonly children: readonly string[]
  /** Undefined: its record has expired. */
  readonly group?: { readonly open: number; readonly value?: string }
  /** What it waits for, while a gate holds it. */
  readonly waitsFor?: readonly string[]
}

/** One run of an item. Only a failed one has a class and an error. */
export interface RunReport extends Attempt {
  readonly outcome: 'succeeded' | 'failed' | EndedRun
}

/** One entry of an item's timeline. */
export interface TimelineEntry {
  readonly at: At
  readonly what:
    | 'enqueued'
    | 'started'
    | 'failed'
    | 'retried'
    | 'deferred'
    | 'succeeded'
    | 'died'
    | 'cancelled'
    | 'waits'
    | 'redriven'
    | 'hastened'
    | 'repaired'
  readonly text: string
}

/** Options of `preview`. */
export interface PreviewPolicy {
  /** Default: the policy that the live workers of that type report, or else the default policy. */
  readonly retry?: RetryPolicyOptions
}

/** What would happen after a failure. */
export interface Preview {
  readonly type: string
  readonly class: FailureClass
  /** The rule of the classifier that decided. */
  readonly rule: string
  /** Where the policy comes from. */
  readonly policyFrom: 'options' | 'worker' | 'default'
  /** Each attempt, and the range in which jitter places it, measured from the first. */
  readonly attempts: readonly { readonly attempt: number; readonly earliestMs: Ms; readonly latestMs: Ms }[]
  /** The same in words. */
  readonly text: string
}

/** A schedule and its next occurrences. */
export interface ScheduleReport {
  readonly name: string
  /** The rule as it is stored, with its zone: `TZ=Europe/Berlin 0 3 * * *`, or `next()` for a function. */
  readonly spec: string
  /** The rule without its zone. Absent for a function. */
  readonly cron?: string
  readonly nextAt: At
  /** The next occurrences, `nextAt` first. Only `nextAt` where the rule is a function. */
  readonly fires: readonly At[]
  readonly timeZone?: string
  /** When the clocks of its zone change between these occurrences, and by how much. */
  readonly changes: readonly { readonly at: At; readonly byMs: Ms }[]
}

/** Options of `audit`. */
export interface AuditOptions {
  /** Repairs what can be repaired, and logs it. */
  readonly repair?: Actor
  /** Checks the groups of all ended items, and not only of the last 2,000 of each ending. Default false. */
  readonly thorough?: boolean
  /** Called after every page of items. */
  readonly onProgress?: (report: AuditReport) => void
  /** Stops it after the current page; the report then says that it is not complete. */
  readonly signal?: AbortSignal
}

/** What `audit` checked and found. */
export interface AuditReport {
  /** How many unfinished items it checked. */
  readonly checked: number
  /** How many findings there are, and how many of them were repaired. */
  readonly found: number
  readonly repaired: number
  /** The first thousand of them. */
  readonly findings: readonly Finding[]
  /** False: it was stopped before it had checked everything. */
  readonly isComplete: boolean
  /** What it did not check although it was not stopped, and how much. Empty: it has checked everything. */
  readonly skipped: readonly { readonly code: SkippedCode; readonly count: number; readonly text: string }[]
}

/** What an audit may have to skip, as a code that programs can compare. */
export type SkippedCode =
  /** Items that ended long ago: their groups are checked only with `thorough`. */
  | 'ended'
  /** Items of more groups than one audit remembers. */
  | 'groups'
  /** Groups that changed at every read. */
  | 'kept-changing'
  /** Held items behind more gates than one audit follows: they are assumed to be able to end. */
  | 'deep-gates'

/** What breaks the liveness invariant, as a code that programs can compare. */
export type FindingCode =
  /** Running without a lease, or pending without a due time or a hold: in no list at all. */
  | 'stuck-item'
  /** Held by a gate that does not exist. */
  | 'gate-missing'
  /** Held by a gate that missed the end of a member. */
  | 'gate-missed'
  /** Held, without a time limit, by a gate over an item that was never enqueued. */
  | 'gate-unknown'
  /** Held by gates that wait for each other. */
  | 'gate-cycle'
  /** Held by a pause that is over. */
  | 'pause-over'
  /** Its lease ended long ago, and the live workers have not reclaimed it. */
  | 'lease-lapsed'
  /** The open count of its group is not the number of its unfinished items. */
  | 'group-count'
  /** No live worker serves its queue. */
  | 'no-worker'
  /** No live worker of its queue handles its type. */
  | 'unknown-type'

/** One thing that breaks the liveness invariant. */
export interface Finding {
  readonly code: FindingCode
  /** The item in question; the oldest if there are many. */
  readonly id: string
  readonly text: string
  /** How to repair it, in words. */
  readonly repair: string
  /** Whether `audit({ repair })` can do it. */
  readonly canRepair: boolean
  readonly isRepaired: boolean
}

/** Which writs to list. */
export interface WritQuery {
  readonly phase?: string
  readonly type?: string
  readonly parentId?: string
  readonly limit?: number
  readonly offset?: number
}

/** A writ in a list. */
export interface WritSummary {
  readonly id: string
  readonly type: string
  readonly title: string
  readonly phase: string
  readonly parentId?: string
  readonly createdAt: string
  readonly updatedAt: string
}

/** One writ with its links, children, rigs and reasons. */
export interface WritReport extends WritSummary {
  readonly body: string
  readonly resolution?: string
  /** It gets no rig before this. */
  readonly runAt?: string
  /** It fails when it has not ended by this. */
  readonly deadline?: string
  /** In both directions; `kind` is what a link means to a plugin. */
  readonly links: readonly {
    readonly to: string
    readonly from: string
    readonly label: string
    readonly kind?: string
  }[]
  /** At most a hundred, newest first. */
  readonly children: readonly WritSummary[]
  /** Oldest first: each is one attempt. At most the last twenty. */
  readonly rigs: readonly RigReport[]
  /** How many rigs it may have before it stays stuck. */
  readonly cap: number
  /** What it waits for or why it is stuck, the deciding reason first. Empty once it has ended. */
  readonly reasons: readonly WritReason[]
  /** What the retry observer decides about it now, and why. Absent if the guild has none. */
  readonly retry?: { readonly decision: 'requeue' | 'leave'; readonly why: string }
  /** What people did to it, newest first. */
  readonly log: readonly LogEntry[]
}

/** One rig of a writ: one attempt, with its engines. */
export interface RigReport {
  readonly id: string
  readonly writId: string
  /** `running` and `blocked` are active; the others are final. */
  readonly status: string
  /** Which rig of its writ it is, from 1. */
  readonly attempt: number
  readonly engines: readonly {
    readonly id: string
    readonly designId: string
    readonly status: string
    readonly upstream: readonly string[]
    readonly startedAt?: string
    readonly completedAt?: string
    readonly error?: string
    /** The type of its block, and its message if it has one. */
    readonly blockedBy?: string
    /** How many times it was retried in this rig. */
    readonly retries?: number
    /** It is not retried before this time. */
    readonly heldUntil?: string
    /** It did not run in this rig: its yields, and its times, are those of this earlier one. */
    readonly carriedFrom?: string
  }[]
  readonly createdAt: string
  readonly endedAt?: string
}
