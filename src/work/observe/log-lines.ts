import { detailText, type ErrorDetail } from '../../core/failure/error-detail.js'
import type { FailureClass } from '../../core/failure/failure.js'
import { getDefaultRetryOptions } from '../../core/retry/retry-defaults.js'
import { listedError } from '../../core/text/error-text.js'
import type { Redacted } from '../../core/text/redact.js'
import { secondsText } from '../../core/time/seconds-text.js'
import type { Ms } from '../../core/time/time.js'
import type { DeadEnding, EnvelopeHead } from '../../ports/item.js'

/** What a line of the log is about. `left-out` counts the lines that a storm of failures would have written. */
export type WorkLogKind = 'start' | 'stop' | 'retry' | 'dead' | 'cancelled' | 'lease-lost' | 'left-out' | 'error'

/** The facts of a line, for programs that search and count. What does not apply is absent. */
export interface WorkLogFacts {
  readonly event: WorkLogKind
  /** The id of the system that writes the line: several may run in one process. */
  readonly worker: string
  readonly id?: string
  readonly type?: string
  readonly groupId?: string
  readonly attempt?: number
  readonly error?: string
  /** The error with its stack and its causes. */
  readonly detail?: string
  readonly class?: FailureClass
  readonly rule?: string
  readonly ending?: DeadEnding
  /** When the next attempt is due, from now. */
  readonly delayMs?: Ms
  /** Of an error that is not the failure of an item. */
  readonly code?: string
  readonly phase?: string
  readonly types?: readonly string[]
  readonly queues?: readonly string[]
  /** How many lines of each kind were left out. */
  readonly leftOut?: Readonly<Partial<Record<WorkLogKind, number>>>
}

export type WorkLogLevel = 'info' | 'warn' | 'error'

export interface WorkLogLine {
  readonly level: WorkLogLevel
  readonly facts: Omit<WorkLogFacts, 'worker'>
  readonly text: string
}

/** How much of an error a line quotes. The facts have all of it. */
const QUOTED_CHARACTERS = 300

/** The failure of a run or of an item, as its event has it. */
export interface LoggedFailure {
  readonly error: string
  readonly class: FailureClass
  readonly rule: string
  readonly detail?: ErrorDetail | undefined
}

/** A run failed, and the item runs again. */
export function retryLine(item: EnvelopeHead, failed: LoggedFailure, delayMs: Ms, redacted: Redacted): WorkLogLine {
  const most = item.retry?.attempts ?? getDefaultRetryOptions().attempts
  const of = most === Infinity ? '' : ` of ${most}`
  const { facts, quote } = failureFacts(item, failed, redacted)
  return {
    level: 'warn',
    facts: { event: 'retry', ...facts, delayMs },
    text: `${named(item)} failed in attempt ${item.attempt}${of} and runs again in ${secondsText(delayMs)}${quote}`,
  }
}

/** An item is dead: nothing runs it again until it is redriven. */
export function deadLine(
  item: EnvelopeHead,
  ending: DeadEnding,
  failed: LoggedFailure,
  redacted: Redacted,
): WorkLogLine {
  const { facts, quote } = failureFacts(item, failed, redacted)
  return {
    level: 'error',
    facts: { event: 'dead', ending, ...facts },
    text: `${named(item)} is dead (${ending}) after attempt ${item.attempt}${quote}`,
  }
}

export function cancelledLine(item: EnvelopeHead, why: string, redacted: Redacted): WorkLogLine {
  const error = why === '' ? '' : redacted('error', why, item)
  return {
    level: 'info',
    facts: { event: 'cancelled', ...factsOf(item), ...(error === '' ? {} : { error }) },
    text: `${named(item)} was cancelled${error === '' ? '' : `: ${listedError(error, QUOTED_CHARACTERS)}`}`,
  }
}

export function leaseLostLine(item: EnvelopeHead): WorkLogLine {
  return {
    level: 'warn',
    facts: { event: 'lease-lost', ...factsOf(item) },
    text: `${named(item)} lost its lease in attempt ${item.attempt}: nothing of this run counts, and another worker may run it`,
  }
}

export function startLine(known: readonly string[], queues: readonly string[]): WorkLogLine {
  // Those of our own are no news.
  const types = known.filter((type) => !type.startsWith('@work/'))
  const what = types.length === 0 ? 'any type it is given' : types.join(', ')
  return {
    level: 'info',
    facts: { event: 'start', types, queues },
    text: `worker started: runs ${what} from ${queues.length === 1 ? 'queue' : 'queues'} ${queues.join(', ')}`,
  }
}

export function stopLine(): WorkLogLine {
  return { level: 'info', facts: { event: 'stop' }, text: 'worker stopped' }
}

export function leftOutLine(leftOut: ReadonlyMap<WorkLogKind, number>): WorkLogLine {
  const all = [...leftOut.values()].reduce((sum, count) => sum + count, 0)
  const kinds = [...leftOut].map(([kind, count]) => `${count} ${kind}`).join(', ')
  return {
    level: 'warn',
    facts: { event: 'left-out', leftOut: Object.fromEntries(leftOut) },
    text: `${all} more ${all === 1 ? 'line was' : 'lines were'} left out: ${kinds}`,
  }
}

function failureFacts(item: EnvelopeHead, { error, detail, ...why }: LoggedFailure, redacted: Redacted) {
  const shown = redacted('error', error, item)
  const { class: failureClass, rule } = why
  return {
    facts: {
      ...factsOf(item),
      error: shown,
      ...(detail === undefined ? {} : { detail: redacted('error', detailText(detail), item) }),
      class: failureClass,
      rule,
    },
    quote: ` (${failureClass}, ${rule}): ${listedError(shown, QUOTED_CHARACTERS)}`,
  }
}

function factsOf({ id, type, groupId, attempt }: EnvelopeHead) {
  return { id, type, groupId, attempt }
}

function named({ type, id }: EnvelopeHead): string {
  return `${type} ${id}`
}
