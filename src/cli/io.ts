import type { Clock } from '../core/clock.js'

/** Where text goes. */
export interface Sink {
  write(text: string): void
  readonly isTerminal: boolean
  /** Width and height of the terminal. Without one: Infinity. */
  readonly columns: number
  readonly rows: number
}

/** Keys as they are pressed, without waiting for a line. */
export interface Keys {
  /** Hears keys until the returned function is called. The terminal is as before then. */
  listen(hear: (key: string) => void): () => void
}

/** Everything that the command line knows of the world outside, handed in, so that it can be tested as functions. */
export interface Io {
  readonly out: Sink
  readonly err: Sink
  /** There where a person sits at the keyboard. */
  readonly keys: Keys | undefined
  /** Asks a person and returns the line that they typed; undefined when they interrupted or left. */
  readonly ask: ((question: string) => Promise<string | undefined>) | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  /** Who acts, where nobody says otherwise. */
  readonly user: string
  /** Calls back when the person interrupts, until the returned function is called. The process goes on. */
  onInterrupt(run: () => void): () => void
  /** Calls back when the terminal has changed its size. */
  onResize(run: () => void): () => void
  /** Fires when nobody reads the output any more (`| head`). */
  readonly closed: AbortSignal
  /** Ends the process at once. */
  exit(code: number): void
}
