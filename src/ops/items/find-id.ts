import { AmbiguousIdError, NAMED_IDS, TooManyIdsError } from '../actions/errors.js'
import type { OpsContext } from '../context.js'

/** The id that was meant by its beginning. An item with exactly that id is always the one meant. */
export async function findId({ ledger, summaries }: OpsContext, given: string): Promise<string | undefined> {
  const [exact] = await summaries([given])
  if (exact !== undefined) return given
  if (ledger.inspect === undefined) return undefined
  const { ids, isComplete } = await ledger.inspect.idsStartingWith(given, NAMED_IDS + 1)
  if (ids.length > 1) throw new AmbiguousIdError('item', given, ids)
  if (!isComplete) throw new TooManyIdsError(given)
  return ids[0]
}
