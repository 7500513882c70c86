import { callObserver } from '../../core/call-observer.js'
import { OptionTypeError } from '../../core/options.js'
import { clean } from '../../core/text/clean.js'
import { errorMessage } from '../../core/text/error-text.js'
import type { Redacted } from '../../core/text/redact.js'
import { peekString } from '../../core/text/safe-read.js'
import { hidePasswords } from '../../core/text/secrets.js'
import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import type { ClaimedItem, DeadEnding, EnvelopeHead } from '../../ports/item.js'
import type { Delivery } from '../../source/loop/delivery.js'
import type { RunPendingSettlement } from '../settle/pending-settlement.js'
import {
  cancelledLine,
  deadLine,
  type LoggedFailure,
  leaseLostLine,
  leftOutLine,
  retryLine,
  startLine,
  stopLine,
  type WorkLogFacts,
  type WorkLogKind,
  type WorkLogLevel,
  type WorkLogLine,
} from './log-lines.js'

/** A logger that takes the facts first and then the text, as pino does. A pino logger can be given as it is; so can `console`. */
export interface WorkLogger {
  info(facts: WorkLogFacts, text: string): void
  warn(facts: WorkLogFacts, text: string): void
  error(facts: WorkLogFacts, text: string): void
}

/** Where lines go, and from which level on. */
interface LogTarget {
  readonly logger: WorkLogger
  /** Whether `info` is written: starts, stops, cancels. */
  readonly isVerbose: boolean
  /** The user asked for it. */
  readonly isGiven: boolean
}

/** So many lines in one second; the others are counted, and the count is written at its end. */
const LINES_PER_SECOND = 20
const SECOND: Ms = 1_000

/**
 * Reads `createWork({ log })`. Without it, warnings and errors go to stderr: a worker whose handlers fail in silence has cost many
 * an afternoon. A program that listens (`onEvent`) knows already; under a test's clock, and in a test runner, nothing is written.
 */
export function logOption(
  log: boolean | WorkLogger | undefined,
  { hasListener, clock }: { readonly hasListener: boolean; readonly clock: Clock },
): LogTarget | undefined {
  if (log === false) return undefined
  if (log === true) return { logger: stderrLogger(clock), isVerbose: true, isGiven: true }
  if (log !== undefined) return { logger: checkedLogger(log), isVerbose: true, isGiven: true }
  // Vitest and Jest set it.
  const isTest = process.env['NODE_ENV'] === 'test' || clock.isReal !== true
  return hasListener || isTest ? undefined : { logger: stderrLogger(clock), isVerbose: false, isGiven: false }
}

function checkedLogger(log: WorkLogger): WorkLogger {
  const isLogger = typeof log === 'object' && log !== null
  if (!isLogger || !(['info', 'warn', 'error'] as const).every((level) => typeof log[level] === 'function'))
    throw new OptionTypeError('createWork.log', 'true, false, or a logger with info, warn and error', log)
  return log
}

/** `<time> <LEVEL> millrace: <text>`, one line each, on stderr: what the program prints stays its own. */
function stderrLogger(clock: Clock): WorkLogger {
  const line = (level: string) => (_: WorkLogFacts, text: string) =>
    // `console` ignores a pipe that was closed; a write of our own would end the process.
    console.error(`${new Date(clock.now()).toISOString()} ${level} millrace: ${clean(text)}`)
  return { info: line('INFO '), warn: line('WARN '), error: line('ERROR') }
}

/**
 * Writes one line for each failed run, dead item, lost lease, start and stop, once it is durable. What succeeds costs nothing. A
 * storm writes `LINES_PER_SECOND` and then a count.
 */
export class WorkLog {
  readonly #target: LogTarget | undefined
  readonly #clock: Clock
  readonly #redacted: Redacted
  readonly #worker: string
  readonly #leftOut = new Map<WorkLogKind, number>()
  #lines = 0
  #secondEndsMs = Number.NEGATIVE_INFINITY
  #cancel: (() => void) | undefined

  constructor(target: LogTarget | undefined, clock: Clock, redacted: Redacted, worker: string) {
    this.#target = target
    this.#clock = clock
    this.#redacted = redacted
    this.#worker = worker
  }

