import { isInstance, isObject, peek, peekArray, peekString } from '../text/safe-read.js'

/** Deeper than any real chain; a getter that makes a new cause each time would have no end. */
const MAX_CAUSES = 32
/** How many members of an AggregateError are examined. */
const MAX_MEMBERS = 64
/** How many errors one question examines, through causes and members together. */
export const MAX_NODES = 512

/** The error and its causes, outermost first. Ends at a cycle, at a cause that is not there, or after `MAX_CAUSES`. */
export function causeChain(error: unknown): readonly unknown[] {
  const chain: unknown[] = [error]
  for (let at = error; chain.length < MAX_CAUSES; ) {
    const cause = isObject(at) ? peek(at, 'cause') : undefined
    if (cause === undefined || cause === null || chain.includes(cause)) break
    chain.push(cause)
    at = cause
  }
  return chain
}

/**
 * The errors inside an AggregateError, `undefined` for everything else. Validation libraries also have an `errors` array,
 * of other things; so the name has to say it. `isWhole` is false when there were more than `MAX_MEMBERS`.
 */
export function aggregateMembers(
  error: unknown,
): { readonly members: readonly unknown[]; readonly isWhole: boolean } | undefined {
  if (!isInstance(error, AggregateError) && peekString(error, 'name') !== 'AggregateError') return undefined
  const errors = peek(error, 'errors')
  const members = peekArray(errors, MAX_MEMBERS)
  if (members === undefined || members.length === 0) return undefined
  return { members, isWhole: peek(errors, 'length') === members.length }
}

/** Whether `test` holds for the error, a cause, or a member of an AggregateError, at any depth up to `MAX_NODES`. */
export function someError(error: unknown, test: (error: unknown) => boolean): boolean {
  const seen = new Set<unknown>()
  const open: unknown[] = [error]
  while (open.length > 0 && seen.size < MAX_NODES) {
    const at = open.pop()
    if (seen.has(at)) continue
    seen.add(at)
    if (test(at)) return true
    const cause = peek(at, 'cause')
    if (cause !== undefined && cause !== null) open.push(cause)
    const aggregate = aggregateMembers(at)
    if (aggregate !== undefined) open.push(...aggregate.members)
  }
  return false
}
