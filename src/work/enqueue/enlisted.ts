import { MillraceError } from '../../core/error.js'
import type { Ms } from '../../core/time/time.js'
import type { Ledger } from '../../ports/ledger.js'
import type { Retention } from '../settle/settle.js'

/** An item that was written in a transaction of the caller. We do not learn whether the transaction has committed. */
export interface Enlisted {
  /** When it was written, in monotonic time. */
  readonly atMs: Ms
  /** It was read outside of that transaction, so the transaction has committed. */
  isSeen: boolean
}

/** The item is not in the backend, because the transaction that should have stored it has not committed. */
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
 * Whether an enlisted item that the backend does not know was never stored. A stored item may have ended and been removed, but
 * not before the shortest retention of the fleet: the worker that ends an item decides how long it is kept.
 */
export async function wasNeverStored(
  { atMs, isSeen }: Enlisted,
  nowMs: Ms,
  keep: Retention,
  ledger: Pick<Ledger, 'inspect'>,
): Promise<boolean> {
  const waitedMs = nowMs - atMs
  if (isSeen || waitedMs >= Math.min(keep.completedMs, keep.deadMs)) return false
  const workers = (await ledger.inspect?.workers()) ?? []
  return workers.every(({ settings }) => {
    return settings === undefined || waitedMs < Math.min(settings.keepMs.completed, settings.keepMs.dead)
  })
}
