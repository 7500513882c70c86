/** The contracts between an engine and a backend, for authors of backends, and the adapter that makes a ledger of three plain ports. */
export { overPlainPorts, type PlainOptions } from '../backends/plain/over-plain-ports.js'
export { readEnvelope, writeEnvelope } from './envelope.js'
export { findLedger, type OpenedLedger, type OwnedPorts, ownPorts } from './find-ledger.js'
export type { FullQueue, FullStore } from './full-ports.js'
export { gateVerdict } from './gate.js'
export type {
  FailureGroup,
  GateView,
  Inspect,
  ItemQuery,
  ItemSummary,
  ItemView,
  LogEntry,
  Throughput,
  TypeCounts,
} from './inspect.js'
export type {
  Attempt,
  ClaimedItem,
  DeadEnding,
  Ending,
  Envelope,
  EnvelopeHead,
  Hold,
  ItemStatus,
  Lease,
  TreeMark,
} from './item.js'
export type {
  ClaimReply,
  ClaimRequest,
  LeaseStatus,
  Ledger,
  Notification,
  PausedNames,
  Room,
  ScheduleRecord,
  WorkerRecord,
  WorkerSettings,
} from './ledger.js'
export { type Mode, WrongModeError } from './mode.js'
export type {
  Backend,
  DeadLetter,
  DeadLetterSink,
  NewDeadLetter,
  Ports,
  PubSub,
  PulledWork,
  PushOptions,
  Queue,
  Store,
} from './ports.js'
export { NotAnEnvelopeError } from './pushed-natively.js'
export type { ClosedGroup, CommitResult, Effect, EffectOf, GroupValue, Guard, Settlement } from './settlement.js'
export { hasEnded, ITEM_STATES, type ItemState, itemState } from './words.js'
