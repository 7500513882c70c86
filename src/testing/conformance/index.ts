export { CAPABILITIES, type Capability } from './capability.js'
export { ConformanceError, type Standing } from './clause.js'
export {
  type BackendClauseName,
  type ClauseInfo,
  type ClauseName,
  type ClauseSupport,
  conformanceClauses,
  conformanceSupport,
  type LedgerClauseName,
  type PubSubClauseName,
  type QueueClauseName,
  type StoreClauseName,
} from './clauses.js'
export { type BackendSuite, describeBackend, WEAKER_OVER_PLAIN_PORTS } from './describe-backend.js'
export { describeLedger, type LedgerSuite, type LedgerUnderTest } from './describe-ledger.js'
export { describePubSub, describeQueue, describeStore, type PortSuite } from './describe-ports.js'
export type { MortalLedger } from './ledger/bench.js'
export { type Fate, type MortalPorts, mortal } from './mortal.js'
export { overPorts } from './plain-subject.js'
export type { TestRunner } from './runner.js'
export type { SuiteOptions } from './suite.js'
export type { TimeOptions } from './time.js'
