import { MillraceError } from '../../core/error.js'
import type { Clock } from '../../core/time/clock.js'
import type { At, Ms } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { Delivery } from '../../source/loop/delivery.js'
import { CancelledError } from '../../source/loop/errors.js'

/** The reason of `ctx.signal` when the deadline came while the handler was running. */
export class DeadlineError extends MillraceError {
  constructor(deadline: At) {
    super(
      'DEADLINE',
      `The deadline (${new Date(deadline).toISOString()}) came while this was running. Stop if you can.`,
      { facts: { deadline } },
    )
  }
}

/** The run took longer than its `runTimeout`: the reason of its signal, and what its attempt failed with. */
export class RunTimeoutError extends MillraceError {
  constructor(runTimeout: Ms) {
    super(
      'RUN_TIMEOUT',
      `The run took longer than its runTimeout of ${runTimeout} ms and counts as a failed attempt. ` +
        'Pass ctx.signal to what the handler waits for, or raise runTimeout.',
      { facts: { runTimeout } },
    )
  }
}

/** A run that is over, whatever its handler does: cancelled, out of time, or past a strict deadline. */
export class RunOver {
  readonly reason: CancelledError | RunTimeoutError | DeadlineError

  constructor(reason: CancelledError | RunTimeoutError | DeadlineError) {
    this.reason = reason
  }
}

/** Fires the signal when the run has used up its time or its deadline comes. Most items have neither, and no timer. */
export function armLimits(clock: Clock, delivery: Delivery<ClaimedItem>, now: At): (() => void) | undefined {
  const { deadline, runTimeout } = delivery.item.envelope
  if (deadline === undefined && runTimeout === undefined) return undefined
  const disarms: (() => void)[] = []
  // When both fall together, the timeout comes first: the retry policy counts it.
  if (runTimeout !== undefined) {
    disarms.push(clock.after(runTimeout, () => delivery.abort(new RunTimeoutError(runTimeout))))
  }
  if (deadline !== undefined) {
    disarms.push(clock.after(Math.max(0, deadline - now), () => delivery.abort(new DeadlineError(deadline))))
  }
  return () => {
    for (const disarm of disarms) disarm()
  }
}

/**
 * What the handler returns, unless the run is over first. The signal asks a handler to stop; this does not wait until it does.
 * A lost lease or a shutdown does not end a run here: nothing of it may be written then, or the loop handles it.
 */
export function untilOver<T>(delivery: Delivery<ClaimedItem>, handling: Promise<T>, hasBegun = true): Promise<T> {
  const outer = delivery.onAbort
  return new Promise((resolve, reject) => {
    const check = (reason: unknown): void => {
      const over = overBy(delivery.item, reason, hasBegun)
      if (over !== undefined) reject(over)
    }
    delivery.onAbort = (reason) => {
      outer?.(reason)
      check(reason)
    }
    if (delivery.aborted) check(delivery.reason)
    handling.then(resolve, reject)
  })
}

/** Whether this reason ends the run. Nothing starts after its deadline; what has started may go on, unless it is strict. */
export function overBy({ envelope }: ClaimedItem, reason: unknown, hasBegun = true): RunOver | undefined {
  if (reason instanceof CancelledError || reason instanceof RunTimeoutError) return new RunOver(reason)
  if (reason instanceof DeadlineError && (!hasBegun || envelope.strictDeadline === true)) return new RunOver(reason)
  return undefined
}

/** Whether there is anything for `checkLate` to check. */
export const hasLimits = ({ envelope }: ClaimedItem): boolean =>
  envelope.runTimeout !== undefined || envelope.strictDeadline === true

/** Checks the limits once more: a handler that blocked the event loop has ended before any timer could fire. */
export function checkLate({ envelope }: ClaimedItem, tookMs: Ms, now: At): void {
  const { runTimeout, deadline, strictDeadline } = envelope
  if (runTimeout !== undefined && tookMs > runTimeout) throw new RunOver(new RunTimeoutError(runTimeout))
  if (strictDeadline === true && deadline !== undefined && now > deadline)
    throw new RunOver(new DeadlineError(deadline))
}
