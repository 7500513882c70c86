import type { ErrorDetail } from '../core/failure/error-detail.js'
import type { FailureClass } from '../core/failure/failure.js'
import type { RetryPolicy } from '../core/retry/retry-policy.js'
import type { At, Ms } from '../core/time/time.js'

/** The words of `@ayepi/work` for where an item stands. `failed` exists in the public type; nothing ever writes it. */
export type ItemStatus = 'pending' | 'running' | 'completed' | 'dead'

/** How an item ended. The first two are successes; the rest say why it is dead. */
export type Ending = 'completed' | 'dropped' | DeadEnding
/** Why an item died. */
export type DeadEnding = 'exhausted' | 'aborted' | 'expired' | 'cancelled' | 'crashed' | 'unroutable'

/**
 * One item as it stands on a queue: plain JSON, a wire contract. Backends read the named fields into columns and keep
 * the rest, so that unknown fields survive a re-push. Only `id`, `type`, `groupId` and `input` are required to run.
 */
export interface Envelope extends EnvelopeHead {
  /** The input as text, encoded by the type's codec. */
  readonly input: string
}

/** An envelope without its payload: all that lists and waiters ever load. */
export interface EnvelopeHead {
  readonly v?: 1
  readonly id: string
  readonly type: string
  readonly groupId: string
  /** When it was first enqueued; only a redrive changes it. */
  readonly queueAt: At
  /** The earliest start of this delivery. */
  readonly startAt: At
  /** Retry attempt, from 1. */
  readonly attempt: number
  /** Higher runs first. */
  readonly priority: number
  /** Doer group: a hint for balancing, not the group of the root. */
  readonly group?: string
  readonly retry?: Partial<RetryPolicy>
  readonly deadline?: At
  /** Id of the item whose handler queued this one. */
  readonly parent?: string
  /** Ids its gate waited on, when a fired gate queued it. */
  readonly dependents?: readonly string[]
  /** Texts of its input that begin with this stand for results of other items. */
  readonly references?: string
  /** Gates to notify when it settles. */
  readonly gates?: readonly string[]
  /** Trees that it is part of: their gates are notified when it and everything that it queued has ended. */
  readonly trees?: readonly TreeMark[]
  readonly tags?: readonly string[]
  /** Inbox of the instance that waits for it. */
  readonly waiter?: string
  readonly trace?: { readonly traceparent: string; readonly tracestate?: string }
  readonly redrives?: number
  /** How long one run may take. A run that takes longer counts as a failed attempt. */
  readonly runTimeout?: Ms
  /** What has not ended at its deadline expires, whatever its handler returns. */
  readonly strictDeadline?: boolean
  readonly payloadVersion?: number
  readonly [unknown: string]: unknown
}

/** Temporary ownership of an item. The token is unguessable; the fence rises with every lease of that item, not always by one. */
export interface Lease {
  readonly id: string
  readonly queue: string
  readonly token: string
  readonly fence: number
  readonly until: At
}

/**
 * A leased item. Three counters with three owners: `envelope.attempt` is the policy's; `lapses` is the backend's (leases
 * that ended by expiry, never put-backs); `crashes` are the lapses of a lease whose last extension said that its handler ran.
 */
export interface ClaimedItem {
  readonly lease: Lease
  readonly envelope: Envelope
  readonly lapses: number
  readonly crashes: number
  /** Deliveries of this message, put-backs included: how long an unknown type has been going round. */
  readonly deliveries: number
  /** Why it was cancelled, if that happened during an earlier run. It must not run again. */
  readonly cancelReason?: string
  /** For a gate item that was freed by its gate: what the gate decided. Absent when its time ran out first. */
  readonly gate?: { readonly met: boolean }
}

/** Why a pending item is not in the ready index. It becomes ready when the hold goes, or at its due time. */
export interface Hold {
  readonly by: 'gate' | 'pause' | 'limit'
  readonly key: string
  /** Where a gate's notification can get lost: the first poll comes after this long, and each wait doubles. Default 1000. */
  readonly pollMs?: Ms
}

/** How a run ended that neither failed nor succeeded: the `rule` of its attempt, which then has no class. */
export type EndedRun = 'cancelled' | 'expired' | 'deferred'

/** One run of one item, as it is remembered. */
export interface Attempt {
  readonly attempt: number
  readonly startedAt: At
  readonly endedAt: At
  readonly worker: string
  readonly class?: FailureClass
  /** What decided its class. Of a run that neither failed nor succeeded: how it ended (`EndedRun`). */
  readonly rule?: string
  readonly error?: string
  readonly fingerprint?: string
  /** The error with its stack and its causes, limited in size. Plain JSON. */
  readonly detail?: ErrorDetail
}

/** That an item belongs to a tree which a gate waits for, and whether that gate wants its end or its success. */
export interface TreeMark {
  readonly key: string
  readonly of: 'done' | 'success'
}

/**
 * Under which name a gate counts the whole tree below an item: the item itself while it queues nothing, and otherwise the
 * item of this id, which ends when everything below it has. One name for both, because it is not known beforehand which it will be.
 */
export function treeId(id: string, of: TreeMark['of']): string {
  return of === 'success' ? `${id}/tree` : `${id}/tree-done`
}

/** The item at the top of a tree; undefined for what is no tree. */
export function topOf(treeId: string): string | undefined {
  return /^(?<id>.+)\/tree(?:-done)?$/s.exec(treeId)?.groups?.['id']
}
