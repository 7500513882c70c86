import { isBranded } from './brand.js'
import { peek } from './text/safe-read.js'

/** Facts that go with an error, for logs and tools: plain data only. */
export type Facts = Readonly<Record<string, string | number | boolean | undefined>>

/** As `ErrorOptions`, which only programs for ES2022 have: ours may be compiled for less. */
export type WithCause = { readonly cause?: unknown }

/** Marks the errors of every copy of the package. */
const BRAND = Symbol.for('millrace.error')

/** What a class of errors is called while no minifier has renamed it. The names that a minifier gives mean nothing elsewhere. */
const GIVEN_NAME = /(?:Error|Abort|Rejection|Warning)$/

const isMadeBy = Function.prototype[Symbol.hasInstance]

/**
 * The base of every error that Millrace raises. Compare `code`, which is part of the API; messages say what happened, to what, and
 * what to try, and may improve at any time. `instanceof` knows the errors of another copy of the package by the names of their
 * classes.
 */
export class MillraceError extends Error {
  /** @internal */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: each class that extends this one asks for itself.
    return isOf(this, value)
  }

  /** @internal */
  get [BRAND](): true {
    return true
  }

  readonly code: string
  readonly facts: Facts
  constructor(code: string, message: string, options: WithCause & { readonly facts?: Facts } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.name = new.target.name
    this.code = code
    this.facts = Object.freeze({ ...options.facts })
  }
}

function isOf(type: typeof MillraceError, value: unknown): boolean {
  if (isMadeBy.call(type, value)) return true
  // An error of this copy has the classes of this copy: it has just been asked for them.
  if (peek(value, BRAND) !== true || isMadeBy.call(MillraceError, value)) return false
  return GIVEN_NAME.test(type.name) && namesOfClasses(value as object).includes(type.name)
}

/** The classes of a branded error, from its own up to the base. */
function namesOfClasses(error: object): readonly string[] {
  const names: string[] = []
  for (let at: object = Object.getPrototypeOf(error); isBranded(at, BRAND); at = Object.getPrototypeOf(at))
    names.push(at.constructor.name)
  return names
}
