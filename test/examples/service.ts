import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { typescriptProgram } from '../../scripts/lib/run-typescript.mjs'

/** A process of the service, and what it has printed. */
export interface ServiceProcess {
  readonly lines: readonly string[]
  /** Resolves with the first line for which this holds, printed already or yet to come. */
  line(holds: (line: string, index: number) => boolean): Promise<string>
  /** Resolves with its exit code, or the signal that ended it. */
  end(signal: NodeJS.Signals): Promise<number | NodeJS.Signals | null>
}

const running = new Set<ChildProcess>()

export function startService(program: 'web' | 'worker', env: Readonly<Record<string, string>>): ServiceProcess {
  const { command, args, env: base } = typescriptProgram(`examples/service/${program}.ts`)
  const child = spawn(command, args, { env: { ...base, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  running.add(child)
  const lines: string[] = []
  const errors: string[] = []
  const changes = new EventEmitter()
  const exited = once(child, 'exit').then(([code, signal]) => {
    running.delete(child)
    changes.emit('change')
    return (code ?? signal) as number | NodeJS.Signals | null
  })
  createInterface(child.stdout).on('line', (line) => {
    lines.push(line)
    changes.emit('change')
  })
  createInterface(child.stderr).on('line', (line) => errors.push(line))
  return {
    lines,
    async line(holds) {
      for (;;) {
        const found = lines.find(holds)
        if (found !== undefined) return found
        if (!running.has(child)) throw new Error(`${program} ended:\n${errors.join('\n')}`)
        await once(changes, 'change')
      }
    },
    async end(signal) {
      child.kill(signal)
      return exited
    },
  }
}

/** Ends what a failing test has left. */
export function endAll(): void {
  for (const child of running) child.kill('SIGKILL')
}

export interface Job {
  readonly id: string
  readonly status: string
  readonly result?: unknown
  readonly error?: string
}

/** The HTTP side of the service. */
export class Client {
  readonly #origin: string

  constructor(origin: string) {
    this.#origin = origin
  }

  async post(order: unknown): Promise<{ readonly status: number; readonly id: string }> {
    const response = await fetch(`${this.#origin}/orders`, { method: 'POST', body: JSON.stringify(order) })
    return { status: response.status, ...((await response.json()) as { readonly id: string }) }
  }

  async job(id: string): Promise<Job | undefined> {
    const response = await fetch(`${this.#origin}/jobs/${id}`)
    return response.status === 404 ? undefined : ((await response.json()) as Job)
  }

  /** Polls until the job has ended. */
  async ended(id: string): Promise<Job> {
    for (;;) {
      const job = await this.job(id)
      if (job !== undefined && job.status !== 'pending' && job.status !== 'running') return job
      await sleep(50)
    }
  }
}

/** The most jobs of one tenant that a worker ran at once, and the most of all. */
export function mostAtOnce(lines: readonly string[]): { readonly ofATenant: number; readonly ofAll: number } {
  const now = new Map<string, number>()
  let ofATenant = 0
  let ofAll = 0
  for (const line of lines) {
    const [what, tenant = ''] = line.split(' ')
    if (what !== 'begin' && what !== 'end') continue
    now.set(tenant, (now.get(tenant) ?? 0) + (what === 'begin' ? 1 : -1))
    ofATenant = Math.max(ofATenant, now.get(tenant) ?? 0)
    ofAll = Math.max(
      ofAll,
      [...now.values()].reduce((sum, n) => sum + n, 0),
    )
  }
  return { ofATenant, ofAll }
}
