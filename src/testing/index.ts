/** Tools for tests: a clock that the test moves, conformance suites, and a simulated fleet. */

export { CAPABILITIES, type Capability } from './conformance/capability.js'
export { ConformanceError, type Standing } from './conformance/clause.js'
export {
  type BackendClauseName,
  type ClauseInfo,
  type ClauseName,
  conformanceClauses,
  type LedgerClauseName,
  type PubSubClauseName,
  type QueueClauseName,
  type StoreClauseName,
} from './conformance/clauses.js'
export { type BackendSuite, describeBackend } from './conformance/describe-backend.js'
export { describeLedger, type LedgerSuite } from './conformance/describe-ledger.js'
export { describePubSub, describeQueue, describeStore, type PortSuite } from './conformance/describe-ports.js'
export type { LedgerUnderTest, MortalLedger } from './conformance/ledger/under-test.js'
export type { Fate } from './conformance/mortal.js'
export type { TestRunner } from './conformance/runner.js'
export type { SuiteOptions } from './conformance/suite.js'
export type { TimeOptions } from './conformance/time.js'
export { FakeClock, type FakeClockOptions, type FakeTimer } from './fake-clock.js'
export {
  type FakeContext,
  type FakeContextOptions,
  type FakeDependent,
  fakeContext,
  type ReturnedNext,
  type ReturnedOutcome,
} from './fake-context.js'
export { type FakeOutcomes, fakeOutcomes, type ReadOutcome } from './fake-outcomes.js'
export { Harness, type HarnessOptions, HarnessStuckError } from './harness.js'
export {
  describeInlet,
  describeInlet as runInletConformance,
  type InletClauseName,
  type InletSuite,
  type InletUnderTest,
} from './inlet-conformance.js'
export { seededRandom } from './seeded-random.js'
export { BrokenPromiseError, SimulatedFaultError, SimulationError, SimulationStuckError } from './simulation/errors.js'
export type { Faults } from './simulation/faults.js'
export type { SimulatedRun } from './simulation/history.js'
export type { SeedReport, SimulationOptions } from './simulation/options.js'
export type { SimulatedProcess, SimulatedSystemOptions } from './simulation/process.js'
export type { Ground } from './simulation/remote-backend.js'
export type { RepeatedItem, RepeatedItems } from './simulation/repeated-items.js'
export type { Scenario } from './simulation/scenario.js'
export { type SimulationReport, simulate } from './simulation/simulate.js'
export type { SimulatedWorld } from './simulation/world.js'
