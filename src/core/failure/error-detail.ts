import { errorMessage, errorName, truncateUtf8, wholeMessage } from '../text/error-text.js'
import { isObject, peek, peekString } from '../text/safe-read.js'
import { causeChain } from './error-chain.js'

/** An error as it is stored with an attempt: what a developer needs to find its cause, limited in size. */
export interface ErrorDetail {
  readonly name: string
  readonly message: string
  readonly code?: string
  /** Where it was thrown: the lines of its stack, without the message. */
  readonly stack?: string
  readonly cause?: ErrorDetail
}

/** How many causes are kept. Deeper ones are seldom more than wrappers. */
const MOST_CAUSES = 5
/** An item keeps the details of several attempts: one with all its causes is at most about 16 KiB. */
const MESSAGE_BYTES = 1_024
const STACK_BYTES = 4_096
const CAUSE_STACK_BYTES = 1_536
const CODE_BYTES = 200

/** What was thrown, with its causes. Undefined for a value that says no more than its text. Never throws. */
export function errorDetail(error: unknown): ErrorDetail | undefined {
  if (!isObject(error)) return undefined
  const chain = causeChain(error).slice(0, MOST_CAUSES + 1)
  return chain.reduceRight<ErrorDetail | undefined>((cause, one, i) => {
    const detail = detailOf(one, i === 0 ? STACK_BYTES : CAUSE_STACK_BYTES)
    return cause === undefined ? detail : { ...detail, cause }
  }, undefined)
}

function detailOf(error: unknown, stackBytes: number): ErrorDetail {
  const message = errorMessage(error)
  const code = peek(error, 'code')
  const stack = framesOf(error, message, 2 * STACK_BYTES)
  return {
    name: truncateUtf8(errorName(error), CODE_BYTES),
    message: truncateUtf8(wholeMessage(error), MESSAGE_BYTES),
    ...(typeof code === 'string' || typeof code === 'number' ? { code: truncateUtf8(String(code), CODE_BYTES) } : {}),
    ...(stack === '' ? {} : { stack: truncateUtf8(stack, stackBytes) }),
  }
}

/**
 * The lines of its stack, at most `most` characters of them. The stack repeats the message, which may be long, and whose lines could
 * look like frames: only what follows it counts.
 */
export function framesOf(error: unknown, message: string, most: number): string {
  const stack = peekString(error, 'stack') ?? ''
  const at = message === '' ? -1 : stack.indexOf(message)
  const from = at === -1 ? stack.search(/^ *at /m) : stack.indexOf('\n', at + message.length) + 1
  return from <= 0 && at !== -1 ? '' : stack.slice(Math.max(0, from), Math.max(0, from) + most).trimEnd()
}

/** The stack of an error and of its causes, as Node prints them. */
export function detailText({ name, message, code, stack, cause }: ErrorDetail): string {
  const head = `${name}: ${message}${code === undefined ? '' : ` (${code})`}`
  const own = stack === undefined ? head : `${head}\n${stack}`
  return cause === undefined ? own : `${own}\nCaused by: ${detailText(cause)}`
}

/** An error that looks like the one that was stored: for those who catch it in another process. */
export function errorFrom({ name, message, code, stack, cause }: ErrorDetail): Error {
  const error = new Error(message, cause === undefined ? {} : { cause: errorFrom(cause) })
  const head = `${name}: ${message}`
  const fields = {
    name,
    stack: stack === undefined ? head : `${head}\n${stack}`,
    ...(code === undefined ? {} : { code }),
  }
  for (const [key, value] of Object.entries(fields))
    Object.defineProperty(error, key, { value, configurable: true, writable: true, enumerable: key === 'code' })
  return error
}
