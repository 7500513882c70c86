import type { Clock } from '../core/clock.js'
import { peekString } from '../core/safe-read.js'
import { secretHider } from '../core/secrets.js'
import { VERSION } from '../core/version.js'
import type { Call, Command } from './command.js'
import { COMMANDS, GROUPS } from './commands/index.js'
import { EXIT, type ExitCode } from './exit.js'
import { renderCommandHelp, renderOverallHelp } from './help.js'
import { checkOperands, parseArguments } from './input/parse.js'
import type { Io } from './io.js'
import { type Address, readAddress } from './reach/address.js'
import { loadRedact } from './reach/load-redact.js'
import { type Patience, patienceOf } from './reach/patience.js'
import { reach as reachBackend } from './reach/reach.js'
import type { Reached } from './reach/reached.js'
import { exitOf, renderError } from './report-error.js'
import { notesOf, openScreen } from './screen.js'
import { typedCommand } from './typed.js'
import { UsageError } from './usage-error.js'

/** How a backend is reached; replaced by tests that bring their own. */
export type Reach = (address: Address, clock: Clock, patience: Patience) => Promise<Reached>

/** How long closing a backend may take when everything has been said. */
const CLOSING_MS = 2_000

/** Runs one command line and returns what the process ends with. Never rejects. */
export async function runCli(given: readonly string[], io: Io, reach: Reach = reachBackend): Promise<ExitCode> {
  // What people try first, before they have read anything.
  const args = given[0] === 'help' ? [...given.slice(1), '--help'] : given
  const isJson = args.includes('--json')
  const mayColour = !args.includes('--no-color')
  const { paint } = notesOf(io, mayColour)
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
    // The parser read every value by the kind of its flag.
    const values = flags as Call['flags']
    const again = (other: readonly string[]) => runCli(other, io, reach)
    typed = (words) => typedCommand(words, { env: io.env, flags })
    const call = { io, screen, flags: values, operands, isJson, mayColour, typed, again }
    return await runCommand(command, call, reach)
  } catch (error) {
    const report = { isJson, isDebug: args.includes('--debug'), paint, hide, help: helpFor(error, typed) }
    io.err.write(`${renderError(error, report).join('\n')}\n`)
    return exitOf(error)
  }
}

/** What to type for help, where that would help. */
function helpFor(error: unknown, typed: (words: readonly string[]) => string): string | undefined {
  if (error instanceof UsageError && error.command !== undefined) return `millrace ${error.command} --help`
  return peekString(error, 'code') === 'NO_ACTION' ? typed(['actions']) : undefined
}

async function runCommand(command: Command, call: Omit<Call, 'reach' | 'ops'>, reachOut: Reach): Promise<ExitCode> {
  const { io, flags } = call
  let reached: Promise<Reached> | undefined
  const patience = patienceOf(typeof flags['timeout'] === 'number' ? flags['timeout'] : undefined)
  const text = (name: string) => (typeof flags[name] === 'string' ? flags[name] : undefined)
  const reach = (): Promise<Reached> => {
    reached ??= (async () => {
      const named = { backend: text('backend'), schema: text('schema'), prefix: text('prefix') }
      return reachOut(readAddress(named, io.env), io.clock, patience)
    })()
    return reached
  }
  try {
    // Before anything is asked: what cannot be redacted is not shown.
    const redact = command.needsBackend ? await loadRedact(text('redact'), io.env) : undefined
    const ops = async (needs = { guild: false }) => (await reach()).ops({ ...needs, redact })
    return await command.run({ ...call, reach, ops })
  } finally {
    // Everything has been said: a server that does not let go must not keep anybody.
    const closing = reached?.then((one) => one.close()).catch(() => undefined)
    if (closing !== undefined) await Promise.race([closing, io.clock.sleep(CLOSING_MS)])
  }
}