  /** The user asked for a log: errors that are not the failure of an item come here, too. */
  get isGiven(): boolean {
    return this.#target?.isGiven === true
  }

  started(types: readonly string[], queues: readonly string[]): void {
    if (this.#target?.isVerbose === true) this.#write(startLine(types, queues))
  }

  stopped(): void {
    this.#writeLeftOut()
    if (this.#target?.isVerbose === true) this.#write(stopLine())
  }

  settled({ ran, summary }: RunPendingSettlement): void {
    const { envelope } = ran.item
    switch (summary.kind) {
      case 'retried':
        if (this.#hasRoom('retry')) {
          this.#write(retryLine(envelope, failedIn(ran, summary), summary.delayMs, this.#redacted))
        }
        break
      case 'dead':
        this.#dead(envelope, summary.ending, () => failedIn(ran, summary))
        break
      case 'expired':
        this.#dead(envelope, 'expired', () => ({ error: summary.error, class: 'retryable', rule: 'deadline' }))
        break
      case 'cancelled':
        this.cancelled(envelope, summary.why)
        break
      default:
        break
    }
  }

  cancelled(item: EnvelopeHead, why: string): void {
    if (this.#target?.isVerbose === true && this.#hasRoom('cancelled')) {
      this.#write(cancelledLine(item, why, this.#redacted))
    }
  }

  unrouted(item: EnvelopeHead, failed: LoggedFailure): void {
    this.#dead(item, 'unroutable', () => failed)
  }

  leaseLost({ item }: Delivery<ClaimedItem>): void {
    if (this.#hasRoom('lease-lost')) this.#write(leaseLostLine(item.envelope))
  }

  /** An error that is not the failure of an item. */
  failed(error: unknown, phase: string): void {
    if (!this.#hasRoom('error')) return
    const code = peekString(error, 'code')
    const text = hidePasswords(errorMessage(error))
    const facts = { event: 'error', error: text, ...(code === undefined ? {} : { code }), phase } as const
    this.#write({ level: 'error', facts, text: code === undefined ? text : `${code}: ${text}` })
  }

  #dead(item: EnvelopeHead, ending: DeadEnding, failed: () => LoggedFailure): void {
    if (this.#hasRoom('dead')) this.#write(deadLine(item, ending, failed(), this.#redacted))
  }

  /** Before the line is made: what is left out costs a number. */
  #hasRoom(kind: WorkLogKind): boolean {
    if (this.#target === undefined) return false
    const nowMs = this.#clock.monotonic()
    if (nowMs >= this.#secondEndsMs) {
      this.#writeLeftOut()
      this.#secondEndsMs = nowMs + SECOND
      this.#lines = 0
    }
    this.#lines += 1
    if (this.#lines <= LINES_PER_SECOND) return true
    this.#leftOut.set(kind, (this.#leftOut.get(kind) ?? 0) + 1)
    this.#cancel ??= this.#clock.after(this.#secondEndsMs - nowMs, () => this.#writeLeftOut())
    return false
  }

  #writeLeftOut(): void {
    this.#cancel?.()
    this.#cancel = undefined
    if (this.#leftOut.size === 0) return
    const line = leftOutLine(this.#leftOut)
    this.#leftOut.clear()
    this.#write(line)
  }

  #write({ level, facts, text }: WorkLogLine): void {
    const logger = this.#target?.logger
    if (logger === undefined) return
    const all: WorkLogFacts = { ...facts, worker: this.#worker }
    callObserver(() => write(logger, level, all, text))
  }
}

function write(logger: WorkLogger, level: WorkLogLevel, facts: WorkLogFacts, text: string): void {
  // Called as a method: loggers use their `this`.
  logger[level](facts, text)
}

function failedIn(
  { outcome }: RunPendingSettlement['ran'],
  { error, class: failureClass, rule }: Omit<LoggedFailure, 'detail'>,
): LoggedFailure {
  return {
    error,
    class: failureClass,
    rule,
    detail: outcome.kind === 'threw' ? outcome.detail : undefined,
  }
}
