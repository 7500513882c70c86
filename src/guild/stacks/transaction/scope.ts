import type { ReentryDepthError } from '../errors.js'
import type { Detachment } from './detached.js'
import type { Frame } from './transaction.js'

/** What travels with a chain of calls, across every `await`. */
export interface Scope {
  /** The transaction's piece of code that runs now; undefined outside of transactions. */
  readonly frame: Frame | undefined
  /** How many post-commit hops led here. */
  readonly hops: number
  /** Shared by everything that one call set in motion. */
  readonly chain: Chain
  /** The delivery that runs now, if this is a phase-2 handler. */
  readonly slot: ScopeSlot | undefined
  /** The delivery that runs now, if this is the handler of a durable watcher. */
  readonly delivery: ScopeSlot | undefined
  /** Whether this is, or was set in motion by, the handler of a durable watcher. */
  readonly isDurable: boolean
  /** The transaction that `detached` stepped out of. */
  readonly detachment: Detachment | undefined
}

/** What one call set in motion. */
export interface Chain {
  /** The end of a chain that was too long: the call that began it rejects with it, even if a handler swallowed it. */
  refusal?: ReentryDepthError
}

/** The turn of one transaction to have its phase-2 handlers run, or of one event to be delivered to a durable watcher. */
export interface ScopeSlot {
  isOver: boolean
}

/** The scope of a call that comes from outside. */
export function outside(): Scope {
  return {
    frame: undefined,
    hops: 0,
    chain: {},
    slot: undefined,
    delivery: undefined,
    isDurable: false,
    detachment: undefined,
  }
}
