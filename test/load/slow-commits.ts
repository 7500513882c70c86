import { setTimeout as sleep } from 'node:timers/promises'
import type { Ledger } from '../../src/ports/ledger.js'

/** Each commit takes this much longer: half of it before it happens, and half before its caller gets the answer. */
export function slowCommits(ledger: Ledger, ms: number): Partial<Ledger> {
  return {
    commit: async (batch) => {
      await sleep(ms / 2)
      const results = await ledger.commit(batch)
      await sleep(ms / 2)
      return results
    },
  }
}
