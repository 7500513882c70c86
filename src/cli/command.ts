import type { Ops } from '../ops/api.js'
import type { ExitCode } from './exit.js'
import type { Flags, Values } from './input/flags.js'
import type { Io } from './io.js'
import type { Needs } from './reach/ops-on.js'
import type { Reached } from './reach/reached.js'
import type { Screen } from './screen.js'

/** What a command is called with. */
export interface Call<F extends Flags = Flags> {
  readonly io: Io
  readonly screen: Screen
  readonly flags: Values<F>
  readonly operands: readonly string[]
  /** A program reads the answer. */
  readonly isJson: boolean
  readonly mayColour: boolean
  /** The backend that was named, reached when it is first asked for. */
  reach(): Promise<Reached>
  /** What can be asked of it. */
  ops(needs?: Needs): Promise<Ops>
  /** Another command on the same backend, as somebody would type it. */
  typed(words: readonly string[]): string
  /** Runs another command line, with everything else as it is. */
  again(args: readonly string[]): Promise<ExitCode>
}

/** One command: what it takes, what help says of it, and what it does. */
export interface Command {
  readonly name: string
  /** One line for the list of commands. */
  readonly summary: string
  /** What stands behind the name, as the help shows it: `<id>`. */
  readonly operands: string
  readonly atLeast: number
  readonly atMost: number
  readonly flags: Flags
  /** Further sentences of its help. */
  readonly about: readonly string[]
  /** How it is used, and what that does. */
  readonly examples: readonly (readonly [command: string, does: string])[]
  /** It works on a backend, so it takes the flags that name one. */
  readonly needsBackend: boolean
  run(call: Call): Promise<ExitCode>
}

interface Given<F extends Flags> {
  readonly name: string
  readonly summary: string
  readonly operands?: string
  readonly atLeast?: number
  readonly atMost?: number
  readonly flags?: F
  readonly about?: readonly string[]
  readonly examples: readonly (readonly [command: string, does: string])[]
  readonly needsBackend?: boolean
  run(call: Call<F>): Promise<ExitCode>
}

/** Makes a command whose `run` knows the types of its flags. */
export function defineCommand<const F extends Flags = Record<never, never>>(given: Given<F>): Command {
  return Object.freeze({
    operands: '',
    atLeast: 0,
    atMost: 0,
    about: [],
    needsBackend: true,
    ...given,
    flags: given.flags ?? {},
    // The parser fills in exactly the flags that are declared above.
    run: (call: Call) => given.run(call as unknown as Call<F>),
  })
}
