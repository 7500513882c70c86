import type { FailureClass } from '../core/failure.js'
import type { RetryPolicyOptions } from '../core/retry-policy.js'
import type { At, Ms } from '../core/time.js'
import type { Attempt } from '../ports/item.js'
import type { Counted, FailureGroup, ItemQuery, ItemSummary, LogEntry, Worker } from '../ports/ledger.js'
import type { ItemStateWord } from '../ports/words.js'
import type { Reason } from './explain.js'
import type { WritReason } from './guild/writ-reason.js'

/** What a person can ask of a backend and do to it. No handler is loaded and nothing is claimed. */
export interface Ops {
  /** Per queue and type: how many stand where, what ended in the last minute, how long the oldest waits; and the workers. */
  overview(): Promise<Overview>
  /** How many items are in each state, by queue and type. */
  counts(): Promise<readonly Counted[]>
  /** Items by state, type, queue, group, tag, class or fingerprint, the newest first, page by page. Never loads payloads. */
  list(query?: Partial<ItemQuery>): Promise<Page>
  /** One item with its attempts and its life; `undefined` when the backend knows none of that id. */
  item(id: string): Promise<ItemReport | undefined>
  /** Why an item does not run, the deciding reason first, each with what would resolve it. */
  explain(id: string): Promise<readonly [Reason, ...Reason[]]>
  /** What would become of that failure: its class, and when each attempt would run. */
  preview(type: string, error: unknown, options?: PreviewOptions): Promise<Preview>
  /** Dead and retrying items by what they failed of, the largest groups first. What died without a run is grouped by how it ended. */
  failures(limit?: number): Promise<readonly FailureGroup[]>
  /** Everybody who was heard of within the last hour and has not stopped in order. */
  workers(): Promise<readonly WorkerReport[]>
  /** Every schedule with its next fires, and where the clocks of its zone change in between. */
  schedules(fires?: number): Promise<readonly ScheduleReport[]>
  /** The last acts of people and tools, the newest first. */
  log(limit?: number): Promise<readonly LogEntry[]>

  /** Dead items go back to work, at attempt 1, with their id, group and history. */
  redrive(what: Target, by: RedriveOptions): Promise<ActionReport>
  /** Dead items go, and nothing of them remains. */
  discard(what: Target, by: ActOptions): Promise<ActionReport>
  /** Unfinished items end as cancelled; what runs is told by its signal, and counts as done even if its handler pays no heed. */
  cancel(what: Target, by: ActOptions): Promise<ActionReport>
  /** Scheduled, retrying and held items become ready now. */
  runNow(what: Target, by: ActOptions): Promise<ActionReport>
  pause(what: PauseTarget, by: By): Promise<void>
  resume(what: PauseTarget, by: By): Promise<void>
  /** Bulk actions and how far they have come, the newest first. */
  actions(): Promise<readonly ActionReport[]>
  /** Goes on with a bulk action whose process ended in the middle. Who else may be at it stops after the page under way. */
  proceed(actionId: string, options?: ProceedOptions): Promise<ActionReport>

  /** Every unfinished item has a live lease, a due time, or a blocker that itself can finish. What breaks that, and its repair. */
  audit(options?: AuditOptions): Promise<AuditReport>

  /** The guild's obligations by phase, type or parent, the newest first. Needs `stacks`. */
  writs(query?: WritQuery): Promise<readonly WritLine[]>
  /** One writ: its phase, links, rigs as attempts against the cap, why it is stuck, what the retry observer decided. */
  writ(id: string): Promise<WritReport | undefined>
  /** One rig with its engines. */
  rig(id: string): Promise<RigReport | undefined>
}

/** Who acts, and why. Both go into the log. */
export interface By {
  readonly who: string
  readonly why?: string
}

/** One item, or all that match. Which states an action takes is its own; `state` narrows it. */
export type Target = string | { readonly [K in Exclude<keyof ItemQuery, 'cursor' | 'limit'>]?: ItemQuery[K] }

/** What may be paused: everything of a queue, or of a type. */
export type PauseTarget = { readonly queue: string } | { readonly type: string }

/** How a bulk action is watched. */
export interface Watching {
  /** Called after every page. */
  readonly onProgress?: (report: ActionReport) => void
  /** Stops after the page under way; {@link Ops.proceed} goes on with it. */
  readonly signal?: AbortSignal
}

/** How an action is gone on with. `who` and `why` are for the log; default: those of the action. */
export interface ProceedOptions extends Watching, Partial<By> {}

/** How an act on one item or many is carried out: by whom, why, watched by whom. */
export interface ActOptions extends By, Watching {
  /** Only counts. */
  readonly dryRun?: boolean
  /** How many items are changed by one commit. Default 500. */
  readonly pageSize?: number
}

