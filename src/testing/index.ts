/** What users (and we) test with: time that a test moves, conformance suites, and a simulated fleet. */
export {
  type BackendClauseName,
  type BackendSuite,
  CAPABILITIES,
  type Capability,
  type ClauseInfo,
  type ClauseName,
  type ClauseSupport,
  ConformanceError,
  conformanceClauses,
  conformanceSupport,
  describeBackend,
  describeLedger,
  describePubSub,
  describeQueue,
  describeStore,
  type Fate,
  type LedgerClauseName,
  type LedgerSuite,
  type LedgerUnderTest,
  type MortalLedger,
  type MortalPorts,
  mortal,
  overPorts,
  type PortSuite,
  type PubSubClauseName,
  type QueueClauseName,
  type Standing,
  type StoreClauseName,
  type SuiteOptions,
  type TestRunner,
  type TimeOptions,
  WEAKER_OVER_PLAIN_PORTS,
} from './conformance/index.js'
export { FakeClock, type FakeClockOptions, type FakeTimer } from './fake-clock.js'
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
export type { Ground } from './simulation/far-backend.js'
export type { Faults } from './simulation/faults.js'
export type { SimulatedRun } from './simulation/history.js'
export type { SeedReport, SimulationOptions } from './simulation/options.js'
export type { SimulatedProcess, SimulatedSystemOptions } from './simulation/process.js'
export type { Scenario } from './simulation/scenario.js'
export { type SimulationReport, simulate } from './simulation/simulate.js'
export type { SimulatedWorld } from './simulation/world.js'
export type { StacksUnderTest } from './stacks/bench.js'
export { describeStacks, type StacksClauseName, type StacksSuite } from './stacks/describe-stacks.js'
