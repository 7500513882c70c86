import type { FailureClass } from '../core/failure.js'
import type { RetryPolicy } from '../core/retry-policy.js'
import type { At, Ms } from '../core/time.js'
import type { TreeMark } from './tree.js'

/** The words of `@ayepi/work` for where an item stands. `failed` exists in the public type; nothing ever writes it. */
export type Status = 'pending' | 'running' | 'success' | 'dead'

/** How an item ended. The first two are successes; the rest say why it is dead. */
export type Ending = 'done' | 'dropped' | DeadEnding
/** Why a dead item was given up. */
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
  /** Gates to tell when it settles. */
  readonly gates?: readonly string[]
  /** Trees that it is part of: their gates hear of it when it and everything that it queued has ended. */
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
  // Kept for what comes next, so that it needs no other envelope. Nothing reads these yet.
  /** At most one item with this key is open at a time. */
  readonly uniqueKey?: string
  /** For how long the key stays taken, beyond its item. */
  readonly uniqueFor?: Ms
  /** The key whose limit counts this item while it runs. */
  readonly limitKey?: string
  /** How many steps of it are on record: none, and a run has nothing to read. */
  readonly steps?: number
  /** The key of the budget that its retries draw from. */
  readonly retryBudget?: string
  readonly [unknown: string]: unknown
}

/** Temporary ownership of an item. The token is unguessable; the fence rises by one with every lease of that item. */
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
export interface Claimed {
  readonly lease: Lease
  readonly envelope: Envelope
  readonly lapses: number
  readonly crashes: number
  /** Deliveries of this message, put-backs included: how long an unknown type has been going round. */
  readonly deliveries: number
  /** Somebody cancelled it while an earlier run had it: why. It is not to run any more. */
  readonly cancelled?: string
  /** For a gate item that was freed by its gate: what the gate decided. Absent when its time ran out first. */
  readonly gate?: { readonly met: boolean }
}

/** Why a pending item is not in the ready index. It becomes ready when the hold goes, or at its due time. */
export interface Hold {
  readonly by: 'gate' | 'pause' | 'limit'
  readonly key: string
  /** Where news of a gate can get lost: how soon to look for oneself first. It doubles from there. Default 1000. */
  readonly pollMs?: Ms
}

/** One run of one item, as it is remembered. */
export interface Attempt {
  readonly attempt: number
  readonly startedAt: At
  readonly endedAt: At
  readonly worker: string
  readonly class?: FailureClass
  readonly rule?: string
  readonly error?: string
  readonly fingerprint?: string
}
