import { type ErrorDetail, errorDetail } from '../../core/failure/error-detail.js'
import type { Verdict } from '../../core/failure/failure.js'
import { fingerprint } from '../../core/failure/fingerprint.js'
import { errorText } from '../../core/text/error-text.js'
import type { At, Ms } from '../../core/time/time.js'
import type { ClaimedItem, Envelope, Hold } from '../../ports/item.js'
import type { CommitResult, Effect } from '../../ports/settlement.js'

/** An item that a run wants queued, with the queue it goes to. */
export interface Child {
  readonly item: Envelope
  readonly queue: string
  readonly delayMs: Ms
  readonly hold?: Hold
}

export type OpenGate = Extract<Effect, { readonly do: 'openGate' }>

/** A value for the group, encoded. `ifVersion`: the version that it was folded on. */
export interface Contribution {
  readonly value: string
  readonly final: boolean
  readonly ifVersion?: number
}

/** How a run ended. */
export type Outcome =
  | {
      readonly kind: 'returned'
      readonly result?: string
      readonly contributions: readonly Contribution[]
      readonly children: readonly Child[]
      readonly gates: readonly OpenGate[]
    }
  | {
      readonly kind: 'threw'
      readonly error: string
      readonly detail?: ErrorDetail
      readonly fingerprint: string
      readonly verdict: Verdict
      /** The decision of the user's `onFailure`. */
      readonly override?: 'retry' | 'abort'
    }
  /** It goes back and runs later, without spending an attempt: a gate without a decision, or a run that is put off. */
  | { readonly kind: 'waiting'; readonly delayMs: Ms }
  /** Stopped because its process shuts down: it goes back, without spending an attempt. */
  | { readonly kind: 'interrupted' }
  /** Its deadline had passed: before it could run, or while it ran and was strict about it. */
  | { readonly kind: 'expired'; readonly hasRun?: boolean }
  /** A caller cancelled it, and why. */
  | { readonly kind: 'cancelled'; readonly why: string; readonly hasRun: boolean }
  /** Not run: earlier runs of it died with their process too often. */
  | { readonly kind: 'crashed'; readonly crashes: number }
  /** Not run: its type is unknown, or its input cannot be read. */
  | { readonly kind: 'unroutable'; readonly error: string }
  | { readonly kind: 'unreadable'; readonly error: string; readonly rule: 'decode' | 'schema' }

/** A run that has ended: everything its settlement depends on. */
export interface FinishedRun {
  readonly item: ClaimedItem
  readonly startedAt: At
  readonly endedAt: At
  readonly worker: string
  readonly outcome: Outcome
}

export type Refusal = Extract<CommitResult, { readonly kind: 'refused' }>

/** An outcome that the backend refuses is poison: the item is dead-lettered, with the limit in its reason. */
export function refusedOutcome(refusal: Refusal): Outcome {
  const rule = refusal.code === 'TOO_LARGE' ? 'too-large' : 'bad-name'
  return failureOf(refusal.message, { class: 'poison', rule })
}

export function failureOf(reason: unknown, verdict: Verdict, override?: 'retry' | 'abort'): Outcome {
  const detail = errorDetail(reason)
  return {
    kind: 'threw',
    error: errorText(reason),
    ...(detail === undefined ? {} : { detail }),
    fingerprint: fingerprint(reason, verdict),
    verdict,
    ...(override === undefined ? {} : { override }),
  }
}
