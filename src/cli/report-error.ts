import { errorStack, errorText } from '../core/error-text.js'
import { peekString } from '../core/safe-read.js'
import { EXIT, type ExitCode } from './exit.js'
import { jsonText } from './screen.js'
import { cleanLines } from './terminal/clean.js'
import type { Paint } from './terminal/paint.js'

/** Errors that say: called wrongly. */
const USAGE = new Set(['USAGE', 'BAD_OPTION', 'BAD_CURSOR'])
/** Errors that answer the question: what was asked for is not there, or cannot be done to it. */
const NEGATIVE = new Set(['NO_ITEM', 'NO_ACTION', 'WRONG_STATE', 'CONTENDED'])

/** What an error ends the process with. */
export function exitOf(error: unknown): ExitCode {
  const code = peekString(error, 'code') ?? ''
  if (USAGE.has(code)) return EXIT.usage
  return NEGATIVE.has(code) ? EXIT.negative : EXIT.failed
}

export interface ErrorReport {
  readonly isJson: boolean
  readonly isDebug: boolean
  readonly paint: Paint
  /** Takes out what is secret. */
  readonly hide: (text: string) => string
  /** What to type for help, where that would help. */
  readonly help: string | undefined
}

/** An error as a person reads it: what happened and what to try. Where it came from only if they ask. */
export function renderError(error: unknown, { isJson, isDebug, paint, hide, help }: ErrorReport): string[] {
  const message = hide(messageOf(error))
  if (isJson) {
    const stack = isDebug ? { stack: hide(errorStack(error) ?? '') } : {}
    const code = peekString(error, 'code') ?? 'FAILED'
    return [jsonText({ error: { code, message, ...stack } }, 'line')]
  }
  const lines = cleanLines(message).split('\n')
  lines[0] = `${paint('bad', 'millrace:')} ${lines[0]}`
  if (isDebug) lines.push(paint('dim', cleanLines(hide(errorStack(error) ?? '(no stack)'))))
  if (help !== undefined) lines.push(paint('dim', `Help: ${help}`))
  return lines
}

/** Our own errors speak for themselves; others need their name, and what the system called the trouble. */
function messageOf(error: unknown): string {
  const code = peekString(error, 'code') ?? ''
  const message = peekString(error, 'message') ?? ''
  const isOurs = typeof error === 'object' && error !== null && 'facts' in error
  if (isOurs && message !== '') {
    const cause = peekString((error as { readonly cause?: unknown }).cause, 'message')
    // `There is no connection`: to what, and why, stands in the cause.
    return cause === undefined || cause === '' || message.includes(cause) ? message : `${message} (${cause})`
  }
  const where = [
    peekString(error, 'syscall'),
    peekString(error, 'address') ?? peekString(error, 'hostname'),
    portOf(error),
  ].filter((one) => one !== undefined)
  if (NETWORK[code] !== undefined)
    return `The backend cannot be reached: ${NETWORK[code]} (${[code, ...where].join(' ')}). Look at the address and the server.`
  // Several addresses of one host were tried, and none answered: each has its own error.
  const members = (error as { readonly errors?: unknown } | null)?.errors
  if (Array.isArray(members) && members.length > 0 && message === '') return messageOf(members[0])
  return message === '' ? errorText(error) : message
}

function portOf(error: unknown): string | undefined {
  const port = (error as { readonly port?: unknown } | null)?.port
  return typeof port === 'number' ? String(port) : undefined
}

const NETWORK: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name of the host cannot be looked up',
  ETIMEDOUT: 'it does not answer',
  EHOSTUNREACH: 'there is no way to that host',
  ENETUNREACH: 'there is no way to that network',
  ECONNRESET: 'the other side cut the line',
}
