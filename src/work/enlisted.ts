import { MillraceError } from '../core/error.js'
import type { Ms } from '../core/time.js'
import type { Ledger } from '../ports/ledger.js'
import type { Retention } from './settle.js'

/** An item that was written in a transaction of the caller: nothing tells us whether that has committed. */
export interface Enlisted {
  /** When it was written, in monotonic time. */
  readonly atMs: Ms
  /** The backend has shown it outside of that transaction, so it has committed. */
  isSeen: boolean
}

/** What was waited for is not in the backend, because the transaction that was to store it has not committed. */
export class NotStoredError extends MillraceError {
  constructor(id: string) {
    super(
      'NOT_STORED',
      `${id} was never stored: the transaction that it was enqueued in was rolled back, or has not committed yet. ` +
        'Wait for it only after the commit; after a rollback, enqueue it again.',
      { facts: { id } },
    )
  }
}

/**
 * Whether an enlisted item that the backend does not know was never stored. One that was stored may have ended and been removed
 * since, but not before the shortest retention of the fleet is over: the worker that ended it decides how long it is kept.
 */
export async function wasNeverStored(
  { atMs, isSeen }: Enlisted,
  nowMs: Ms,
  keep: Retention,
  ledger: Pick<Ledger, 'inspect'>,
): Promise<boolean> {
  const waitedMs = nowMs - atMs
  if (isSeen || waitedMs >= Math.min(keep.successMs, keep.deadMs)) return false
  const workers = (await ledger.inspect?.workers()) ?? []
  return workers.every(({ settings }) => {
    return settings === undefined || waitedMs < Math.min(settings.keepMs.done, settings.keepMs.dead)
  })
}
