import type { Ledger } from '../../src/ports/ledger.js'
import { isNativeGround, tapped } from './controls/tapped.js'
import { GROUNDS } from './support.js'

export const NEVER = new Promise<never>(() => undefined)
export const NATIVE_GROUNDS = GROUNDS.filter(isNativeGround)

/** The most that run at the same time, and all that ran. */
export function counting() {
  const seen = { now: 0, most: 0, runs: 0 }
  return {
    seen,
    async during<T>(wait: Promise<T>): Promise<T> {
      seen.now += 1
      seen.runs += 1
      seen.most = Math.max(seen.most, seen.now)
      try {
        return await wait
      } finally {
        seen.now -= 1
      }
    },
  }
}

/** A ledger whose commits of outcomes go through `commit`. */
export const outcomes = (
  commit: (real: Ledger['commit'], batch: Parameters<Ledger['commit']>[0]) => ReturnType<Ledger['commit']>,
) =>
  tapped((ledger) => ({
    commit: (batch) => (batch[0]?.guard.by === 'lease' ? commit((b) => ledger.commit(b), batch) : ledger.commit(batch)),
  }))
