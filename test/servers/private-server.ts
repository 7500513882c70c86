import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, chownSync, closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dataPlace } from './data-place.js'
import { freePort } from './free-port.js'
import { childrenOf, isRunning, signal } from './processes.js'
import { script } from './program.js'
import { until, within } from './wait.js'

export type ServerKind = 'redis' | 'postgres' | 'nats'

/** A real server of our own: a free port, a temporary directory, gone when the test or its process is. */
export interface PrivateServer {
  readonly kind: ServerKind
  readonly url: string
  readonly port: number
  /** Its directory: data, log and pid file. Gone after `stop`. */
  readonly dir: string
  /** Of the server that runs now; another one after a restart. Undefined while none runs. */
  readonly pid: number | undefined
  /** Pulls the plug (SIGKILL, children included). Resolves when it is dead. What was on disk stays for `restart`. */
  kill(): Promise<void>
  /** Freezes it (SIGSTOP): connections stay open, nothing answers. */
  pause(): void
  resume(): void
  /** Ends it with this signal (default SIGTERM) if it runs, and starts it on the same port and directory. Ready on return. */
  restart(by?: 'SIGTERM' | 'SIGKILL'): Promise<void>
  /** Empties all data; the server goes on. */
  flush(): Promise<void>
  /** A graceful end; the directory is removed. May be called twice. */
  stop(): Promise<void>
  /** The last lines of the server's log. */
  log(lines?: number): string
}

/** What differs from one kind of server to the next. */
export interface Recipe {
  readonly kind: ServerKind
  /** Fills the empty data directory before the first start. */
  prepare?(dataDir: string): void
  /** Must name `dataDir`, by which a process is recognised as ours. */
  command(port: number, dataDir: string): { readonly file: string; readonly args: readonly string[] }
  /** The user to run as, where it may not be ours. */
  readonly user?: { readonly uid: number; readonly gid: number }
  /** Asks over the protocol. True only if this very process answers: another's server may have taken the port. */
  ping(port: number, dataDir: string, pid: number): Promise<boolean>
  flush(port: number): Promise<void>
  url(port: number): string
  /** The signal for a graceful end. */
  readonly endBy: NodeJS.Signals
}

/** Long past what a machine under load takes: these detect a server that hangs, they do not measure one. */
const READY_MS = 60_000
const END_MS = 60_000
/** A server that is just starting may take a connection and forget it: it is asked again. */
const PING_MS = 5_000
const PORT_ATTEMPTS = 5

export async function startServer(recipe: Recipe): Promise<PrivateServer> {
  for (let attempt = 1; ; attempt++) {
    const server = new ServerInDirectory(recipe, await freePort())
    try {
      await server.restart()
      return server
    } catch (error) {
      const log = server.log()
      await server.stop()
      // Another process bound the port between our check and the server's start.
      if (attempt < PORT_ATTEMPTS && /address already in use/i.test(log)) continue
      throw error
    }
  }
}

class ServerInDirectory implements PrivateServer {
  readonly kind: ServerKind
  readonly port: number
  readonly dir: string
  readonly #recipe: Recipe
  readonly #dataDir: string
  readonly #janitor: ChildProcess
  #child: ChildProcess | undefined
  #isPaused = false

