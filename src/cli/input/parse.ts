import { parseArgs } from 'node:util'
import { closestHint } from '../../core/text/did-you-mean.js'
import type { At } from '../../core/time/time.js'
import type { Command } from '../command.js'
import { UsageError } from '../usage-error.js'
import { type Flag, type Flags, readFlag } from './flags.js'

/** Flags that every command takes. */
export const COMMON_FLAGS = {
  json: { kind: 'switch', about: 'print JSON for programs instead of tables' },
  'no-color': { kind: 'switch', about: 'no colours (they are only used on a terminal, and never with NO_COLOR)' },
  debug: { kind: 'switch', about: 'show the stack trace of an error' },
  help: { kind: 'switch', short: 'h', about: 'show this help' },
  version: { kind: 'switch', short: 'V', about: 'show the version' },
} as const satisfies Flags

/** Flags that name the backend. */
export const BACKEND_FLAGS = {
  backend: {
    kind: 'text',
    value: '<address>',
    about: 'sqlite:<file>, postgres://… or redis://…; default: the value of MILLRACE_BACKEND',
  },
  schema: { kind: 'text', value: '<name>', about: 'the schema on PostgreSQL; default: millrace' },
  prefix: {
    kind: 'text',
    value: '<text>',
    about: 'the prefix on SQLite (default: millrace_) or Redis (default: millrace)',
  },
  timeout: {
    kind: 'duration',
    value: '<time>',
    min: 1,
    about: 'how long to wait for each answer; default: 30s, but 15s for the first',
  },
  redact: {
    kind: 'text',
    value: '<module>',
    about: 'a module that exports a function which redacts payloads and errors; default: the value of MILLRACE_REDACT',
  },
} as const satisfies Flags

export interface Parsed {
  /** Undefined: no command, as in `millrace --help`. */
  readonly command: Command | undefined
  readonly flags: Readonly<Record<string, string | number | boolean | undefined>>
  readonly operands: readonly string[]
}

/** All flags that a command takes. */
export function flagsOf(command: Command | undefined): Flags {
  return { ...command?.flags, ...(command?.needsBackend === false ? {} : BACKEND_FLAGS), ...COMMON_FLAGS }
}

/**
 * Parses the command, its flags and its operands, in any order. Throws a {@link UsageError} that says what is wrong and what was
 * probably meant.
 */
export function parseArguments(args: readonly string[], commands: readonly Command[], now: At): Parsed {
  // Parsed twice: the first time only to find the command, because its flags depend on it.
  const name = commandName(args, commands)
  if (name === undefined) return read(args, undefined, now)
  const command = commands.find((one) => one.name === name)
  if (command === undefined) {
    const names = commands.map((one) => one.name)
    throw new UsageError(`There is no command "${name}".${closestHint(name, names)} See: millrace --help`)
  }
  const parsed = read(args, command, now)
  // The first operand is the command.
  return { ...parsed, operands: parsed.operands.slice(1) }
}

/** The first word that is neither a flag nor its value. */
function commandName(args: readonly string[], commands: readonly Command[]): string | undefined {
  const all: Record<string, Flag> = { ...BACKEND_FLAGS, ...COMMON_FLAGS }
  // Flags may come before the command, so the flags of all commands are known here.
  for (const command of commands) for (const [name, flag] of Object.entries(command.flags)) all[name] ??= flag
  const { positionals } = parseArgs({ args: [...args], options: optionsOf(all), strict: false, allowPositionals: true })
  return positionals[0]
}

function read(args: readonly string[], command: Command | undefined, now: At): Parsed {
  const known = flagsOf(command)
  const { tokens } = parseArgs({
    args: [...args],
    options: optionsOf(known),
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const values: Record<string, string | number | boolean | undefined> = {}
  for (const [name, flag] of Object.entries(known)) values[name] = flag.kind === 'switch' ? false : undefined
  const operands: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') operands.push(token.value)
    if (token.kind !== 'option') continue
    const flag = Object.hasOwn(known, token.name) ? known[token.name] : undefined
    if (flag === undefined) throw unknownFlag(token.rawName, command, known)
    values[token.name] = flagValue(flag, token, values[token.name], command, now)
  }
  return { command, flags: values, operands }
}

/** Checks the number of operands. */
export function checkOperands(command: Command, operands: readonly string[]): void {
  const usage = `millrace ${command.name}${command.operands === '' ? '' : ` ${command.operands}`}`
  if (operands.length < command.atLeast) throw new UsageError(`An argument is missing: ${usage}`, command.name)
  if (operands.length > command.atMost)
    throw new UsageError(`Unexpected argument "${operands[command.atMost]}": ${usage}`, command.name)
}

interface OptionToken {
  readonly rawName: string
  readonly value?: string | undefined
  readonly inlineValue?: boolean | undefined
}

function flagValue(
  flag: Flag,
  { rawName, value, inlineValue }: OptionToken,
  before: unknown,
  command: Command | undefined,
  now: At,
): string | number | boolean {
  if (flag.kind === 'switch') {
    if (value !== undefined) throw new UsageError(`${rawName} takes no value.`, command?.name)
    return true
  }
  // The parser takes the next word as the value, even if it is a flag.
  if (value === undefined || (inlineValue !== true && /^-./.test(value)))
    throw new UsageError(`${rawName} needs a value: ${rawName} ${flag.value}`, command?.name)
  const found = readFlag(flag, value, now)
  if ('problem' in found) throw new UsageError(`${rawName} ${found.problem}`, command?.name)
  if (before !== undefined && before !== found.value)
    throw new UsageError(`${rawName} was given twice, with different values.`, command?.name)
  return found.value
}

function unknownFlag(rawName: string, command: Command | undefined, known: Flags): UsageError {
  const where = command === undefined ? 'millrace' : `millrace ${command.name}`
  const names = Object.keys(known).map((name) => `--${name}`)
  const hint = rawName.startsWith('--')
    ? closestHint(rawName, names)
    : ' An id that begins with a dash comes after " -- ".'
  return new UsageError(`${where} has no flag ${rawName}.${hint}`, command?.name)
}

function optionsOf(flags: Flags): Record<string, { type: 'boolean' | 'string'; short?: string }> {
  return Object.fromEntries(
    Object.entries(flags).map(([name, flag]) => [
      name,
      {
        type: flag.kind === 'switch' ? 'boolean' : 'string',
        ...(flag.short === undefined ? {} : { short: flag.short }),
      },
    ]),
  )
}
