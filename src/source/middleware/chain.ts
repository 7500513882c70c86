import { MillraceError } from '../../core/error.js'
import { OptionTypeError } from '../../core/options.js'
import { describeValue } from '../../core/text/describe-value.js'
import type { Handler, Middleware } from './handler.js'

/** Options of {@link chainWith}. */
export interface ChainOptions {
  /** Skips the check of the order, for those who know why theirs is right. Default: false. */
  readonly allowAnyOrder?: boolean
}

/** Middleware is listed in an order in which it does not do what it promises. */
export class MiddlewareOrderError extends MillraceError {
  constructor(message: string, outer: string, inner: string) {
    super('MIDDLEWARE_ORDER', message, { facts: { outer, inner } })
  }
}

/**
 * Wraps a handler in middleware: `chain(h, A, B)` is `A(B(h))`, so the first listed comes first in and last out. Nullish
 * entries are skipped; with none left the handler itself is returned. The usual order, outermost first, is
 * `dlq, retry, idempotency, schema`.
 *
 * Throws `MiddlewareOrderError` when retry is listed outside dlq, or the same kind twice.
 *
 * @example
 * ```ts
 * const handler = chain(handle, dlq(store), retry({ maxAttempts: 3 }))
 * ```
 */
export function chain(handler: Handler, ...middleware: readonly (Middleware | null | undefined)[]): Handler {
  return chainWith({}, handler, middleware)
}

/** `chain` with options and a list. */
export function chainWith(
  options: ChainOptions,
  handler: Handler,
  middleware: readonly (Middleware | null | undefined)[],
): Handler {
  if (typeof handler !== 'function') throw new OptionTypeError('chain(handler)', 'a function', handler)
  const present = middleware.filter((mw) => mw !== null && mw !== undefined)
  for (const mw of present)
    if (typeof mw !== 'function') throw new OptionTypeError('chain(…, middleware)', 'a function', mw)
  if (options.allowAnyOrder !== true) checkOrder(present)
  return present.reduceRight((next, mw) => {
    const wrapped = mw(next)
    if (typeof wrapped !== 'function')
      throw new TypeError(
        `the middleware "${labelOf(mw)}" must return a handler, but returned ${describeValue(wrapped)}`,
      )
    return wrapped
  }, handler)
}

/** Throws when this order, outermost first, breaks what a tagged middleware promises. */
export function checkOrder(middleware: readonly Middleware[]): void {
  const seen = new Set<string>()
  for (const { kind } of middleware) {
    if (kind === undefined) continue
    if (seen.has(kind))
      throw new MiddlewareOrderError(`The middleware "${kind}" is listed twice. Keep one of them.`, kind, kind)
    if (kind === 'dlq' && seen.has('retry'))
      throw new MiddlewareOrderError(
        'retry is listed outside dlq, so a message that runs out of attempts would be dropped instead of dead-lettered. ' +
          'List dlq before retry: chain(handler, dlq(store), retry()).',
        'retry',
        'dlq',
      )
    seen.add(kind)
  }
}

function labelOf(mw: Middleware): string {
  return mw.kind ?? (mw.name || 'anonymous')
}