/** How dead items are redriven. */
export interface RedriveOptions extends ActOptions {
  /**
   * One first, then ten, then the rest. Stops when one of those sent ahead fails of what any of them had died of (also when it is
   * tried again after that), dies again of something else, or has not ended in time.
   */
  readonly canary?: boolean
  /** How long to wait for the end of those sent ahead. Default 60 000. */
  readonly canaryWaitMs?: Ms
}

/** What can be done to items in bulk. */
export type Verb = 'redrive' | 'discard' | 'cancel' | 'runNow'

/** A bulk action, and how far it has come. */
export interface ActionReport {
  readonly id: string
  readonly verb: Verb
  readonly target: Target
  readonly who: string
  readonly why: string
  readonly startedAt: At
  /** How many matched when it began. */
  readonly total: number
  /** How many it has changed. */
  readonly done: number
  /** How many had moved on by themselves before it came to them. */
  readonly passed: number
  readonly state: 'running' | 'done' | 'stopped'
  /** Why it stopped before its end. */
  readonly because?: string
}

/** What stands where, who works on it, and what is paused. */
export interface Overview {
  readonly at: At
  readonly rows: readonly OverviewRow[]
  readonly workers: readonly WorkerReport[]
  readonly paused: { readonly queues: readonly string[]; readonly types: readonly string[] }
}

/** One type on one queue. */
export interface OverviewRow {
  readonly queue: string
  readonly type: string
  readonly counts: Readonly<Record<ItemStateWord, number>>
  readonly completedPerMinute: number
  readonly failedPerMinute: number
  /** How long the oldest that could run has waited. Undefined: none waits. */
  readonly oldestWaitMs?: Ms
  /** How many live workers run this type from this queue. */
  readonly workers: number
}

/** A process that runs work, as it was last heard of. */
export interface WorkerReport extends Worker {
  readonly seenAt: At
  readonly isAlive: boolean
  /** How many items it holds now. Of `workers()` only, and absent while more than a thousand run in the fleet. */
  readonly holds?: number
}

/** One page of a list. */
export interface Page {
  readonly items: readonly ItemLine[]
  /** Cursor of the next page. */
  readonly next?: string
}

/**
 * An item in a list. Payloads are not loaded for it; `item(id)` has them. Of an error there is the first line, at most 300
 * characters, through `redact`.
 */
export interface ItemLine extends ItemSummary {
  readonly id: string
  readonly type: string
  /** Where it stands, in the word that everything uses. */
  readonly state: ItemStateWord
}

/** One item, with its history and what it carries. Its payloads and errors have been through `redact`. */
export interface ItemReport extends ItemLine {
  /** Every run, with its class, rule, error, worker and times. Empty where the backend keeps none. */
  readonly attempts: readonly Attempt[]
  /** Its life in order, as far as the backend remembers it. */
  readonly life: readonly Moment[]
  /** The encoded input. Absent where it is no longer kept. */
  readonly input?: string
  /** The encoded result, once it succeeded. */
  readonly result?: string
  /** What its run reported last, encoded. */
  readonly progress?: string
  /** Ids of the items that it queued, at most a hundred of them. */
  readonly children: readonly string[]
  /** Undefined: its record has expired. */
  readonly group?: { readonly open: number; readonly value?: string }
  /** What it waits for, while a gate holds it. */
  readonly waitsFor?: readonly string[]
}

