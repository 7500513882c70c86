import type { At, Maybe } from '../core/time.js'
import type { Claimed } from '../ports/item.js'
import type { Delivery } from '../source/loop/delivery.js'
import type { WorkSettling } from './work-settling.js'

/** What running a batch needs from whoever runs single items. */
export interface BatchParts {
  /** Decodes and starts an item; a settling is the end of one that cannot be. */
  begin(delivery: Delivery<Claimed>): Maybe<{ readonly input: unknown; readonly startedAt: At } | WorkSettling>
  /** Runs those that have begun. Rejects when it throws, or when all of them are over before. */
  run(begun: readonly Delivery<Claimed>[], inputs: readonly unknown[]): Promise<readonly unknown[]>
  returned(delivery: Delivery<Claimed>, startedAt: At, output: unknown): Maybe<WorkSettling>
  threw(delivery: Delivery<Claimed>, startedAt: At, error: unknown): Promise<WorkSettling>
}

/** Runs items together. Whatever happens is settled for each alone: one that cannot be read does not stop the others. */
export async function runBatch(
  parts: BatchParts,
  deliveries: readonly Delivery<Claimed>[],
): Promise<readonly WorkSettling[]> {
  const begun = await Promise.all(deliveries.map(async (delivery) => ({ delivery, one: await parts.begin(delivery) })))
  const running = begun.flatMap(({ delivery, one }) => ('startedAt' in one ? [{ delivery, input: one.input }] : []))
  let outputs: readonly unknown[] = []
  let failure: { readonly error: unknown } | undefined
  try {
    if (running.length > 0) {
      outputs = await parts.run(
        running.map(({ delivery }) => delivery),
        running.map(({ input }) => input),
      )
    }
  } catch (error) {
    failure = { error }
  }
  let next = 0
  return Promise.all(
    begun.map(async ({ delivery, one }) => {
      if (!('startedAt' in one)) return one
      const output = outputs[next++]
      if (failure !== undefined) return parts.threw(delivery, one.startedAt, failure.error)
      try {
        return await parts.returned(delivery, one.startedAt, output)
      } catch (error) {
        return parts.threw(delivery, one.startedAt, error) // Its own failure: an output that cannot be encoded, or its time.
      }
    }),
  )
}
