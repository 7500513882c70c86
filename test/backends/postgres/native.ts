import type { PostgresBackend } from '../../../src/backends/postgres/index.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import { ownedBy } from '../../../src/ports/native.js'

/** The native ledger of a backend. */
export function ledgerOf(backend: PostgresBackend): Ledger {
  const owned = ownedBy(backend, [])
  if (!('open' in owned)) throw new Error(`no native ledger: the ${owned.foreign} is foreign`)
  return owned.open({ prefix: 'work:' })
}
