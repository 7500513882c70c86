import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { typescriptProgram } from '../../scripts/lib/run-typescript.mjs'
import { dataPlace } from '../servers/data-place.js'
import { startPostgres, startRedis } from '../servers/index.js'
import type { PrivateServer } from '../servers/private-server.js'
import { SlowProxy } from '../support/slow-proxy.js'
import { brokenLimits } from './limits.js'
import type { LoadReport, Order, Word } from './report.js'
import { type Load, type LoadBackend, SCENARIOS, type ScenarioName } from './scenarios.js'

export interface LoadRun {
  readonly backend: LoadBackend
  readonly scenario: ScenarioName
  readonly load: Load
  /** The way to the server takes this much longer, in each direction. */
  readonly proxyMs?: number
  /** Each commit takes this much longer. */
  readonly slowCommitsMs?: number
}

export interface LoadResult {
  /** Undefined: the worker died or hung, and could report nothing. */
  readonly report: LoadReport | undefined
  /** The limits that were broken, in words. */
  readonly broken: readonly string[]
}

const PREPARE_MS = 600_000
/** After its own deadline a worker stops, and asks the backend what it has. */
const SETTLE_MS = 60_000
/** A worker that has not handled SIGTERM for so long never will. */
const SIGTERM_MS = 10_000
const LAST_WORDS = 1_500

/** Where a scenario is played: one private server, or one folder, for any number of runs. */
export class Ground {
  readonly backend: LoadBackend
  readonly #server: PrivateServer | undefined

  private constructor(backend: LoadBackend, server: PrivateServer | undefined) {
    this.backend = backend
    this.#server = server
  }

  static async open(backend: LoadBackend): Promise<Ground> {
    const start = { postgres: startPostgres, redis: startRedis, memory: undefined, sqlite: undefined }[backend]
    return new Ground(backend, await start?.())
  }

  /** Plays one scenario from an empty backend, in a separate process. */
  async play(run: Omit<LoadRun, 'backend'>): Promise<LoadResult> {
    const { backend } = this
    await this.#server?.flush()
    const dir = mkdtempSync(join(dataPlace(), 'millrace-load-'))
    const proxy =
      run.proxyMs === undefined || this.#server === undefined
        ? undefined
        : await SlowProxy.open({ port: this.#server.port, delayMs: run.proxyMs })
    try {
      const directAddress = this.#server?.url ?? (backend === 'memory' ? '' : `sqlite:${join(dir, 'load.db')}`)
      const order: Order = {
        backend,
        scenario: run.scenario,
        play: SCENARIOS[run.scenario].play,
        load: run.load,
        address: proxy?.in(directAddress) ?? directAddress,
        directAddress,
        slowCommitsMs: run.slowCommitsMs ?? 0,
      }
      const { report, faults } = await playInAProcess(order)
      const broken = report === undefined ? [] : brokenLimits(report, backend, run.load)
      return { report, broken: [...faults, ...broken] }
    } finally {
      await proxy?.close()
      rmSync(dir, { recursive: true, force: true })
    }
  }

  async close(): Promise<void> {
    await this.#server?.stop()
  }
}

interface Played {
  readonly report: LoadReport | undefined
  /** What only the process that started the worker could see. */
  readonly faults: readonly string[]
}

async function playInAProcess(order: Order): Promise<Played> {
  const { command, args, env } = typescriptProgram('test/load/worker.ts', [JSON.stringify(order)])
  const child = spawn(command, ['--expose-gc', ...args], { env, stdio: ['ignore', 'inherit', 'pipe', 'ipc'] })
  let said = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-LAST_WORDS)
  })
  const channel = new WorkerChannel(child, order)
  const code = await new Promise<string>((resolve) =>
    child.once('exit', (number, signal) => resolve(String(number ?? signal))),
  )
  channel.close()
  if (channel.report === undefined || code !== '0') channel.faults.push(`the worker ended with ${code}: ${said.trim()}`)
  const { report, sigtermMs, faults } = channel
  return {
    report:
      report === undefined || sigtermMs === undefined ? report : { ...report, facts: { sigtermMs, ...report.facts } },
    faults,
  }
}

/** Receives what a worker sends, stops an endless one, and kills one that sends nothing any more. */
class WorkerChannel {
  report: LoadReport | undefined
  sigtermMs: number | undefined
  readonly faults: string[] = []
  readonly #child: ChildProcess
  #timers: NodeJS.Timeout[] = []

  constructor(child: ChildProcess, { play, load }: Order) {
    this.#child = child
    const ms = load.seconds * 1_000
    this.#give(PREPARE_MS, 'it was not ready')
    let signalledAt = 0
    child.on('message', (word: Word) => {
      switch (word.is) {
        case 'begun':
          this.#give(ms + SETTLE_MS, 'it did not end')
          if (play === 'chain')
            this.#after(ms, () => {
              signalledAt = performance.now()
              child.kill('SIGTERM')
              this.#give(SIGTERM_MS, 'it did not handle SIGTERM')
            })
          break
        case 'terminating':
          this.sigtermMs = Math.round(performance.now() - signalledAt)
          this.#give(SETTLE_MS, 'stop() did not end')
          break
        case 'report':
          this.report = word.report
      }
    })
  }

  close(): void {
    for (const timer of this.#timers.splice(0)) clearTimeout(timer)
  }

  /** From now on it has this long until its next word that matters. */
  #give(ms: number, otherwise: string): void {
    this.close()
    this.#after(ms, () => {
      this.faults.push(`${otherwise} within ${ms / 1_000} s, and was killed`)
      this.#child.kill('SIGKILL')
    })
  }

  #after(ms: number, then: () => void): void {
    this.#timers.push(setTimeout(then, ms))
  }
}
