import { type Clock, memoryBackend } from 'millrace'
import { type Ops, openOps } from 'millrace/ops'
import { systemClock } from 'millrace/source'
import type { MemoryBackend } from 'millrace/types'
import { expect } from 'vitest'
import type { Connected, ServerFacts } from '../../src/cli/connect/connected.js'
import type { Io, Sink } from '../../src/cli/io.js'
import { runCli } from '../../src/cli/run.js'

/** A stream that remembers. */
export class MemorySink implements Sink {
  text = ''
  readonly isTerminal: boolean
  columns: number
  rows: number

  constructor(terminal?: { readonly columns: number; readonly rows: number }) {
    this.isTerminal = terminal !== undefined
    this.columns = terminal?.columns ?? 80
    this.rows = terminal?.rows ?? 24
  }

  write(text: string): void {
    this.text += text
  }
}

export interface World {
  readonly backend?: MemoryBackend
  readonly clock?: Clock
  /** Output and notes go to a terminal of this size. */
  readonly terminal?: { readonly columns: number; readonly rows: number }
  /** What the person answers; undefined: there is no terminal. */
  readonly answer?: string
  readonly env?: Readonly<Record<string, string>>
  readonly facts?: Partial<ServerFacts>
  /** Ops instead of those on the backend. */
  readonly ops?: Ops
}

/** A command line in this process, on a real backend in memory. */
export class Bench {
  readonly out: MemorySink
  readonly err: MemorySink
  readonly asked: string[] = []
  readonly backend: MemoryBackend
  readonly clock: Clock
  readonly exits: number[] = []
  readonly closed = new AbortController()
  readonly #world: World
  readonly #interrupts = new Set<() => void>()
  readonly #resizes = new Set<() => void>()
  readonly #keys = new Set<(key: string) => void>()

  constructor(world: World = {}) {
    this.#world = world
    this.clock = world.clock ?? systemClock
    this.backend = world.backend ?? memoryBackend({ clock: this.clock })
    this.out = new MemorySink(world.terminal)
    this.err = new MemorySink(world.terminal)
  }

  interrupt(): void {
    for (const run of [...this.#interrupts]) run()
  }

  /** Resolves when an interrupt would be heard. */
  async listened(): Promise<void> {
    await expect.poll(() => this.#interrupts.size).toBeGreaterThan(0)
  }

  resize(columns: number, rows: number): void {
    Object.assign(this.out, { columns, rows })
    for (const run of [...this.#resizes]) run()
  }

  press(key: string): void {
    for (const hear of [...this.#keys]) hear(key)
  }

  /** Whether the terminal is restored: nothing listens to keys any more. */
  get isKeyboardFree(): boolean {
    return this.#keys.size === 0
  }

  run(...args: string[]): Promise<number> {
    return runCli(args, this.#io(), async () => this.#connected())
  }

  /** Runs and gives back everything that was said. */
  async said(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    this.out.text = ''
    this.err.text = ''
    const code = await this.run(...args)
    return { code, out: this.out.text, err: this.err.text }
  }

  async json(...args: string[]): Promise<unknown> {
    const { out } = await this.said(...args, '--json')
    return JSON.parse(out)
  }

  #io(): Io {
    const { answer, env = {}, terminal } = this.#world
    const hears =
      <T>(set: Set<T>) =>
      (one: T) => {
        set.add(one)
        return () => void set.delete(one)
      }
    return {
      out: this.out,
      err: this.err,
      keys: terminal === undefined ? undefined : { listen: hears(this.#keys) },
      ask:
        answer === undefined
          ? undefined
          : async (question) => {
              this.asked.push(question)
              return answer
            },
      env: { MILLRACE_BACKEND: 'sqlite:./bench.db', ...env },
      clock: this.clock,
      user: 'ada@bench',
      onInterrupt: hears(this.#interrupts),
      onResize: hears(this.#resizes),
      closed: this.closed.signal,
      exit: (code) => void this.exits.push(code),
    }
  }

  #connected(): Connected {
    const { facts, ops } = this.#world
    return {
      kind: 'sqlite',
      name: 'sqlite:./bench.db',
      ops: async ({ redact }) => ops ?? openOps(this.backend, { clock: this.clock, ...(redact && { redact }) }),
      facts: async () => ({
        server: 'Bench 1.0',
        askedAt: this.clock.now(),
        tookMs: 0,
        storage: [{ part: 'work', version: 1, minReader: 1, latest: 1 }],
        dangers: [],
        ...facts,
      }),
      migrate: async () => [{ part: 'work', from: 0, to: 1 }],
      close: async () => undefined,
    }
  }
}
