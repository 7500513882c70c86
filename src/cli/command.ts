import type { Ops } from '../ops/api.js'
import type { Connected } from './connect/connected.js'
import type { Needs } from './connect/ops-on.js'
import type { ExitCode } from './exit.js'
import type { Flags, Values } from './input/flags.js'
import type { Io } from './io.js'
import type { Screen } from './screen.js'

/** What a command is called with. */
export interface Call<F extends Flags = Flags> {
  readonly io: Io
  readonly screen: Screen
  readonly flags: Values<F>
  readonly operands: readonly string[]
  /** The output is for a program. */
  readonly isJson: boolean
  readonly mayColour: boolean
  /** Connects to the named backend, on the first call. */
  connect(): Promise<Connected>
  /** Ops on that backend. */
  ops(needs?: Needs): Promise<Ops>
  /** Another command on the same backend, as one would type it. */
  typed(words: readonly string[]): string
  /** Runs another command line in the same process. */
  again(args: readonly string[]): Promise<ExitCode>
}

/** One command: its arguments, its help, and what it does. */
export interface Command {
  readonly name: string
  /** One line for the list of commands. */
  readonly summary: string
  /** The operands, as the help shows them: `<id>`. */
  readonly operands: string
  readonly atLeast: number
  readonly atMost: number
  readonly flags: Flags
  /** More paragraphs of its help. */
  readonly about: readonly string[]
  /** How it is used, and what that does. */
  readonly examples: readonly (readonly [command: string, does: string])[]
  /** Whether it takes the flags that name a backend. */
  readonly needsBackend: boolean
  run(call: Call): Promise<ExitCode>
}

type Given<F extends Flags> = Pick<Command, 'name' | 'summary' | 'examples'> &
  Partial<Omit<Command, 'flags' | 'run'>> & { readonly flags?: F; run(call: Call<F>): Promise<ExitCode> }

/** Defines a command whose `run` knows the types of its flags. */
export function defineCommand<const F extends Flags = Record<never, never>>(given: Given<F>): Command {
  return Object.freeze({
    operands: '',
    atLeast: 0,
    atMost: 0,
    about: [],
    needsBackend: true,
    ...given,
    flags: given.flags ?? {},
    // The parser fills in exactly the declared flags.
    run: (call: Call) => given.run(call as unknown as Call<F>),
  })
}
