import { type Backend, type Clock, memoryBackend } from '../../src/index.js'
import type { Ledger } from '../../src/ports/ledger.js'
import { wrapLedger } from '../support/wrap-ledger.js'

/** A memory backend whose ledger has a fault: for the simulation to find. */
export function faultyBackend(fault: (ledger: Ledger) => Partial<Ledger>): (clock: Clock) => Backend {
  return (clock) => wrapLedger(memoryBackend({ clock }), fault)
}
