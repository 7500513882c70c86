import { causeChain } from '../failure/error-chain.js'
import { errorMessage, errorName } from '../text/error-text.js'
import { peekString } from '../text/safe-read.js'
import { hidePasswords } from '../text/secrets.js'
import { processWide } from './process-wide.js'

/** How many different problems are remembered: messages may contain anything, and memory has an end. */
const MOST_REMEMBERED = 200

type Warn = (code: string, error: unknown, listener: string) => void

/**
 * Emits a process warning for an error that has no listener. The same problem is reported once in a process, by the first part that meets
 * it first: a server that is down is met by every connection, every poll and every enqueue. An error whose cause has been reported
 * already is the same problem.
 *
 * @param code the code of the warning, which begins with `MILLRACE_`
 * @param listener the option that is called with every error instead, such as `createWork({ onError })`
 */
export const warnOnce: Warn = (...problem) => warnerOfProcess()(...problem)

const warnerOfProcess = processWide('warned', () => onceWarner(MOST_REMEMBERED))

/** The same, each time. */
export function warn(code: string, error: unknown, listener: string): void {
  emit(code, error, `${listener} is called with every error.`)
}

/** One that remembers so many. The first error beyond them is reported as the last one. */
export function onceWarner(mostRemembered: number): Warn {
  const said = new Set<string>()
  let isOver = false
  return (code, error, listener) => {
    const keys = causeChain(error).map(keyOf)
    if (isOver || keys.some((key) => said.has(key))) return remember(keys)
    isOver = said.size >= mostRemembered
    remember(keys)
    const before = isOver
      ? `This process has met ${mostRemembered} different errors, and reports no new ones.`
      : 'Reported once.'
    emit(code, error, `${before} ${listener} is called with every error.`)
  }

  function remember(keys: readonly string[]): void {
    for (const key of keys) if (said.size < mostRemembered) said.add(key)
  }
}

function emit(code: string, error: unknown, note: string): void {
  const own = peekString(error, 'code')
  const text = hidePasswords(errorMessage(error))
  process.emitWarning(`${own === undefined ? '' : `${own}: `}${text} (${note})`, { type: 'MillraceWarning', code })
}

/** Durations differ from one time to the next, and make no other problem of it. */
function keyOf(error: unknown): string {
  const text = errorMessage(error).replace(/\d+(?:\.\d+)? ms/g, '… ms')
  return `${peekString(error, 'code') ?? errorName(error)} ${text.slice(0, 500)}`
}
