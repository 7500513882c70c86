import { backendClauses } from './backend-clauses.js'
import type { Capability } from './capability.js'
import type { ConformanceClause } from './clause.js'
import { batchClauses } from './ledger/batch.js'
import { claimClauses } from './ledger/claim.js'
import { controlClauses } from './ledger/controls.js'
import { crashClauses } from './ledger/crash.js'
import { enqueueClauses } from './ledger/enqueue.js'
import { failureClauses } from './ledger/failures.js'
import { gateClauses } from './ledger/gates.js'
import { groupClauses } from './ledger/groups.js'
import { holdClauses } from './ledger/holds.js'
import { leaseClauses } from './ledger/lease.js'
import { limitClauses } from './ledger/limits.js'
import { listClauses } from './ledger/lists.js'
import { notificationClauses } from './ledger/notifications.js'
import { payloadClauses } from './ledger/payloads.js'
import { releaseClauses } from './ledger/release.js'
import { roomClauses } from './ledger/rooms.js'
import { runningClauses } from './ledger/running.js'
import { settleClauses } from './ledger/settle.js'
import { statisticsClauses } from './ledger/statistics.js'
import { workerClauses } from './ledger/workers.js'
import { pubsubClauses } from './pubsub-clauses.js'
import { queueClauses } from './queue-clauses.js'
import { storeClauses } from './store-clauses.js'

/** The laws of a ledger, all of them. */
export const ledgerClauses = Object.freeze({
  ...enqueueClauses,
  ...claimClauses,
  ...roomClauses,
  ...leaseClauses,
  ...runningClauses,
  ...settleClauses,
  ...groupClauses,
  ...gateClauses,
  ...holdClauses,
  ...notificationClauses,
  ...controlClauses,
  ...limitClauses,
  ...batchClauses,
  ...releaseClauses,
  ...listClauses,
  ...payloadClauses,
  ...statisticsClauses,
  ...failureClauses,
  ...workerClauses,
  ...crashClauses,
})

/** The name of a clause of the queue suite. */
export type QueueClauseName = keyof typeof queueClauses
/** The name of a clause of the store suite. */
export type StoreClauseName = keyof typeof storeClauses
/** The name of a clause of the pub-sub suite. */
export type PubSubClauseName = keyof typeof pubsubClauses
/** The name of a clause of the backend suite: what `waived` is keyed by. */
export type BackendClauseName = keyof typeof backendClauses
/** The name of a clause of the ledger suite. */
export type LedgerClauseName = keyof typeof ledgerClauses

/** The name of any clause. The list is closed: a waiver that names anything else does not compile, and throws. */
export type ClauseName = QueueClauseName | StoreClauseName | PubSubClauseName | BackendClauseName | LedgerClauseName

/** A clause as a table of support shows it. */
export interface ClauseInfo {
  readonly name: ClauseName
  readonly about: 'queue' | 'store' | 'pubsub' | 'backend' | 'ledger'
  /** The obligation in a sentence. */
  readonly law: string
  /** The capabilities without which it is not asked for. */
  readonly needs: readonly Capability[]
}

const SUITES = {
  queue: queueClauses,
  store: storeClauses,
  pubsub: pubsubClauses,
  backend: backendClauses,
  ledger: ledgerClauses,
}

/**
 * Every clause of the conformance suites, in their order, with its obligation and the capabilities it needs. The table of
 * support in the documentation is made from this and from the waivers of each backend.
 */
export function conformanceClauses(): readonly ClauseInfo[] {
  return Object.entries(SUITES).flatMap(([about, clauses]) =>
    Object.entries<ConformanceClause<never>>(clauses).map(([name, clause]) => ({
      // The keys of the suites are the clause names by definition of the type.
      name: name as ClauseName,
      about: about as ClauseInfo['about'],
      law: clause.law,
      needs: clause.needs ?? [],
    })),
  )
}
