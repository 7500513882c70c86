import { OptionTypeError } from '../../core/options.js'
import { type Clock, systemClock } from '../../core/time/clock.js'
import type { Logger } from '../hopper/hopper-options.js'
import { type Context, ownContextKey } from '../message/context.js'

/** What a hopper lends to the middleware that runs in it. There is none where a chain is called by hand. */
export interface Host {
  /** The hopper's name. */
  readonly name: string
  readonly clock: Clock
  readonly logger: Logger
  /** Counts a failure of an idempotency store. */
  readonly countIdempotencyError: () => void
}

/** Under which a hopper hands itself inwards. */
export const hostKey = ownContextKey<Host>('host')

/** Reads the clock of a middleware's own; `undefined` leaves it to the hopper. */
export function ownClock(path: string, given: Clock | undefined): Clock | undefined {
  if (given === undefined) return undefined
  if (typeof given?.now === 'function' && typeof given.after === 'function') return given
  throw new OptionTypeError(path, 'a Clock: { now, monotonic, after, sleep }', given)
}

/** The clock that a middleware was given, else its hopper's, else real time. */
export function clockIn(ctx: Context, own: Clock | undefined): Clock {
  return own ?? ctx.get(hostKey)?.clock ?? systemClock
}
