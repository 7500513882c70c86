import type { At, Maybe, Ms } from '../core/time.js'
import type { Claimed } from '../ports/item.js'
import type { Delivery } from '../source/loop/delivery.js'
import { type BatchOutcome, isFail } from './batch-outcome.js'
import type { WorkSettling } from './work-settling.js'

/** An item of a batch that has begun. */
export interface BatchItem {
  readonly delivery: Delivery<Claimed>
  readonly input: unknown
  readonly startedAt: At
}

/** What running a batch needs from the runner of single items. */
export interface BatchParts {
  /** Decodes and starts an item; a settling is the end of one that cannot be. */
  begin(delivery: Delivery<Claimed>): Maybe<{ readonly input: unknown; readonly startedAt: At } | WorkSettling>
  /** Runs those that have begun. Rejects when it throws, or when all of them are over before. */
  run(items: readonly BatchItem[]): Promise<readonly BatchOutcome[]>
  now(): At
  returned(item: BatchItem, value: unknown): Maybe<WorkSettling>
  threw(item: BatchItem, error: unknown, at: At): Promise<WorkSettling>
  /** It goes back to the queue as it was. */
  putOff(item: BatchItem): WorkSettling
}

/** Runs items together. Whatever happens is settled for each alone: one that cannot be read does not stop the others. */
export async function runBatch(
  parts: BatchParts,
  deliveries: readonly Delivery<Claimed>[],
): Promise<readonly WorkSettling[]> {
  const begun = await Promise.all(deliveries.map(async (delivery) => ({ delivery, one: await parts.begin(delivery) })))
  const items = begun.flatMap(({ delivery, one }) => ('startedAt' in one ? [{ delivery, ...one }] : []))
  const ran = items.length === 0 ? [] : await runBegun(parts, items)
  let next = 0
  return begun.map(({ one }) => ('startedAt' in one ? ran[next++]! : one))
}

async function runBegun(parts: BatchParts, items: readonly BatchItem[]): Promise<readonly WorkSettling[]> {
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

/** How long items run alone after a throw, before the rest goes back to the queue: what has ended is written only with the rest. */
const ALONE_MS: Ms = 5_000

/**
 * The handler failed for all of them. An item is not given up for what may be the fault of another one: those that the class of
 * the error would end run again alone, one after the other, because a batch has one place. Those whose turn does not come in
 * time go back, spend no attempt, and run together again; each such round ends at least one of them.
 */
async function threwTogether(
  parts: BatchParts,
  items: readonly BatchItem[],
  error: unknown,
): Promise<readonly WorkSettling[]> {
  const at = parts.now()
  const judged = await Promise.all(items.map((item) => parts.threw(item, error, at)))
  if (items.length === 1) return judged
  const settlings: WorkSettling[] = []
  for (const [i, item] of items.entries()) {
    const settling = judged[i]!
    if (!isGivenUpByClass(settling)) settlings.push(settling)
    // Cancelled or told to stop meanwhile: settled as that.
    else if (item.delivery.aborted) settlings.push(await parts.threw(item, error, at))
    else if (parts.now() - at > ALONE_MS) settlings.push(parts.putOff(item))
    else settlings.push(...(await runBegun(parts, [item])))
  }
  return settlings
}

/** Whether the class of the error ended it: not its attempts, and not a user who said so of this very item. */
function isGivenUpByClass({ told, ran: { outcome } }: WorkSettling): boolean {
  return told.kind === 'dead' && told.ending === 'aborted' && outcome.kind === 'threw' && outcome.said === undefined
}
