import { detailText, errorDetail } from '../core/failure/error-detail.js'
import { errorText } from '../core/text/error-text.js'
import { peekString } from '../core/text/safe-read.js'
import { EXIT, type ExitCode } from './exit.js'
import { jsonText } from './screen.js'
import { cleanLines } from './terminal/clean.js'
import type { Paint } from './terminal/paint.js'
import { wrapIndented } from './terminal/wrap.js'

/** Codes of usage errors. */
const USAGE = new Set(['USAGE', 'BAD_OPTION', 'BAD_CURSOR', 'AMBIGUOUS_ID'])
/** Codes of negative answers: the item does not exist, or the action does not apply. */
const NEGATIVE = new Set(['NO_ITEM', 'NO_ACTION', 'WRONG_STATE', 'CONTENDED', 'WRONG_PHASE', 'WRIT_REFERENCE'])

const NAME = 'millrace:'

/** The exit code of an error. */
export function exitOf(error: unknown): ExitCode {
  const code = peekString(error, 'code') ?? ''
  if (USAGE.has(code)) return EXIT.usage
  return NEGATIVE.has(code) ? EXIT.negative : EXIT.failed
}

export interface ErrorReport {
  readonly isJson: boolean
  readonly isDebug: boolean
  readonly paint: Paint
  /** How wide a line may be. */
  readonly columns: number
  /** Removes secrets. */
  readonly hide: (text: string) => string
  /** The command to type for help, if any. */
  readonly help: string | undefined
}

/** An error for people: what happened and what to try, and the stack with `--debug`. */
export function renderError(error: unknown, { isJson, isDebug, paint, columns, hide, help }: ErrorReport): string[] {
  const message = hide(messageOf(error))
  if (isJson) {
    const stack = isDebug ? { stack: hide(stackOf(error)) } : {}
    const code = peekString(error, 'code') ?? 'FAILED'
    return [jsonText({ error: { code, message, ...stack } }, 'line')]
  }
  const lines = wrapIndented(`${NAME} ${cleanLines(message)}`, columns)
  lines[0] = `${paint('bad', NAME)}${lines[0]!.slice(NAME.length)}`
  if (isDebug) lines.push(paint('dim', cleanLines(hide(stackOf(error)))))
  if (help !== undefined) lines.push(paint('dim', `Help: ${help}`))
  return lines
}

/** As `show` prints that of an item. */
function stackOf(error: unknown): string {
  const detail = errorDetail(error)
  return detail === undefined ? '(no stack)' : detailText(detail)
}

/** Our own errors are complete; others need the name and the system's error code. */
function messageOf(error: unknown): string {
  const code = peekString(error, 'code') ?? ''
  const message = peekString(error, 'message') ?? ''
  const isOurs = typeof error === 'object' && error !== null && 'facts' in error
  if (isOurs && message !== '') {
    const cause = peekString((error as { readonly cause?: unknown }).cause, 'message')
    // The cause of `There is no connection` says to what, and why.
    return cause === undefined || cause === '' || message.includes(cause) ? message : `${message} (${cause})`
  }
  const where = [
    peekString(error, 'syscall'),
    peekString(error, 'address') ?? peekString(error, 'hostname'),
    portOf(error),
  ].filter((one) => one !== undefined)
  if (NETWORK[code] !== undefined)
    return `The backend cannot be reached: ${NETWORK[code]} (${[code, ...where].join(' ')}). Check the address and the server.`
  // Several addresses of one host failed, each with its own error.
  const members = (error as { readonly errors?: unknown } | null)?.errors
  if (Array.isArray(members) && members.length > 0 && message === '') return messageOf(members[0])
  return message === '' ? errorText(error) : message
}

function portOf(error: unknown): string | undefined {
  const port = (error as { readonly port?: unknown } | null)?.port
  return typeof port === 'number' ? String(port) : undefined
}

const NETWORK: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the host name cannot be resolved',
  ETIMEDOUT: 'it does not answer',
  EHOSTUNREACH: 'the host is unreachable',
  ENETUNREACH: 'the network is unreachable',
  ECONNRESET: 'the connection was reset',
}
