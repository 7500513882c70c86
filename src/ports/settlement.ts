import type { FailureClass } from '../core/failure/failure.js'
import type { At, Ms } from '../core/time/time.js'
import type { Attempt, DeadEnding, Envelope, Hold, ItemStatus, Lease } from './item.js'

/**
 * Everything that is ever written, as data. Pure functions make effects; a backend applies the effects of one settlement
 * atomically, and only if its guard holds. The words are the domain's: each backend stores them in its own natural shape.
 */
export type Effect =
  // Items
  /** A new item. With a `hold`, `delayMs` is when it is freed at the latest (`Infinity`: only by its hold). */
  | {
      readonly do: 'enqueue'
      readonly item: Envelope
      readonly queue: string
      readonly delayMs: Ms
      readonly hold?: Hold
      /** Born leased (skipQueue): the worker that will run it, and for how long it holds it. Not running until an extension says so. */
      readonly leasedTo?: { readonly worker: string; readonly token: string; readonly leaseMs: Ms }
    }
  | { readonly do: 'recordAttempt'; readonly id: string; readonly was: Attempt }
  /** Back to pending with this attempt number, ready after `delayMs`. */
  | {
      readonly do: 'retry'
      readonly id: string
      readonly attempt: number
      readonly delayMs: Ms
      readonly reason: 'retry' | 'deferred'
    }
  /** Put back: spends no attempt. Without a delay it keeps its due time and hence its place. */
  | { readonly do: 'release'; readonly id: string; readonly delayMs?: Ms; readonly hold?: Hold }
  | {
      readonly do: 'complete'
      readonly id: string
      readonly ending: 'completed' | 'dropped'
      readonly result?: string
      readonly keepMs: Ms
    }
  | {
      readonly do: 'deadLetter'
      readonly id: string
      readonly ending: DeadEnding
      readonly class: FailureClass
      readonly error: string
      readonly keepMs: Ms
      /** What it died of, where no run reported it: it is grouped by this instead of by the fingerprint of its last run. */
      readonly fingerprint?: string
    }
  /** Redrive: pending again, attempt 1, history kept. A deadline in the past is cleared. */
  | { readonly do: 'redrive'; readonly id: string; readonly delayMs: Ms }
  /** Discard: nothing of it remains. */
  | { readonly do: 'delete'; readonly id: string }
  // Groups and gates: counters that the backend moves and compares inside the same atomic step
  /** Counts the pushes of its settlement in. One whose id exists already is not pushed, and comes off again. */
  | { readonly do: 'joinGroup'; readonly groupId: string; readonly count: number }
  /** Reaching 0 closes the group, once. */
  | { readonly do: 'leaveGroup'; readonly groupId: string; readonly count: number }
  /** The group's value. `ifVersion` is the version that `append` was folded on; a first `final` wins. */
  | {
      readonly do: 'setGroupValue'
      readonly groupId: string
      readonly value: string
      readonly final: boolean
      readonly ifVersion?: number
    }
  /** Holds `heldId` until `need` of `members` are done (or completed). Members that have already ended count immediately. */
  | {
      readonly do: 'openGate'
      readonly key: string
      readonly heldId: string
      readonly members: readonly string[]
      readonly need: number
      readonly of: 'done' | 'success'
    }
  /** A member ended. `need <= 0` is met, `need > left` is impossible; either frees the held item, once. */
  | { readonly do: 'notifyGate'; readonly key: string; readonly member: string; readonly completed: boolean }
  // People and signals
  /** Notifies one instance's inbox. `complete`, `deadLetter` and a closing group notify the recorded watchers by themselves. */
  | { readonly do: 'notify'; readonly inbox: string; readonly ids: readonly string[] }
  | { readonly do: 'schedule'; readonly name: string; readonly spec: string; readonly nextAt: At }
  /** Marks a running item; its worker is notified by inbox or heartbeat. */
  | { readonly do: 'requestCancel'; readonly id: string; readonly reason: string }
  | { readonly do: 'pause' | 'resume'; readonly what: 'queue' | 'type'; readonly name: string }
  | { readonly do: 'log'; readonly who: string; readonly why: string; readonly what: string }

/** The effect with this word, or one of these words. */
export type EffectOf<Word extends Effect['do']> = Extract<Effect, { readonly do: Word }>

/** When the guard does not hold, none of the effects happen. */
export type Guard =
  /** A run settles. A lease settles once. */
  | { readonly by: 'lease'; readonly lease: Lease }
  /** An enqueue: repeating it is harmless. */
  | { readonly by: 'absent'; readonly id: string }
  /** A person or a cancel acts. */
  | { readonly by: 'status'; readonly id: string; readonly in: readonly ItemStatus[] }
  /** A schedule fires once per fleet: its `nextAt` is still `at` (undefined: it does not exist yet). */
  | { readonly by: 'schedule'; readonly name: string; readonly at: At | undefined }
  /** Pause, log. */
  | { readonly by: 'none' }

/** What one act writes: all of its effects together if the guard holds, and none of them otherwise. */
export interface Settlement {
  readonly guard: Guard
  readonly effects: readonly Effect[]
}

/** A group's value: the encoded text, whether it is locked, and the version that `append` folds on. */
export interface GroupValue {
  readonly value?: string
  readonly final: boolean
  readonly version: number
}

/** A group whose last open item settled. */
export interface ClosedGroup {
  readonly groupId: string
  readonly value?: string
  /** A caller had registered to be notified of it: it is not unhandled. */
  readonly watched?: boolean
}

/** What became of one settlement of a batch. One bad settlement never fails its neighbours. */
export type CommitResult =
  /** It happened, now. `closed`: the groups whose count it brought to 0. */
  | { readonly kind: 'applied'; readonly closed: readonly ClosedGroup[] }
  /** It had happened before (the reply was lost), or the id exists: `id` is the receipt. */
  | { readonly kind: 'repeated'; readonly id: string }
  /** The lease or the status moved on: nothing happened, and the run's signal must fire. */
  | { readonly kind: 'stale' }
  /** The group's version moved: fold `append` on `now` and commit again. */
  | { readonly kind: 'conflict'; readonly groupId: string; readonly now: GroupValue }
  /** It is not accepted: it never can be, or (`STORE_FULL`) not as long as the backend is full. Nothing happened. */
  | {
      readonly kind: 'refused'
      readonly code: 'TOO_LARGE' | 'BAD_NAME' | 'BAD_TEXT' | 'STORE_FULL'
      readonly message: string
      readonly limit?: number
    }
  /** A plain port failed on this one. Nothing happened that a repetition would not complete. */
  | { readonly kind: 'failed'; readonly error: unknown }
