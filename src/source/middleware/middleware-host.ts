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

/** The clock that a middleware was given, else its hopper's, else real time. */
export function clockIn(ctx: Context, own: Clock | undefined): Clock {
  return own ?? ctx.get(hostKey)?.clock ?? systemClock
}
