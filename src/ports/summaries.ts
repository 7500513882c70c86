import type { ItemSummary, Ledger } from './ledger.js'

/**
 * How items stand, without what they carry: for callers that do not want a result. Plain ports have no such call: there it is
 * the result that makes a success final, so it is read in any case.
 */
export function summariesOf(
  ledger: Pick<Ledger, 'inspect' | 'read'>,
  ids: readonly string[],
): Promise<readonly (ItemSummary | undefined)[]> {
  return ledger.inspect === undefined ? ledger.read(ids) : ledger.inspect.summaries(ids)
}
