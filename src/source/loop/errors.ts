import { MillraceError, type WithCause } from '../../core/error.js'

/** The lease ran out or was taken over: another process may be running this by now, and nothing of this run counts. */
export class LeaseLostError extends MillraceError {
  constructor(options?: WithCause) {
    super(
      'LEASE_LOST',
      'The lease was lost while this was running: it is delivered again, and the outcome of this run does not count. ' +
        'Raise the lease time, or do not block the event loop for longer than a third of it.',
      options,
    )
  }
}

/** A heartbeat was not answered before the next one was due. */
export class HeartbeatTimeoutError extends MillraceError {
  constructor(afterMs: number) {
    super(
      'HEARTBEAT_TIMEOUT',
      `The backend did not answer a heartbeat within ${Math.round(afterMs)} ms. The leases are asked for again; those that ` +
        'cannot be extended in time are lost, and their work runs again. Check the connection to the backend and its load.',
      { facts: { afterMs: Math.round(afterMs) } },
    )
  }
}

/** The reason of `signal` when the running item was cancelled. */
export class CancelledError extends MillraceError {
  /** The reason that the canceller gave, where it is known already. */
  readonly why: string | undefined
  constructor(options: WithCause & { readonly why?: string } = {}) {
    const { why, ...rest } = options
    const because = why === undefined || why === '' ? '' : ` (${why})`
    super(
      'CANCELLED',
      `This run was cancelled${because}: stop as soon as possible; its item will not be tried again.`,
      {
        ...rest,
        facts: { why },
      },
    )
    this.why = why
  }
}

/** The reason of `signal` when a shutdown has waited for this run as long as it may. */
export class ShutdownDeadlineError extends MillraceError {
  constructor(drainMs: number) {
    super(
      'SHUTDOWN_DEADLINE',
      `The consumer is shutting down and this run did not end within ${drainMs} ms. It is released and runs again elsewhere.`,
      { facts: { drainMs } },
    )
  }
}

/** Settling one delivery took longer than its time. */
export class SettleTimeoutError extends MillraceError {
  constructor(timeoutMs: number) {
    super(
      'SETTLE_TIMEOUT',
      `Settling took longer than ${timeoutMs} ms. It is tried again; check the connection to the backend.`,
      { facts: { timeoutMs } },
    )
  }
}

/** So many settlements failed one after the other that carrying on would only run work whose outcome cannot be kept. */
export class SettleError extends MillraceError {
  constructor(failures: number, options?: WithCause) {
    super(
      'SETTLE_FAILED',
      `${failures} settlements in a row failed, so the run was ended; what was not settled is delivered again. ` +
        'The cause is the last failure: fix the backend, then start the run again.',
      { ...options, facts: { failures } },
    )
  }
}

/** `run` was called on a hopper that is closed. */
export class HopperClosedError extends MillraceError {
  constructor(name: string) {
    super('HOPPER_CLOSED', `Hopper "${name}" is closed. Make a new one to consume again.`, { facts: { name } })
  }
}
