import { UsageError } from '../usage-error.js'

/**
 * An error as typed: text, `Name: text`, or JSON with the fields of an error (name, message, code, status, cause). It has no
 * stack, because it was never thrown.
 */
export function readError(text: string): Error {
  if (text.trim() === '') throw new UsageError('Which error? Give its text, or JSON such as {"status":503}.', 'preview')
  if (!text.trimStart().startsWith('{')) {
    const named = /^([A-Z]\w{2,60}): (.*)$/s.exec(text)
    return made(named === null ? { message: text } : { name: named[1]!, message: named[2]! })
  }
  let given: unknown
  try {
    given = JSON.parse(text)
  } catch (error) {
    throw new UsageError(`The error begins with { but is not JSON: ${(error as Error).message}`, 'preview')
  }
  // It begins with a brace, so it is an object.
  return made(given as Readonly<Record<string, unknown>>)
}

function made({ message, cause, stack: _, ...rest }: Readonly<Record<string, unknown>>): Error {
  const isNested = typeof cause === 'object' && cause !== null && !Array.isArray(cause)
  const error = new Error(
    typeof message === 'string' ? message : '',
    cause === undefined ? {} : { cause: isNested ? made(cause as Readonly<Record<string, unknown>>) : cause },
  )
  for (const [name, value] of Object.entries(rest)) {
    // Defined, not assigned, so that `__proto__` is an ordinary name.
    Object.defineProperty(error, name, { value, configurable: true, enumerable: true, writable: true })
  }
  delete (error as { stack?: string }).stack
  return error
}
