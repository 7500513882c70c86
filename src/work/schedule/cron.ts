import { MillraceError } from '../../core/error.js'
import { describeValue } from '../../core/text/describe-value.js'

/** A parsed cron expression: which values each of its fields matches. */
export interface Cron {
  /** 0–59 */
  readonly minute: Set<number>
  /** 0–23 */
  readonly hour: Set<number>
  /** Day of the month, 1–31 */
  readonly dom: Set<number>
  /** 1–12 */
  readonly month: Set<number>
  /** Day of the week, 0–6; 0 is Sunday. */
  readonly dow: Set<number>
  /** The day of the month is not `*`. When both days are restricted, a date matches if either of them does. */
  readonly domRestricted: boolean
  readonly dowRestricted: boolean
}

/** A cron expression that cannot be read. Its message begins with `cron:`. */
export class CronError extends MillraceError {
  constructor(what: string, facts: { readonly expr?: string; readonly field?: string } = {}) {
    super('BAD_CRON', `cron: ${what}`, { facts })
  }
}

interface Field {
  readonly name: string
  readonly min: number
  readonly max: number
  /** Names of its values, from `min` on. */
  readonly names?: readonly string[]
  /** A value beyond `max` that means `min` again: Sunday is 7, too. */
  readonly wraps?: number
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'] as const
const DAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'] as const

const FIELDS: readonly [Field, Field, Field, Field, Field] = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of month', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12, names: MONTHS },
  { name: 'day of week', min: 0, max: 6, names: DAYS, wraps: 7 },
]

const NICKNAMES: Readonly<Record<string, string>> = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
}

/**
 * Reads a cron expression of five fields: minute, hour, day of month, month, day of week. Each is `*`, a number, `a-b`, any of
 * these with `/step` (`a/step` begins at `a`), or a list of them. Months and days have names (`JAN`, `MON`), Sunday is 0 and 7;
 * `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly` are nicknames.
 * Throws a `CronError` that begins with `cron:`.
 *
 * @example
 * ```ts
 * parseCron('0,30 9-17 * * MON-FRI').minute // Set { 0, 30 }
 * ```
 */
export function parseCron(expr: string): Cron {
  const [minute, hour, dom, month, dow] = cronFields(expr)
  return {
    minute: valuesOf(FIELDS[0], minute, expr),
    hour: valuesOf(FIELDS[1], hour, expr),
    dom: valuesOf(FIELDS[2], dom, expr),
    month: valuesOf(FIELDS[3], month, expr),
    dow: valuesOf(FIELDS[4], dow, expr),
    domRestricted: dom !== '*',
    dowRestricted: dow !== '*',
  }
}

/** The texts of the five fields, with nicknames spelt out. */
export function cronFields(expr: string): readonly [string, string, string, string, string] {
  if (typeof expr !== 'string') throw new CronError(`expected a text of 5 fields, got ${describeValue(expr)}`)
  const trimmed = expr.trim()
  const spelt = trimmed.startsWith('@') ? NICKNAMES[trimmed.toLowerCase()] : trimmed
  if (spelt === undefined)
    throw new CronError(`unknown nickname ${describeValue(trimmed)}. Known: ${Object.keys(NICKNAMES).join(', ')}`, {
      expr,
    })
  const fields = spelt === '' ? [] : spelt.split(/\s+/)
  if (fields.length !== 5) throw new CronError(`expected 5 fields, got ${fields.length} in "${expr}"`, { expr })
  return fields as [string, string, string, string, string] // As just counted.
}

function valuesOf(field: Field, text: string, expr: string): Set<number> {
  const values = new Set<number>()
  for (const part of text.split(',')) {
    const { from, to, step } = partOf(field, part, expr)
    for (let value = from; value <= to; value += step) values.add(value === field.wraps ? field.min : value)
  }
  return new Set([...values].sort((a, b) => a - b))
}

/** One element of a list. */
function partOf(field: Field, part: string, expr: string): { from: number; to: number; step: number } {
  const bad = (why: string) =>
    new CronError(`${why} in the ${field.name} field of "${expr}"`, { expr, field: field.name })
  if (part === '') throw bad('an empty part')
  const [range = '', stepText, ...moreSteps] = part.split('/')
  if (moreSteps.length > 0) throw bad(`more than one "/" in "${part}"`)
  const step = stepText === undefined ? 1 : wholeNumber(stepText)
  if (step === undefined || step === 0) throw bad(`the step of "${part}" must be a whole number from 1`)
  if (range === '*') return { from: field.min, to: field.max, step }
  const [first = '', last, ...moreEnds] = range.split('-')
  if (moreEnds.length > 0) throw bad(`"${part}" is not a range`)
  const read = (text: string, isEnd: boolean) => {
    const value = named(field, text, isEnd) ?? wholeNumber(text)
    if (value === undefined) throw bad(`"${text}" is not a number${field.names === undefined ? '' : ' or a name'}`)
    const max = field.wraps ?? field.max
    if (value < field.min || value > max) throw bad(`${value} is not within ${field.min}-${max}`)
    return value
  }
  const from = read(first, false)
  if (last === undefined) return { from, to: stepText === undefined ? from : Math.max(from, field.max), step }
  const to = read(last, true)
  if (to < from) throw bad(`"${range}" ends before it begins`)
  return { from, to, step }
}

/** A name's value. Sunday at the end of a range is the 7th day: `FRI-SUN` is a weekend, not a mistake. */
function named({ names, min, wraps }: Field, text: string, isEnd: boolean): number | undefined {
  const place = names?.indexOf(text.toUpperCase()) ?? -1
  if (place < 0) return undefined
  return place === 0 && isEnd && wraps !== undefined ? wraps : min + place
}

/** Digits only: no sign, no hex, no exponent. */
function wholeNumber(text: string): number | undefined {
  return /^\d{1,4}$/.test(text) ? Number(text) : undefined
}
