import { causeChain } from './error-chain.js'
import { errorMessage, errorName } from './error-text.js'
import { peekString } from './safe-read.js'
import { hidePasswords } from './secrets.js'

/** How many different troubles are remembered: messages may contain anything, and memory has an end. */
const MOST_REMEMBERED = 200

const said = new Set<string>()

/**
 * Emits a process warning for an error that has no listener. The same trouble is said once in a process, by whichever part meets
 * it first: a server that is down is met by every connection, every poll and every enqueue. An error whose cause has been said
 * already is the same trouble.
 *
 * @param code the code of the warning, which begins with `MILLRACE_`
 * @param listener the option that hears every error instead, such as `createWork({ onError })`
 */
export function warnOnce(code: string, error: unknown, listener: string): void {
  const keys = causeChain(error).map(keyOf)
  const isSaid = keys.some((key) => said.has(key)) || said.size >= MOST_REMEMBERED
  for (const key of keys) if (said.size < MOST_REMEMBERED) said.add(key)
  if (isSaid) return
  const own = peekString(error, 'code')
  const text = hidePasswords(errorMessage(error))
  process.emitWarning(`${own === undefined ? '' : `${own}: `}${text} (Said once. ${listener} hears every error.)`, {
    type: 'MillraceWarning',
    code,
  })
}

/** Durations differ from one time to the next, and make no other trouble of it. */
function keyOf(error: unknown): string {
  const text = errorMessage(error).replace(/\d+(?:\.\d+)? ms/g, '… ms')
  return `${peekString(error, 'code') ?? errorName(error)} ${text.slice(0, 500)}`
}
