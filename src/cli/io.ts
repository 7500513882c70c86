import type { Clock } from '../core/time/clock.js'

/** Where text goes. */
export interface Sink {
  write(text: string): void
  readonly isTerminal: boolean
  /** Width and height of the terminal. Without one: Infinity. */
  readonly columns: number
  readonly rows: number
}

/** Keys as they are pressed, without waiting for a line. */
export interface KeyInput {
  /** Calls back for each key until the returned function is called, which also restores the terminal. */
  listen(onKey: (key: string) => void): () => void
}

/** Everything that the command line uses of the outside world, passed in for tests. */
export interface Io {
  readonly out: Sink
  readonly err: Sink
  /** Undefined without a terminal. */
  readonly keys: KeyInput | undefined
  /** Asks a person and returns the line they typed; undefined if they interrupted. */
  readonly ask: ((question: string) => Promise<string | undefined>) | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  /** The default for `--who`. */
  readonly user: string
  /** Calls back on an interrupt, until the returned function is called. The process continues. */
  onInterrupt(run: () => void): () => void
  /** Calls back when the terminal has changed its size. */
  onResize(run: () => void): () => void
  /** Aborted when the reader of the output is gone (`| head`). */
  readonly closed: AbortSignal
  /** Ends the process immediately. */
  exit(code: number): void
}
