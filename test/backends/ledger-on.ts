import { ownedBy } from '../../src/ports/find-ledger.js'
import type { Ledger } from '../../src/ports/ledger.js'
import type { Backend } from '../../src/ports/ports.js'

/** The native ledger of a backend. */
export function ledgerOn(backend: Backend, prefix = 'work:'): Ledger {
  const owned = ownedBy(backend, [])
  if (!('open' in owned)) throw new Error(`no native ledger: the ${owned.foreign} is foreign`)
  return owned.open({ prefix })
}
