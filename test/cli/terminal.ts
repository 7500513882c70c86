import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'
import { findProgram } from '../../scripts/lib/servers.mjs'

const run = promisify(execFile)
const tmux = findProgram('tmux')

/** Why there is no terminal to test in; undefined where there is one. */
export const noTerminal = tmux === undefined ? 'tmux is not installed' : undefined

/** A real terminal, in its own tmux server. */
export class Terminal {
  readonly #socket: string
  #emptied = 0

  constructor(name: string) {
    this.#socket = `millrace-test-${process.pid}-${name}`
  }

  /** Opens it with a shell that knows nothing of the person who runs the tests. */
  open(columns: number, rows: number, env: Readonly<Record<string, string>>): void {
    const size = ['-x', String(columns), '-y', String(rows)]
    const words = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`])
    // Without a file of the person's own settings, and with a prompt that is easy to wait for.
    execFileSync(tmux!, [
      '-L',
      this.#socket,
      '-f',
      '/dev/null',
      'new-session',
      '-d',
      ...size,
      ...words,
      'env PS1="ready> " sh',
    ])
  }

  async type(text: string): Promise<void> {
    await this.#do('send-keys', '-l', text)
    await this.#do('send-keys', 'Enter')
  }

  /**
   * Empties the screen but for its first line. What is typed before that has happened would be cleared away with the rest, so it waits
   * for a line that is new each time: a screen that was empty already would look like one that has been emptied.
   */
  async empty(): Promise<void> {
    this.#emptied += 1
    await this.type(`clear; echo emptied ${this.#emptied}`)
    await this.shows(new RegExp(`^emptied ${this.#emptied}\\nready>\\s*$`))
  }

  /** A key by its name: `q`, `C-c`. */
  async press(key: string): Promise<void> {
    await this.#do('send-keys', key)
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.#do('resize-window', '-x', String(columns), '-y', String(rows))
  }

  /** What is on the screen. */
  async screen(): Promise<string> {
    return this.#do('capture-pane', '-p')
  }

  /** What is on the screen, with the lines that the terminal had to break put together again. */
  async unbroken(): Promise<string> {
    return this.#do('capture-pane', '-p', '-J')
  }

  /** With the codes of colours. */
  async colours(): Promise<string> {
    return this.#do('capture-pane', '-p', '-e')
  }

  async title(): Promise<string> {
    return this.#do('display-message', '-p', '#{pane_title}')
  }

  /** Waits until the screen shows it; a minute only bounds what will never come. */
  async shows(what: RegExp | string): Promise<string> {
    const giveUpAt = performance.now() + 60_000
    for (;;) {
      const seen = await this.screen()
      if (typeof what === 'string' ? seen.includes(what) : what.test(seen)) return seen
      if (performance.now() > giveUpAt) throw new Error(`The screen never showed ${what}, but:\n${seen}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  close(): void {
    try {
      execFileSync(tmux!, ['-L', this.#socket, 'kill-server'], { stdio: 'ignore' })
    } catch {
      // It has ended by itself.
    }
  }

  async #do(...args: string[]): Promise<string> {
    const { stdout } = await run(tmux!, ['-L', this.#socket, ...args])
    return stdout
  }
}
