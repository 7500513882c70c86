import { peekString } from '../core/text/safe-read.js'
import { secretHider } from '../core/text/secrets.js'
import type { Clock } from '../core/time/clock.js'
import { VERSION } from '../core/version.js'
import type { Call, Command } from './command.js'
import { COMMANDS, GROUPS } from './commands/index.js'
import { type Address, readAddress } from './connect/address.js'
import { connect as connectBackend } from './connect/connect.js'
import type { Connected } from './connect/connected.js'
import { loadRedact } from './connect/load-redact.js'
import { type Timeouts, timeoutsOf } from './connect/timeout.js'
import { EXIT, type ExitCode } from './exit.js'
import { renderCommandHelp, renderOverallHelp } from './help.js'
import { checkOperands, parseArguments } from './input/parse.js'
import type { Io } from './io.js'
import { exitOf, renderError } from './report-error.js'
import { notesOf, openScreen } from './screen.js'
import { typedCommand } from './typed.js'
import { UsageError } from './usage-error.js'

/** How to connect to a backend; tests replace it. */
export type Connect = (address: Address, clock: Clock, timeouts: Timeouts) => Promise<Connected>

/** How long closing a backend may take. */
const CLOSING_MS = 2_000

/** Runs one command line and returns its exit code. Never rejects. */
export async function runCli(given: readonly string[], io: Io, connect: Connect = connectBackend): Promise<ExitCode> {
  // Many people try `millrace help` first.
  const args = given[0] === 'help' ? [...given.slice(1), '--help'] : given
  const isJson = args.includes('--json')
  const mayColour = !args.includes('--no-color')
  const notes = notesOf(io, mayColour)
  let hide = secretHider(io.env['MILLRACE_BACKEND'])
  let typed = (words: readonly string[]) => typedCommand(words, { env: io.env, flags: {} })
  try {
    const { command, flags, operands } = parseArguments(args, COMMANDS, io.clock.now())
    const screen = openScreen(io, mayColour)
    if (typeof flags['backend'] === 'string') hide = secretHider(flags['backend'])
    if (flags['version'] === true) {
      screen.line(VERSION)
      return EXIT.done
    }
    if (command === undefined) {
      screen.lines(renderOverallHelp(GROUPS, screen))
      return flags['help'] === true ? EXIT.done : EXIT.usage
    }
    if (flags['help'] === true) {
      screen.lines(renderCommandHelp(command, screen))
      return EXIT.done
    }
    checkOperands(command, operands)
    // The parser has parsed every value by the kind of its flag.
    const values = flags as Call['flags']
    const again = (other: readonly string[]) => runCli(other, io, connect)
    typed = (words) => typedCommand(words, { env: io.env, flags })
    const call = { io, screen, flags: values, operands, isJson, mayColour, typed, again }
    return await runCommand(command, call, connect)
  } catch (error) {
    const report = { isJson, isDebug: args.includes('--debug'), ...notes, hide, help: helpFor(error, typed) }
    io.err.write(`${renderError(error, report).join('\n')}\n`)
    return exitOf(error)
  }
}

/** The command to type for help, if any. */
function helpFor(error: unknown, typed: (words: readonly string[]) => string): string | undefined {
  if (error instanceof UsageError && error.command !== undefined) return `millrace ${error.command} --help`
  return peekString(error, 'code') === 'NO_ACTION' ? typed(['actions']) : undefined
}

async function runCommand(
  command: Command,
  call: Omit<Call, 'connect' | 'ops'>,
  connectTo: Connect,
): Promise<ExitCode> {
  const { io, flags } = call
  let connected: Promise<Connected> | undefined
  const timeouts = timeoutsOf(typeof flags['timeout'] === 'number' ? flags['timeout'] : undefined)
  const text = (name: string) => (typeof flags[name] === 'string' ? flags[name] : undefined)
  const connect = (): Promise<Connected> => {
    connected ??= (async () => {
      const named = { backend: text('backend'), schema: text('schema'), prefix: text('prefix') }
      return connectTo(readAddress(named, io.env), io.clock, timeouts)
    })()
    return connected
  }
  try {
    // Loaded first: without it, nothing is shown.
    const redact = command.needsBackend ? await loadRedact(text('redact'), io.env) : undefined
    const ops = async (needs = { guild: false }) => (await connect()).ops({ ...needs, redact })
    return await command.run({ ...call, connect, ops })
  } finally {
    // The output is complete: a server that does not close must not delay the exit.
    const closing = connected?.then((one) => one.close()).catch(() => undefined)
    if (closing !== undefined) await Promise.race([closing, io.clock.sleep(CLOSING_MS)])
  }
}
