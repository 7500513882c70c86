import { OptionTypeError } from '../../core/options.js'
import { isWellFormed } from '../../core/text/well-formed.js'

/** The longest prefix: an index's name begins with it too. */
const MAX_PREFIX = 500

const NAMES = [
  'item',
  'profile',
  'ready',
  'lease',
  'held',
  'job',
  'item_tag',
  'attempt',
  'item_group',
  'gate',
  'gate_member',
  'watcher',
  'pause',
  'schedule',
  'worker',
  'action_log',
  'notification',
  'message',
  'dead_letter',
  'store',
  'setting',
] as const

/** Every table by its own name, prefixed and quoted: what stands here may be put into a statement. */
export type Tables = Readonly<Record<(typeof NAMES)[number], string>> & {
  /** The name of an index or a trigger, prefixed and quoted. */
  named(name: string): string
}

export function tablesOf(prefix: string): Tables {
  const named = (name: string): string => `"${`${prefix}${name}`.replaceAll('"', '""')}"`
  const tables = Object.fromEntries(NAMES.map((name) => [name, named(name)])) as Record<(typeof NAMES)[number], string>
  return { ...tables, named }
}

/** Reads the prefix of all tables. Quotes, braces and any script are fine; what SQLite reserves or cannot hold is not. */
export function prefixOption(path: string, value: unknown): string {
  if (value === undefined) return 'millrace_'
  const isGood =
    typeof value === 'string' &&
    value.length <= MAX_PREFIX &&
    !value.includes('\0') &&
    isWellFormed(value) &&
    !/^sqlite_/i.test(value)
  if (isGood) return value
  throw new OptionTypeError(
    path,
    `a string of at most ${MAX_PREFIX} characters, without U+0000 and half surrogate pairs, that does not begin with "sqlite_"`,
    value,
  )
}
