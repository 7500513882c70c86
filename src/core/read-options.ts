import {
  booleanOption,
  functionOption,
  integerOption,
  type NumberRule,
  numberOption,
  OptionTypeError,
  oneOfOption,
  optionsObject,
  stringOption,
} from './options.js'
import { type Clock, isClock } from './time/clock.js'

/** Reads one option: `path` is its name in errors, `undefined` means that it was left out. */
export type OptionReader<V> = (path: string, value: unknown) => V

/** Checks an option and leaves it as it is: its type is the one that its declaration has. */
type OptionCheck = <V>(path: string, value: V) => V

type Table<T> = { readonly [K in keyof T]-?: OptionReader<unknown> | OptionCheck }

/** What a table reads. */
export type ReadBy<T, R> = {
  readonly [K in keyof R & keyof T]: R[K] extends OptionCheck ? T[K] : R[K] extends OptionReader<infer V> ? V : never
}

/**
 * Reads an object of options by a table that has a reader for each of them, in this order. What the table does not name is refused,
 * and the compiler holds the table against the declaration of the options: each of them is written down once in both.
 *
 * @example
 * ```ts
 * const { leaseMs, subject } = readOptions('inlet', options, { leaseMs: number({ above: 0, default: 30_000 }), subject: text('queue') })
 * ```
 */
export function readOptions<T extends object, const R extends Table<T>>(
  owner: string,
  value: T | undefined,
  table: R & Readonly<Record<Exclude<keyof R, keyof T>, never>>,
): ReadBy<T, R> {
  const readers = table as unknown as Readonly<Record<string, OptionReader<unknown>>>
  const given = optionsObject(owner, value, Object.keys(readers) as (keyof T & string)[]) as Record<string, unknown>
  const read = Object.entries(readers).map(([name, reader]) => [name, reader(`${owner}.${name}`, given[name])])
  // One entry for each reader of the table.
  return Object.freeze(Object.fromEntries(read)) as ReadBy<T, R>
}

export const number =
  (rule?: NumberRule): OptionReader<number> =>
  (path, value) =>
    numberOption(path, value, rule)

export const integer =
  (rule?: NumberRule): OptionReader<number> =>
  (path, value) =>
    integerOption(path, value, rule)

export const flag =
  (fallback?: boolean): OptionReader<boolean> =>
  (path, value) =>
    booleanOption(path, value, fallback)

export const text =
  (fallback?: string): OptionReader<string> =>
  (path, value) =>
    stringOption(path, value, fallback)

/** What keys begin with: a text that may be empty. */
export const keyPrefix =
  (fallback: string): OptionReader<string> =>
  (path, value) =>
    value === '' ? '' : stringOption(path, value, fallback)

export const oneOf =
  <const W extends string>(words: readonly W[], fallback?: W): OptionReader<W> =>
  (path, value) =>
    oneOfOption(path, value, words, fallback)

export const callable =
  <F extends (...args: never[]) => unknown>(fallback?: F): OptionReader<F> =>
  (path, value) =>
    functionOption(path, value, fallback)

/** A clock with all its methods. */
export const clock =
  <F extends Clock | undefined>(fallback: F): OptionReader<Clock | F> =>
  (path, value) => {
    if (value === undefined) return fallback
    if (isClock(value)) return value
    throw new OptionTypeError(path, 'a Clock: { now, monotonic, after, sleep }', value)
  }

/** A signal, or nothing. */
export const signal: OptionReader<AbortSignal | undefined> = (path, value) => {
  if (value === undefined || value instanceof AbortSignal) return value
  throw new OptionTypeError(path, 'an AbortSignal', value)
}

/** Undefined if it was left out. */
export const optional =
  <V>(read: OptionReader<V>): OptionReader<V | undefined> =>
  (path, value) =>
    value === undefined ? undefined : read(path, value)

/** As it is: checked by what uses it. */
export const unchecked: OptionCheck = (_path, value) => value

/** A function, or nothing. */
export const listener: OptionCheck = (path, value) => {
  if (value !== undefined) functionOption(path, value)
  return value
}
