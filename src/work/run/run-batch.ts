import type { At, MaybePromise, Ms } from '../../core/time/time.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { Delivery } from '../../source/loop/delivery.js'
import type { RunPendingSettlement } from '../settle/pending-settlement.js'
import { type BatchOutcome, isFail } from './batch-outcome.js'

/** An item of a batch that has begun. */
export interface BatchItem {
  readonly delivery: Delivery<ClaimedItem>
  readonly input: unknown
  readonly startedAt: At
}

/** What running a batch needs from the runner of single items. */
export interface BatchParts {
  /** Decodes and starts an item. A settlement is the end of one that cannot start. */
  begin(
    delivery: Delivery<ClaimedItem>,
  ): MaybePromise<{ readonly input: unknown; readonly startedAt: At } | RunPendingSettlement>
  /** Calls the handler. Rejects when it throws, or when all items are over first. */
  run(items: readonly BatchItem[]): Promise<readonly BatchOutcome[]>
  now(): At
  returned(item: BatchItem, value: unknown): MaybePromise<RunPendingSettlement>
  threw(item: BatchItem, error: unknown, at: At): Promise<RunPendingSettlement>
  /** It goes back to the queue as it was. */
  putOff(item: BatchItem): RunPendingSettlement
}

/** Runs items together and settles each by itself: one that cannot be read does not stop the others. */
export async function runBatch(
  parts: BatchParts,
  deliveries: readonly Delivery<ClaimedItem>[],
): Promise<readonly RunPendingSettlement[]> {
  const begun = await Promise.all(deliveries.map(async (delivery) => ({ delivery, one: await parts.begin(delivery) })))
  const items = begun.flatMap(({ delivery, one }) => ('startedAt' in one ? [{ delivery, ...one }] : []))
  const ran = items.length === 0 ? [] : await runBegun(parts, items)
  let next = 0
  return begun.map(({ one }) => ('startedAt' in one ? ran[next++]! : one))
}

async function runBegun(parts: BatchParts, items: readonly BatchItem[]): Promise<readonly RunPendingSettlement[]> {
  let outcomes: readonly BatchOutcome[]
  try {
    outcomes = await parts.run(items)
  } catch (error) {
    return threwTogether(parts, items, error)
  }
  // One instant for all of them: items that are deferred by the same time come back together.
  const at = parts.now()
  return Promise.all(
    items.map(async (item, i) => {
      const outcome = outcomes[i]!
      if (isFail(outcome)) return parts.threw(item, outcome.error, at)
      try {
        return await parts.returned(item, outcome.value)
      } catch (error) {
        return parts.threw(item, error, at) // Its own failure: an output that cannot be encoded, or its time.
      }
    }),
  )
}

/** How long items run one by one after a throw, before the rest goes back to the queue: all outcomes are written together. */
const ONE_BY_ONE_MS: Ms = 5_000

/**
 * The handler failed for all of them. An item is not dead-lettered for what may be the fault of another: those that the class of
 * the error would end run again by themselves, one after the other, because a batch has one place. Those whose turn does not
 * come in time go back, spend no attempt, and run together again; each such round ends at least one of them.
 */
async function threwTogether(
  parts: BatchParts,
  items: readonly BatchItem[],
  error: unknown,
): Promise<readonly RunPendingSettlement[]> {
  const at = parts.now()
  const settled = await Promise.all(items.map((item) => parts.threw(item, error, at)))
  if (items.length === 1) return settled
  const settlings: RunPendingSettlement[] = []
  for (const [i, item] of items.entries()) {
    const settling = settled[i]!
    if (!isEndedByClass(settling)) settlings.push(settling)
    // Cancelled or stopped meanwhile, and settled so.
    else if (item.delivery.aborted) settlings.push(await parts.threw(item, error, at))
    else if (parts.now() - at > ONE_BY_ONE_MS) settlings.push(parts.putOff(item))
    else settlings.push(...(await runBegun(parts, [item])))
  }
  return settlings
}

/** Whether the class of the error ended it: not its attempts, and not the user's decision about this item. */
function isEndedByClass({ summary, ran: { outcome } }: RunPendingSettlement): boolean {
  return (
    summary.kind === 'dead' &&
    summary.ending === 'aborted' &&
    outcome.kind === 'threw' &&
    outcome.override === undefined
  )
}
