/** What people and tools can ask of a backend and a guild, and do to them, from any process. */
import { overPlainPorts } from '../backends/plain/over-plain-ports.js'
import type { Ports } from '../ports/ports.js'
import type { Ops } from './api.js'
import { type OpsOptions, openOpsOn } from './ops.js'

/**
 * Opens a backend, or your own three ports, for people and tools: to query and to act, from a process that runs no work.
 *
 * @example
 * ```ts
 * const ops = openOps(sqliteBackend({ file: 'work.db' }))
 * for (const { text, remedy } of await ops.explain('charge/o-3')) console.log(text, remedy)
 * ```
 */
export function openOps(ports: Ports, options?: OpsOptions): Ops {
  return openOpsOn(overPlainPorts, ports, options)
}

export type { Redact, RedactAbout } from '../core/text/redact.js'
export type { FailureGroup, LogEntry } from '../ports/inspect.js'
export type { WorkerRecord, WorkerSettings } from '../ports/ledger.js'
export { NotSupportedError } from '../work/control/pause.js'
export { AmbiguousIdError, NoActionError, NoItemError, WrongStateError } from './actions/errors.js'
export type {
  ActionOptions,
  ActionReport,
  Actor,
  AuditOptions,
  AuditReport,
  BulkVerb,
  ContinueOptions,
  Finding,
  FindingCode,
  ItemReport,
  ItemSelector,
  ListedItem,
  Ops,
  Overview,
  OverviewRow,
  Page,
  PauseOptions,
  PauseReport,
  PauseTarget,
  Preview,
  PreviewPolicy,
  RedriveOptions,
  RigReport,
  RunReport,
  ScheduleReport,
  SkippedCode,
  TimelineEntry,
  Watching,
  WorkerReport,
  WritQuery,
  WritReport,
  WritSummary,
} from './api.js'
export type { GuildStacks } from './guild/books.js'
export type { WritReason, WritReasonCode } from './guild/writ-facts.js'
export type { Reason, ReasonCode } from './items/explain.js'
export type {
  LetterActionOptions,
  LetterActionReport,
  LetterFilter,
  LetterOps,
  LetterPage,
  LetterQuery,
  LetterReport,
  LetterSelector,
  ListedLetter,
} from './letters/api.js'
export type { OpsOptions } from './ops.js'
