import type { Clock } from '../../core/clock.js'
import { MillraceError } from '../../core/error.js'
import type { At, Ms } from '../../core/time.js'
import type { Claimed } from '../../ports/item.js'
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

/** A run that is over whatever its handler comes to: cancelled, out of time, or past a strict deadline. */
export class RunOver {
  readonly reason: CancelledError | RunTimeoutError | DeadlineError

  constructor(reason: CancelledError | RunTimeoutError | DeadlineError) {
    this.reason = reason
  }
}

/** Fires the signal when the run has used up its time or its deadline comes. Most items have neither, and no timer. */
export function armLimits(clock: Clock, delivery: Delivery<Claimed>, now: At): (() => void) | undefined {
  const { deadline, runTimeout } = delivery.item.envelope
  const disarms: (() => void)[] = []
  // Of two that fall together, the attempt's own comes first: it is what the retry policy counts.
  if (runTimeout !== undefined) {
    disarms.push(clock.after(runTimeout, () => delivery.abort(new RunTimeoutError(runTimeout))))
  }
  if (deadline !== undefined) {
    disarms.push(clock.after(Math.max(0, deadline - now), () => delivery.abort(new DeadlineError(deadline))))
  }
  if (disarms.length === 0) return undefined
  return () => {
    for (const disarm of disarms) disarm()
  }
}

/**
 * What the handler comes to, unless the run is over before. The signal asks a handler to stop; this does not wait for it to
 * obey. A lost lease or a shutdown is no end of this kind: there nothing of the run may be written, or the loop sees to it.
 */
export function untilOver<T>(delivery: Delivery<Claimed>, handling: Promise<T>, hasBegun = true): Promise<T> {
  const outer = delivery.onAbort
  return new Promise((resolve, reject) => {
    const look = (reason: unknown): void => {
      const over = overBy(delivery.item, reason, hasBegun)
      if (over !== undefined) reject(over)
    }
    delivery.onAbort = (reason) => {
      outer?.(reason)
      look(reason)
    }
    if (delivery.aborted) look(delivery.reason)
    handling.then(resolve, reject)
  })
}

/** Whether this reason ends the run of this item. Nothing begins after its deadline; what has begun may go on, unless strict. */
export function overBy({ envelope }: Claimed, reason: unknown, hasBegun = true): RunOver | undefined {
  if (reason instanceof CancelledError || reason instanceof RunTimeoutError) return new RunOver(reason)
  if (reason instanceof DeadlineError && (!hasBegun || envelope.strictDeadline === true)) return new RunOver(reason)
  return undefined
}

/** A handler that blocked the event loop ended before any timer could fire: its time is looked at once more. */
export function checkLate({ envelope }: Claimed, tookMs: Ms, now: At): void {
  const { runTimeout, deadline, strictDeadline } = envelope
  if (runTimeout !== undefined && tookMs > runTimeout) throw new RunOver(new RunTimeoutError(runTimeout))
  if (strictDeadline === true && deadline !== undefined && now > deadline)
    throw new RunOver(new DeadlineError(deadline))
}
