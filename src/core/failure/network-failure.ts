import { peekString } from '../text/safe-read.js'
import type { Verdict } from './failure.js'

const NETWORK_CODES: ReadonlySet<string> = new Set([
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETRESET',
  'ENETUNREACH',
  'ENOTCONN',
  'EPIPE',
  'EPROTO',
  'ERR_NETWORK',
  'ERR_SOCKET_CLOSED',
  'ERR_STREAM_PREMATURE_CLOSE',
  'ESOCKETTIMEDOUT',
  'ETIMEDOUT',
])
const ABORT_CODES: ReadonlySet<string> = new Set(['ABORT_ERR', 'ERR_ABORTED', 'ERR_CANCELED', 'UND_ERR_ABORTED'])
const ABORT_NAMES: ReadonlySet<string> = new Set(['AbortError', 'CanceledError'])

const NETWORK: Verdict = Object.freeze({ class: 'retryable', rule: 'network' })
const DNS: Verdict = Object.freeze({ class: 'retryable', rule: 'dns' })
const TIMEOUT: Verdict = Object.freeze({ class: 'retryable', rule: 'timeout' })
const ABORT: Verdict = Object.freeze({ class: 'retryable', rule: 'abort' })

/**
 * Whether this one error speaks of the way to another machine rather than of the work: the network, name resolution, a
 * timeout or an abort. Goes by codes and names. All of them pass, so all are retryable; the rule says which it was.
 */
export function networkVerdict(error: unknown): Verdict | undefined {
  const code = peekString(error, 'code')
  if (code !== undefined) {
    if (ABORT_CODES.has(code)) return ABORT
    if (code === 'ENOTFOUND' || code === 'ENODATA' || code.startsWith('EAI_')) return DNS
    if (NETWORK_CODES.has(code) || code.startsWith('UND_ERR_')) return NETWORK
  }
  const name = peekString(error, 'name')
  if (name === undefined) return undefined
  if (ABORT_NAMES.has(name)) return ABORT
  return name.endsWith('TimeoutError') ? TIMEOUT : undefined
}