/** One step of an item's life. */
export interface Moment {
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
export interface PreviewOptions {
  /** Default: what the live workers of that type say their policy is, else the default policy. */
  readonly retry?: RetryPolicyOptions
}

/** What would become of a failure. */
export interface Preview {
  readonly type: string
  readonly class: FailureClass
  /** The rule of the classifier that decided. */
  readonly rule: string
  /** Where the policy came from. */
  readonly policyFrom: 'options' | 'worker' | 'default'
  /** Each attempt, the first included, and the span in which chance places it, counted from the first. */
  readonly attempts: readonly { readonly attempt: number; readonly earliestMs: Ms; readonly latestMs: Ms }[]
  /** In words: what happens, and what it ends as. */
  readonly text: string
}

/** A schedule, and when it fires next. */
export interface ScheduleReport {
  readonly name: string
  readonly spec: string
  readonly nextAt: At
  /** The next fires, `nextAt` first. Only `nextAt` where the rule is a function of the program. */
  readonly fires: readonly At[]
  readonly timeZone?: string
  /** Between which of the fires the clocks of its zone change, and by how much. */
  readonly changes: readonly { readonly at: At; readonly byMs: Ms }[]
}

/** Options of `audit`. */
export interface AuditOptions {
  /** Mends what can be mended, and logs it. */
  readonly repair?: By
  /** Looks for groups that never closed among all that has ended, and not only among the last 2,000 of each ending. Default false. */
  readonly thorough?: boolean
  /** Called after every page of items. */
  readonly onProgress?: (report: AuditReport) => void
  /** Stops after the page under way; the report then says that it is not complete. */
  readonly signal?: AbortSignal
}

/** What `audit` looked at, and what it found. */
export interface AuditReport {
  /** How many unfinished items were looked at. */
  readonly checked: number
  /** How many findings there are, and how many of them were repaired. */
  readonly found: number
  readonly repaired: number
  /** The first thousand of them. */
  readonly findings: readonly Finding[]
  /** False: it was told to stop before it had seen everything. */
  readonly isComplete: boolean
  /** What it did not look at though nobody stopped it, and how much of that there is. Empty: it has looked at everything. */
  readonly unseen: readonly { readonly code: UnseenCode; readonly count: number; readonly text: string }[]
}

/** What an audit may have to pass over, as a word that programs can compare. */
export type UnseenCode =
  /** Items that ended long ago: a group of theirs that never closed is looked for only with `thorough`. */
  | 'ended'
  /** Items of groups beyond those that are remembered during one audit. */
  | 'groups'
  /** Groups that changed at every look. */
  | 'restless'
  /** Held items whose waits reach further than is looked in one go: they were taken to be able to end. */
  | 'waits'

/** What breaks the liveness invariant, as a word that programs can compare. */
export type FindingCode =
  /** Running without a lease, or pending without a time, a hold or a place: in no list at all. */
  | 'stray'
  /** Held by a gate that does not exist. */
  | 'gate-missing'
  /** Held by a gate that was not told of the end of a member. */
  | 'gate-missed'
  /** Held, without a time limit, by a gate over something that nobody has enqueued. */
  | 'gate-unknown'
  /** Held by gates that wait for each other. */
  | 'gate-cycle'
  /** Held by a pause that is over. */
  | 'pause-over'
  /** Its lease ended long ago, and live workers do not take it back. */
  | 'lapsed'
  /** The open count of its group is not the number of its unfinished items. */
  | 'group-count'
  /** No live worker looks at its queue. */
  | 'no-worker'
  /** No live worker of its queue handles its type. */
  | 'unknown-type'

/** One thing that breaks the liveness invariant. */
export interface Finding {
  readonly code: FindingCode
  /** The item that it is about; the oldest where it is about many. */
  readonly id: string
  readonly text: string
  /** What mends it, in words. */
  readonly repair: string
  /** Whether `audit({ repair })` does it by itself. */
  readonly canRepair: boolean
  readonly isRepaired: boolean
}

/** Which writs are meant. */
export interface WritQuery {
  readonly phase?: string
  readonly type?: string
  readonly parentId?: string
  readonly limit?: number
  readonly offset?: number
}

/** A writ in a list. */
export interface WritLine {
  readonly id: string
  readonly type: string
  readonly title: string
  readonly phase: string
  readonly parentId?: string
  readonly createdAt: string
  readonly updatedAt: string
}

/** One writ, with everything that says how it goes on. */
export interface WritReport extends WritLine {
  readonly body: string
  readonly resolution?: string
  /** Of both directions; `kind` is what a link means to a plugin. */
  readonly links: readonly {
    readonly to: string
    readonly from: string
    readonly label: string
    readonly kind?: string
  }[]
  /** At most a hundred of them, the newest first. */
  readonly children: readonly WritLine[]
  /** Oldest first: each is one attempt. At most the last twenty. */
  readonly rigs: readonly RigReport[]
  /** How many rigs it may have before it stays stuck. */
  readonly cap: number
  /** What it waits for or why it stands still, the deciding reason first. Empty once it has ended. */
  readonly reasons: readonly WritReason[]
  /** What the retry observer makes of it as it is now, and why. Absent where the guild has none. */
  readonly retry?: { readonly decision: 'requeue' | 'leave'; readonly why: string }
}

/** One rig of a writ: one attempt, with its engines. */
export interface RigReport {
  readonly id: string
  readonly writId: string
  /** `running` and `blocked` go on; the others are ends. */
  readonly status: string
  /** From 1: which rig of its writ it is. */
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
    /** How many times it was tried again inside this rig. */
    readonly retries?: number
    /** It is not tried again before this. */
    readonly heldUntil?: string
  }[]
  readonly createdAt: string
  readonly endedAt?: string
}
