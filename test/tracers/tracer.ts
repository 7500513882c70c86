import type { At } from '../../src/core/time.js'
import type { Ledger } from '../../src/ports/ledger.js'

/**
 * A tracer goes through the hard part of the ledger on one real store, before backends are built on its shape: enqueue,
 * claim and settle, in batches, each settlement atomic and fenced. Reading is there to see what came of it.
 */
export interface Tracer extends Pick<Ledger, 'claim' | 'commit' | 'read' | 'groups'> {
  /** How often this connection has asked its server (SQLite: how many transactions it has begun). */
  roundTrips(): number
  close(): Promise<void>
}

/** A store with data of its own, and connections to it. */
export interface TracerStore {
  readonly name: string
  /** One more connection to the same data. Without `now` the server's own time counts. */
  open(now?: () => At): Promise<Tracer>
  /** Forgets all data. */
  reset(): Promise<void>
  close(): Promise<void>
}