  constructor(recipe: Recipe, port: number) {
    this.kind = recipe.kind
    this.port = port
    this.#recipe = recipe
    this.dir = mkdtempSync(join(dataPlace(), `millrace-${recipe.kind}-`))
    // The janitor comes first: from here on a crash of this process leaves nothing behind. It is detached, because an
    // interrupt from the keyboard goes to our whole process group.
    this.#janitor = spawn('sh', [script('janitor.sh'), this.dir], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    })
    this.#janitor.unref()
    ;(this.#janitor.stdin as unknown as { unref(): void }).unref()
    // Others may pass through to the data directory, which may belong to another user.
    chmodSync(this.dir, 0o711)
    this.#dataDir = join(this.dir, 'data')
    mkdirSync(this.#dataDir, { mode: 0o700 })
    if (recipe.user !== undefined) chownSync(this.#dataDir, recipe.user.uid, recipe.user.gid)
    recipe.prepare?.(this.#dataDir)
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  get url(): string {
    return this.#recipe.url(this.port)
  }

  async restart(by: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    await this.#end(by === 'SIGKILL' ? 'SIGKILL' : this.#recipe.endBy)
    await this.#start()
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  pause(): void {
    this.#signalAll('SIGSTOP')
    this.#isPaused = true
  }

  resume(): void {
    this.#signalAll('SIGCONT')
    this.#isPaused = false
  }

  async flush(): Promise<void> {
    await within(READY_MS, `flush of ${this.kind} on port ${this.port}`, this.#recipe.flush(this.port))
  }

  async stop(): Promise<void> {
    if (this.#janitor.exitCode !== null) return
    await this.#end(this.#recipe.endBy)
    const gone = new Promise<void>((resolve) => this.#janitor.once('exit', () => resolve()))
    this.#janitor.ref()
    this.#janitor.stdin?.end()
    await within(END_MS, `removal of ${this.dir}`, gone)
  }

  log(lines = 40): string {
    try {
      return readFileSync(join(this.dir, 'server.log'), 'utf8').trimEnd().split('\n').slice(-lines).join('\n')
    } catch {
      return ''
    }
  }

  async #start(): Promise<void> {
    const { file, args } = this.#recipe.command(this.port, this.#dataDir)
    const log = openSync(join(this.dir, 'server.log'), 'a')
    const child = spawn(file, args, {
      cwd: this.#dataDir,
      stdio: ['ignore', log, log],
      // Its own group: the keyboard's interrupt is for the tests, which then stop it or leave it to the janitor.
      detached: true,
      env: { PATH: process.env['PATH'], LC_ALL: 'C.UTF-8' },
      ...this.#recipe.user,
    })
    closeSync(log)
    child.unref()
    let failure: Error | undefined
    child.once('error', (error) => {
      failure = error
    })
    this.#child = child
    if (child.pid !== undefined) writeFileSync(join(this.dir, 'pid'), String(child.pid))
    const what = () =>
      `${this.kind} on port ${this.port} is not ready${failure ? `: ${failure.message}` : ''}\n${this.log()}`
    await until(what, READY_MS, async () => {
      if (failure !== undefined || child.exitCode !== null || child.signalCode !== null) throw new Error(what())
      const answer = this.#recipe.ping(this.port, this.#dataDir, child.pid!)
      return within(PING_MS, `ping of ${this.kind}`, answer).catch(() => false)
    })
  }

  async #end(by: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (child?.pid === undefined) return
    this.#child = undefined
    const gone = new Promise<void>((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) resolve()
      else child.once('exit', () => resolve())
    })
    child.ref()
    let orphans: readonly number[] = []
    if (by === 'SIGKILL') {
      // Stopped first, so that it cannot fork a child that the listing does not show.
      signal(child.pid, 'SIGSTOP')
      orphans = childrenOf(child.pid)
      signal(child.pid, 'SIGKILL')
      for (const pid of orphans) signal(pid, 'SIGKILL')
    } else {
      signal(child.pid, by)
      // A stopped process gets no signal until it goes on.
      if (this.#isPaused) for (const pid of [child.pid, ...childrenOf(child.pid)]) signal(pid, 'SIGCONT')
    }
    this.#isPaused = false
    const what = `end of ${this.kind} (pid ${child.pid}) by ${by}`
    await within(END_MS, what, gone)
    // A child that dies a moment later still holds the shared memory, and the next server would refuse to start.
    await until(
      () => what,
      END_MS,
      () => !orphans.some(isRunning),
    )
  }

  #signalAll(name: NodeJS.Signals): void {
    const pid = this.pid
    if (pid === undefined) throw new Error(`${this.kind} on port ${this.port} is not running: restart() it first.`)
    signal(pid, name)
    for (const child of childrenOf(pid)) signal(child, name)
  }
}
