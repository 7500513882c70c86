import type { BlockRecord, RigTemplateEngine } from '../../fabricator/engine-design.js'
import type { CompiledGivens, CompiledWhen } from './expression.js'

/** Where a rig is. It is *active* while it is `running` or `blocked`; a writ has at most one active rig. */
export type RigStatus = 'running' | 'blocked' | 'stuck' | 'completed' | 'failed' | 'cancelled'

/** Where an engine is. `completed` and `skipped` let what is downstream go on. */
export type EngineStatus = 'pending' | 'running' | 'blocked' | 'completed' | 'failed' | 'cancelled' | 'skipped'

/** A try of an engine that failed and was tried again in its rig. */
export interface EngineAttempt {
  readonly startedAt: string
  readonly endedAt: string
  readonly status: 'failed'
  readonly error: string
  readonly sessionId?: string
}

/** Which process runs an engine now. A result with another token is discarded. */
export interface EngineClaim {
  readonly owner: string
  readonly token: string
  /** When others may take over. Absent under `start({ work })`: the lease of the work item is the only one there. */
  readonly leaseUntil?: string
  /** The fence of the work item: a higher one takes over. */
  readonly fence?: number
  /** Which handing over made that item: one of another takes over, too, because then the item was lost. */
  readonly handover?: string
  /** Its holder stopped and gave it back: taking over from it is no lapse. */
  readonly isGivenBack?: boolean
  /** The token of the claim that it took over and counted as a lapse. */
  readonly lapsed?: string
}

/** One node of a rig. */
export interface EngineInstance {
  readonly id: string
  readonly designId: string
  readonly status: EngineStatus
  readonly upstream: readonly string[]
  /** Compiled: what was inserted from the writ is never read as an expression again. */
  readonly givensSpec: CompiledGivens
  readonly when?: CompiledWhen
  readonly yields?: unknown
  readonly error?: string
  readonly sessionId?: string
  readonly startedAt?: string
  readonly completedAt?: string
  readonly block?: BlockRecord
  /** The block that it came out of, for its next run. */
  readonly priorBlock?: BlockRecord
  readonly attempts?: readonly EngineAttempt[]
  /** How many times it was tried again. */
  readonly attemptCount?: number
  /** It is not tried again before this. */
  readonly holdUntil?: string
  readonly claim?: EngineClaim
  /** How many claims of the present attempt lapsed. */
  readonly lapses?: number
  /** How often the present try came out of a block, or was put off. */
  readonly resumes?: number
  /** It did not run in this rig: what it came to is that of this earlier one. */
  readonly carriedFrom?: string
  /** It added engines to its rig. */
  readonly hasGrafted?: boolean
}

/** Engines that wait to be added to a rig. */
export interface PendingGraft {
  readonly engineId: string
  readonly engines: readonly RigTemplateEngine[]
  readonly tail?: string
}

/** One attempt at a writ, as it is read. */
export interface RigDoc {
  readonly id: string
  readonly writId: string
  readonly status: RigStatus
  readonly engines: readonly EngineInstance[]
  readonly createdAt: string
  /** When it first left progress; being stuck counts. */
  readonly terminalAt?: string
  readonly resolutionEngineId?: string
  readonly pendingGrafts?: readonly PendingGraft[]
  /** Its work was done, and a watcher threw this where its end was to be recorded. */
  readonly refusal?: string
  /** From 1: which rig of its writ it is. */
  readonly attempt: number
}

/** A rig as it is kept: its engines are separate documents, so a step rewrites one engine and not all. */
export interface RigRow extends Omit<RigDoc, 'engines'> {
  /** Rises with every change of its engines: two concurrent changes cannot both commit. */
  readonly step: number
}

/** An engine as it is kept, under `<rigId>/<engineId>`. */
export interface EngineRow extends Omit<EngineInstance, 'id'> {
  readonly id: string
  readonly rigId: string
  readonly engineId: string
  /** Its place in the rig. */
  readonly place: number
  /** Which of the guild's slots for running engines it holds. */
  readonly slot?: string
  /** Its session has ended and waits to be collected. */
  readonly isSessionOver?: boolean
  /** Run as a work item, and whether that has been handed over. */
  readonly item?: 'due' | 'pushed'
}

/** Something that a crawl can do about a rig, found by index. It changes in the transactions that change the rig. */
export interface QueueRow {
  readonly id: string
  readonly kind: QueueKind
  readonly rigId: string
  readonly engineId: string
  /** Sorts by age of the rig, then by place in it. */
  readonly at: string
  readonly dueAt: string
  readonly sessionId?: string
}

/**
 * `session`: waits for a session to end; `collect`: its session has ended; `graft`: engines wait to be added; `block`: to be
 * checked when due; `run`: ready; `hold`: ready when due; `launch` and `launch-hold`: the same of one that launches sessions; `lease`: lapsed when due; `push`: to be handed to the work engine;
 * `item`: handed over.
 */
export type QueueKind =
  | 'session'
  | 'collect'
  | 'graft'
  | 'block'
  | 'run'
  | 'hold'
  | 'launch'
  | 'launch-hold'
  | 'lease'
  | 'push'
  | 'item'

/**
 * A writ that Spider has to do with, one document each: that is what keeps a writ from having two active rigs.
 * `ready`: may get a rig; `delayed`: not before `dueAt`; `held`: waits for writs that it follows; `active`: has an active rig;
 * `cancelling`: has one, and was cancelled by a process that runs no engines; `children`: its rig has completed, and it waits for its
 * children; `stuck`: a gate made it stuck; `recheck`: stuck, and something in the way has changed.
 */
export interface DispatchRow {
  readonly id: string
  /** The type of the writ. */
  readonly type: string
  readonly state: 'ready' | 'delayed' | 'held' | 'active' | 'cancelling' | 'children' | 'stuck' | 'recheck'
  /** It is open, and its type is known to have a template. */
  readonly isOpen: boolean
  /** Of `delayed`; and of `cancelling`, when its rig is ended. */
  readonly dueAt?: string
  /** Sorts by age of the writ. */
  readonly at: string
  readonly rigId?: string
}

/** `writId` waits for `blockerId`. */
export interface WaitRow {
  readonly id: string
  readonly blockerId: string
  readonly writId: string
  readonly at: string
}

/**
 * A writ that others wait for (`waited`), or that has ended while some still wait (`ended`). The one that
 * begins to wait and the one that ends both write it: of two concurrent ones, one sees the other.
 */
export interface GateRow {
  readonly id: string
  readonly state: 'waited' | 'ended'
  readonly at: string
}

/** A writ that has to have ended by then. */
export interface DeadlineRow {
  readonly id: string
  readonly dueAt: string
}

/** A place for one running engine. There are as many as may run at the same time. */
export interface SlotRow {
  readonly id: string
  readonly rigId: string
  readonly engineId: string
}

/** A question to a person, asked by an engine that waits for the answer. */
export interface InputRequestDoc {
  readonly id: string
  readonly rigId: string
  readonly engineId: string
  readonly questions: unknown
  readonly answers?: unknown
  readonly status: 'pending' | 'completed' | 'rejected'
  readonly message?: string
}

/** Whether a rig can still go on by itself. */
export const isActive = (status: RigStatus): boolean => status === 'running' || status === 'blocked'

/** Whether what is downstream of an engine may go on. */
export const isSettled = (status: EngineStatus): boolean => status === 'completed' || status === 'skipped'
