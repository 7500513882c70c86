import type { Maybe } from '../../core/time.js'

/** Repeats a call of a port as the system's `portRetry` says. Only calls that may be repeated are given to it. */
export type RetryPort = <T>(call: () => Promise<T>) => Promise<T>

/** A port may answer now or later; a synchronous throw counts as a rejection. */
export async function called<T>(call: () => Maybe<T>): Promise<T> {
  return call()
}

/** How one call of many ended: a value, so that neighbours in a batch do not share a failure. */
export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown }

export async function outcomeOf<T>(promise: Promise<T>): Promise<Outcome<T>> {
  try {
    return { ok: true, value: await promise }
  } catch (error) {
    return { ok: false, error }
  }
}

export function unwrap<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value
  throw outcome.error
}

/**
 * Waits for all of them and then throws the first failure, if any. Unlike `Promise.all` nothing is still going on behind
 * the caller's back when it throws, so that a repetition does not overlap with what it repeats.
 */
export async function allDone<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const outcomes = await Promise.all(promises.map(outcomeOf))
  return outcomes.map(unwrap)
}

/**
 * One call for many where the port has it, and one each where that fails: a bad entry then fails alone. Only for calls that
 * may be repeated. A batch of one is not tried twice.
 */
export async function manyOrEach<T, R>(
  batch: readonly T[],
  many: () => Promise<readonly R[]>,
  each: (one: T) => Promise<R>,
): Promise<readonly Outcome<R>[]> {
  const all = await outcomeOf(many())
  if (all.ok && all.value.length === batch.length) return all.value.map((value) => ({ ok: true, value }))
  if (!all.ok && batch.length === 1) return [all]
  return Promise.all(batch.map((one) => outcomeOf(each(one))))
}
