import type { Verdict } from '../core/failure.js'
import type { At, Ms } from '../core/time.js'
import type { Claimed, Envelope, Hold } from '../ports/item.js'
import type { Effect } from '../ports/settlement.js'

/** An item that a run wants queued, with the queue it goes to. */
export interface Child {
  readonly item: Envelope
  readonly queue: string
  readonly delayMs: Ms
  readonly hold?: Hold
}

export type OpenGate = Extract<Effect, { readonly do: 'openGate' }>

/** A value for the group, encoded. `expect`: the version that it was folded on. */
export interface Contribution {
  readonly value: string
  readonly final: boolean
  readonly expect?: number
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
      readonly fingerprint: string
      readonly verdict: Verdict
      /** What the user's own classifier said. */
      readonly said?: 'retry' | 'abort'
    }
  /** A gate that has not decided where nothing would tell it: it looks again later. */
  | { readonly kind: 'waiting'; readonly delayMs: Ms }
  /** Stopped because its process shuts down: handed back, without an attempt. */
  | { readonly kind: 'interrupted' }
  /** Its deadline had passed: before it could run, or while it ran and was strict about it. */
  | { readonly kind: 'expired'; readonly hasRun?: boolean }
  /** Somebody cancelled it, and why. */
  | { readonly kind: 'cancelled'; readonly why: string; readonly hasRun: boolean }
  /** Not run: earlier runs of it died with their process too often. */
  | { readonly kind: 'crashed'; readonly crashes: number }
  /** Not run: nobody knows its type, or its input cannot be read. */
  | { readonly kind: 'unroutable'; readonly error: string }
  | { readonly kind: 'unreadable'; readonly error: string; readonly rule: 'decode' | 'schema' }

/** A run that has ended: everything its settlement depends on. */
export interface Ran {
  readonly item: Claimed
  readonly startedAt: At
  readonly endedAt: At
  readonly worker: string
  readonly outcome: Outcome
}
