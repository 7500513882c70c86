import type { SqliteBackend } from '../../../src/backends/sqlite/index.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import { ownedBy } from '../../../src/ports/native.js'

export function ledgerOn(backend: SqliteBackend): Ledger {
  const owned = ownedBy(backend, [])
  if (!('open' in owned)) throw new Error(`no native ledger: the ${owned.foreign} is foreign`)
  return owned.open({ prefix: 'work:' })
}
