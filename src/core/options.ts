import { type Facts, MillraceError } from './error.js'
import { closestName } from './text/closest-name.js'
import { describeValue } from './text/describe-value.js'
import { closestHint } from './text/did-you-mean.js'

/** The code of every error about an option, whichever of the classes below it is. */
const BAD_OPTION = 'BAD_OPTION'

/**
 * An option that cannot be used: `<option> must be <allowed>, got <given>`. `option` is the path as the caller wrote it.
 * Bad numbers are `OptionRangeError`s and wrong types `OptionTypeError`s, so that `instanceof RangeError` and
 * `instanceof TypeError` answer as people expect; this class is for the rest (options that contradict each other).
 * All of them have `code === 'BAD_OPTION'`: compare that.
 */
export class OptionError extends MillraceError {
  readonly option: string
  constructor(option: string, allowed: string, given: unknown) {
    super(BAD_OPTION, sentence(option, allowed, given), { facts: { option, allowed, given: describeValue(given) } })
    this.option = option
  }
}

/** A number that is no number, or outside what the option allows. */
export class OptionRangeError extends RangeError {
  readonly code: string = BAD_OPTION
  readonly option: string
  readonly facts: Facts
  constructor(option: string, allowed: string, given: unknown) {
    super(sentence(option, allowed, given))
    this.name = 'OptionRangeError'
    this.option = option
    this.facts = Object.freeze({ option, allowed, given: describeValue(given) })
  }
}

/** A value of the wrong type: no function where one is called, no object where options are read. */
export class OptionTypeError extends TypeError {
  readonly code: string = BAD_OPTION
  readonly option: string
  readonly facts: Facts
  constructor(option: string, allowed: string, given: unknown) {
    super(sentence(option, allowed, given))
    this.name = 'OptionTypeError'
    this.option = option
    this.facts = Object.freeze({ option, allowed, given: describeValue(given) })
  }
}

/** An option that does not exist. Names the closest one that does, because it is nearly always a slip of the keyboard. */
export class UnknownOptionError extends MillraceError {
  readonly option: string
  readonly closest: string | undefined
  constructor(owner: string, name: string, names: readonly string[]) {
    const closest = closestName(name, names)
    const known = names.length === 0 ? ' It takes none.' : ` Options: ${names.join(', ')}.`
    super(BAD_OPTION, `${describeValue(name)} is not an option of ${owner}.${closestHint(name, names)}${known}`, {
      facts: { option: `${owner}.${name}`, closest },
    })
    this.option = `${owner}.${name}`
    this.closest = closest
  }
}

/** What a number has to satisfy. Finite unless `infinite`; required unless there is a `default`. */
export interface NumberRule {
  readonly default?: number
  readonly min?: number
  /** Strictly more than this. */
  readonly above?: number
  readonly max?: number
  readonly integer?: boolean
  /** `Infinity` is allowed too (never `-Infinity`). */
  readonly infinite?: boolean
}

/**
 * Reads a number. `undefined` takes the default; everything else that breaks the rule, `null` and `'5'` included, is a
 * RangeError.
 */
export function numberOption(path: string, value: unknown, rule: NumberRule = {}): number {
  if (value === undefined && rule.default !== undefined) return rule.default
  if (typeof value === 'number' && fits(value, rule)) return value
  throw new OptionRangeError(path, allowedNumbers(rule), value)
}

/** `numberOption` for whole numbers. */
export function integerOption(path: string, value: unknown, rule: NumberRule = {}): number {
  return numberOption(path, value, { ...rule, integer: true })
}

/** Reads a function. `undefined` takes the fallback; without one it is required. */
export function functionOption<F extends (...args: never[]) => unknown>(path: string, value: unknown, fallback?: F): F {
  if (value === undefined && fallback !== undefined) return fallback
  if (typeof value === 'function') return value as F
  throw new OptionTypeError(path, 'a function', value)
}

/** Reads a boolean. `undefined` takes the fallback; without one it is required. */
export function booleanOption(path: string, value: unknown, fallback?: boolean): boolean {
  if (value === undefined && fallback !== undefined) return fallback
  if (typeof value === 'boolean') return value
  throw new OptionTypeError(path, 'true or false', value)
}

/** Reads a non-empty string. `undefined` takes the fallback; without one it is required. */
export function stringOption(path: string, value: unknown, fallback?: string): string {
  if (value === undefined && fallback !== undefined) return fallback
  if (typeof value === 'string' && value !== '') return value
  throw new OptionTypeError(path, 'a non-empty string', value)
}

/** Reads one of a few words. `undefined` takes the fallback; without one it is required. */
export function oneOfOption<T extends string>(path: string, value: unknown, words: readonly T[], fallback?: T): T {
  if (value === undefined && fallback !== undefined) return fallback
  const found = words.find((word) => word === value)
  if (found !== undefined) return found
  throw new OptionTypeError(path, words.map((word) => `'${word}'`).join(' or '), value)
}

/**
 * Reads an object of options and refuses names that are not among `names`. `undefined` is an empty object.
 * @example
 * ```ts
 * const given = optionsObject('retry', options, ['maxAttempts', 'backoff'])
 * const maxAttempts = integerOption('retry.maxAttempts', given.maxAttempts, { min: 1, default: 5 })
 * ```
 */
export function optionsObject<T extends object>(
  owner: string,
  value: T | undefined,
  names: readonly (keyof T & string)[],
): T {
  if (value === undefined) return {} as T // Every option is optional here: what is required is checked where it is read.
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new OptionTypeError(owner, 'an object of options', value)
  }
  for (const name of Object.keys(value)) {
    if (!(names as readonly string[]).includes(name)) throw new UnknownOptionError(owner, name, names)
  }
  return value
}

function fits(value: number, rule: NumberRule): boolean {
  if (value === Infinity) return rule.infinite === true && (rule.max === undefined || rule.max === Infinity)
  if (!Number.isFinite(value)) return false
  if (rule.integer === true && !Number.isInteger(value)) return false
  if (rule.min !== undefined && value < rule.min) return false
  if (rule.above !== undefined && value <= rule.above) return false
  return rule.max === undefined || value <= rule.max
}

function allowedNumbers(rule: NumberRule): string {
  const bounds = [
    rule.min === undefined ? '' : `>= ${rule.min}`,
    rule.above === undefined ? '' : `> ${rule.above}`,
    rule.max === undefined ? '' : `<= ${rule.max}`,
  ].filter((bound) => bound !== '')
  const kind = rule.integer === true ? 'an integer' : rule.infinite === true ? 'a number' : 'a finite number'
  return bounds.length === 0 ? kind : `${kind} ${bounds.join(' and ')}`
}

function sentence(option: string, allowed: string, given: unknown): string {
  return given === undefined
    ? `${option} is required: it must be ${allowed}`
    : `${option} must be ${allowed}, got ${describeValue(given)}`
}
