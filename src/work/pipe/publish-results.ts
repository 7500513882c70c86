import { WorkDelayError } from '../../core/failure/control-errors.js'
import { PoisonError } from '../../core/failure/failure-errors.js'
import { numberOption, OptionTypeError, optionsObject, stringOption } from '../../core/options.js'
import type { MaybePromise, Ms } from '../../core/time/time.js'
import type { Outlet, OutletMessage } from '../../source/outlets/outlet.js'
import { defineWork } from '../define/define-work.js'
import type { WorkBuilder } from '../define/work.js'
import type { WorkOptions } from '../define/work-options.js'

/** How soon an item that runs again is looked at. */
const SOON_MS: Ms = 5_000

/** The input of work that publishes a result: the id of the item whose result it is. */
export interface ResultsInput {
  readonly of: string
}

/** Options of {@link publishResults}. */
export interface PublishResultsOptions<R> {
  /** The name of the work type. */
  readonly name: string
  /** The message of a result; its id is that of the item. `undefined`: nothing is to be published. */
  readonly as: (result: R, item: { readonly id: string }) => MaybePromise<Omit<OutletMessage, 'id'> | undefined>
  /** How often an item that died is looked at again: it may have been redriven. Until it is removed. Default: 15 minutes. */
  readonly recheckMs?: Ms
  /** How often publishing is tried. Default: 20 times, from a second to five minutes. */
  readonly retry?: WorkOptions['retry']
}

/** Work that publishes a result was queued where nothing waits for that result. */
export class NothingToPublishError extends PoisonError {
  constructor(of: string) {
    super(
      `The result of item ${of} cannot be published: this item did not wait for it. Give the type to pipe({ results }), or queue it by ` +
        `dependency({ on: id, queue: type({ of: id }) }).`,
    )
  }
}

/**
 * A work type that publishes the result of another item, once: under that item's id, so that a run which is repeated publishes nothing twice.
 * A result that comes after a redrive is published, too. Give it to `pipe`, or queue it behind an item by `dependency` with `'all-done'`.
 *
 * @example
 * ```ts
 * const publishReceipt = publishResults<Receipt>(outlet, { name: 'publish receipt', as: (receipt) => ({ value: JSON.stringify(receipt) }) })
 * await w.add(dependency({ on: item, queue: publishReceipt({ of: item.id }), config: 'all-done' }))
 * ```
 */
export function publishResults<R = unknown>(
  outlet: Outlet,
  options: PublishResultsOptions<R>,
): WorkBuilder<string, ResultsInput, void, void> {
  if (typeof outlet?.publish !== 'function') throw new OptionTypeError('publishResults(outlet)', 'an Outlet', outlet)
  const given = optionsObject('publishResults', options, ['name', 'as', 'retry', 'recheckMs'])
  const { as } = given
  if (typeof as !== 'function') throw new OptionTypeError('publishResults.as', 'a function', as)
  const recheckMs = numberOption('publishResults.recheckMs', given.recheckMs, { above: 0, default: 900_000 })
  return defineWork(
    stringOption('publishResults.name', given.name),
    async ({ of }: ResultsInput, ctx) => {
      const at = ctx.dependents?.indexOf(of) ?? -1
      if (at < 0) throw new NothingToPublishError(of)
      const [item] = await ctx.states([of])
      // Removed as dead, or cancelled: there will never be a result.
      if (item === undefined || item.ending === 'cancelled') return ctx.void()
      // It may be redriven, or is being tried again.
      if (item.status === 'dead') throw new WorkDelayError({ delay: recheckMs })
      if (item.status !== 'success') throw new WorkDelayError({ delay: Math.min(recheckMs, SOON_MS) })
      const results = await ctx.results()
      // What the caller says that its results are: they come out of storage.
      const message = await as(results[at] as R, { id: of })
      if (message !== undefined) await outlet.publish({ ...message, id: of })
      return ctx.void()
    },
    { retry: given.retry ?? { attempts: 20, base: 1_000, max: 300_000 } },
  )
}
