/** What a person can ask of a backend and of a guild, and do to them, from any process that reaches them. */
export type { Redact, RedactAbout } from '../core/redact.js'
export type { FailureGroup, LogEntry, Worker, WorkerSettings } from '../ports/ledger.js'
export { NotSupportedError } from '../work/controls/pausing.js'
export { NoActionError, NoItemError, WrongStateError } from './acts/errors.js'
export type {
  ActionReport,
  ActOptions,
  AuditOptions,
  AuditReport,
  By,
  Finding,
  FindingCode,
  ItemLine,
  ItemReport,
  Moment,
  Ops,
  Overview,
  OverviewRow,
  Page,
  PauseTarget,
  Preview,
  PreviewOptions,
  ProceedOptions,
  RedriveOptions,
  RigReport,
  ScheduleReport,
  Target,
  UnseenCode,
  Verb,
  Watching,
  WorkerReport,
  WritLine,
  WritQuery,
  WritReport,
} from './api.js'
export type { Reason, ReasonCode } from './explain.js'
export type { GuildStacks } from './guild/books.js'
export type { WritReason, WritReasonCode } from './guild/writ-reason.js'
export { type OpsOptions, openOps } from './ops.js'
