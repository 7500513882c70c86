import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../src/core/clock.js'
import { startPostgres, startRedis } from '../servers/index.js'
import type { PrivateServer } from '../servers/private-server.js'
import { backendOf } from './backend-of.mjs'
import { type Accepted, check, hasDrained, type Ran, type Verdict } from './check.js'
import { readTruth } from './truth-log.mjs'

export type ChaosBackend = 'sqlite' | 'postgres' | 'redis'

export interface ChaosOptions {
  readonly backend: ChaosBackend
  /** How long producers produce and things are killed. */
  readonly seconds: number
  readonly workers: number
  readonly producers: number
  /** A worker or a producer dies this often, by SIGKILL. */
  readonly killEveryMs: number
  /** How often the server is restarted, at the first time by SIGKILL, and Redis always. */
  readonly serverRestarts: number
  /** Items per second, of all producers together. */
  readonly perSecond: number
  /** How often Redis flushes. With `everysec` a kill may take what was accepted in the last two seconds, and nothing else. */
  readonly appendfsync?: 'always' | 'everysec'
  readonly random: Random
  readonly say?: (line: string) => void
}

export interface ChaosReport extends Verdict {
  readonly accepted: number
  /** Sent, and not known to be accepted: they may or may not exist. */
  readonly unsure: number
  /** Lost, and accepted within what `everysec` may lose before a kill of the server. */
  readonly lostAsPromised: number
  readonly kills: number
  readonly serverRestarts: number
  /** How long it took, after the last fault, until everything had ended. */
  readonly drainMs: number
  /** Processes that did not end with exit code 0 when they were told to, with the last they said. */
  readonly badExits: readonly string[]
  /** Processes that ended though nobody had killed them, with the last they said. */
  readonly diedAlone: readonly string[]
}

const DRAIN_MS = 120_000
const PROGRAMS = new URL('.', import.meta.url)

/**
 * A fleet of real processes on a real server, which are killed at random. What was accepted and what ran is written down by
 * the processes themselves, outside of Millrace, and compared at the end.
 */
export async function chaos(options: ChaosOptions): Promise<ChaosReport> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-chaos-'))
  const server = await serverFor(options)
  const address = server?.url ?? `sqlite:${join(dir, 'millrace.db')}`
  const fleet = new Fleet(dir, address, options)
  try {
    await fleet.start()
    const [, killedAt] = await Promise.all([fleet.killAtRandom(), restartNowAndThen(server, options)])
    await fleet.endProducers()
    const faultsOverMs = performance.now()
    const accepted = fleet.accepted()
    options.say?.(`${accepted.length} accepted; waiting for them to end`)
    const backend = await backendOf(address)
    try {
      while (!(await hasDrained(backend, accepted)) && performance.now() - faultsOverMs < DRAIN_MS) await sleep(200)
      const drainMs = Math.round(performance.now() - faultsOverMs)
      await fleet.endWorkers()
      const verdict = await check(backend, accepted, fleet.ran())
      const { kills, diedAlone, badExits } = fleet
      const unsure = fleet.unsure()
      const mayBeLost = options.appendfsync === 'everysec' ? lostBefore(killedAt, accepted) : new Set<string>()
      const unfinished = verdict.unfinished.filter(({ root }) => !mayBeLost.has(root))
      return {
        ...verdict,
        unfinished,
        lostAsPromised: new Set(verdict.unfinished.flatMap(({ root }) => (mayBeLost.has(root) ? [root] : []))).size,
        accepted: accepted.length,
        unsure,
        kills,
        serverRestarts: server === undefined ? 0 : options.serverRestarts,
        drainMs,
        badExits,
        diedAlone,
      }
    } finally {
      await backend.close()
    }
  } finally {
    await fleet.kill()
    await server?.stop()
    if (process.env['MILLRACE_CHAOS_KEEP'] === undefined) rmSync(dir, { recursive: true, force: true })
    else options.say?.(`kept in ${dir}`)
  }
}

function serverFor({ backend, appendfsync = 'always' }: ChaosOptions): Promise<PrivateServer | undefined> {
  switch (backend) {
    case 'sqlite':
      return Promise.resolve(undefined)
    case 'postgres':
      return startPostgres()
    case 'redis':
      return startRedis({ appendonly: true, appendfsync })
  }
}

/** Redis answers before it writes while a flush is under way, for up to two seconds; a little more for a busy machine. */
const EVERYSEC_MS = 2_500

/** What was accepted so shortly before a kill that a server which flushes once a second need not have it. */
function lostBefore(killedAt: readonly number[], accepted: readonly Accepted[]): Set<string> {
  const isDoomed = (at: number) => killedAt.some((killed) => at <= killed && killed - at <= EVERYSEC_MS)
  return new Set(accepted.flatMap(({ id, at }) => (at !== undefined && isDoomed(at) ? [id] : [])))
}

/** When it was killed. Redis always is; PostgreSQL the first time, and ends in order the others. */
async function restartNowAndThen(server: PrivateServer | undefined, options: ChaosOptions): Promise<readonly number[]> {
  const killedAt: number[] = []
  if (server === undefined) return killedAt
  const pauseMs = (options.seconds * 1_000) / (options.serverRestarts + 1)
  for (let i = 0; i < options.serverRestarts; i += 1) {
    await sleep(pauseMs)
    const by = i === 0 || server.kind === 'redis' ? 'SIGKILL' : 'SIGTERM'
    options.say?.(`restarting the server (${by})`)
    await server.restart(by)
    // Taken afterwards: what was accepted while it was going down counts as accepted before.
    if (by === 'SIGKILL') killedAt.push(Date.now())
  }
  return killedAt
}

type Role = 'worker' | 'producer'

interface Member {
  readonly role: Role
  readonly name: string
  readonly child: ChildProcess
}

class Fleet {
  readonly #dir: string
  readonly #address: string
  readonly #o: ChaosOptions
  #members: Member[] = []
  #born = 0
  #isOver = false
  kills = 0
  readonly diedAlone: string[] = []
  readonly badExits: string[] = []

  constructor(dir: string, address: string, options: ChaosOptions) {
    this.#dir = dir
    this.#address = address
    this.#o = options
  }

  async start(): Promise<void> {
    // One comes first and makes the tables; the others would only wait for it.
    this.#spawn('worker')
    await sleep(500)
    for (let i = 1; i < this.#o.workers; i += 1) this.#spawn('worker')
    for (let i = 0; i < this.#o.producers; i += 1) this.#spawn('producer')
  }

  async killAtRandom(): Promise<void> {
    const { seconds, killEveryMs, random } = this.#o
    const endMs = performance.now() + seconds * 1_000
    while (performance.now() + killEveryMs < endMs) {
      await sleep(killEveryMs)
      const victim = this.#members[Math.floor(random() * this.#members.length)]!
      await this.#end(victim, 'SIGKILL')
      this.kills += 1
      this.#spawn(victim.role)
    }
    await sleep(Math.max(0, endMs - performance.now()))
  }

  async endProducers(): Promise<void> {
    this.#isOver = true
    const producers = this.#members.filter(({ role }) => role === 'producer')
    await this.#endAll(producers)
  }

  async endWorkers(): Promise<void> {
    await this.#endAll(this.#members)
  }

  async #endAll(members: readonly Member[]): Promise<void> {
    await Promise.all(
      members.map(async (member) => {
        await this.#listening(member.name)
        const code = await this.#end(member, 'SIGTERM')
        if (code !== 0) this.badExits.push(`${member.name} (${code}): ${this.#said(member.name)}`)
      }),
    )
  }

  /** One that has only just been started does not listen yet, and would die of the signal. */
  async #listening(name: string): Promise<void> {
    const file = join(this.#dir, `${name}.truth`)
    for (let tries = 0; tries < 600 && !(existsSync(file) && statSync(file).size > 0); tries += 1) await sleep(50)
  }

  /** The last that it wrote to its standard error. */
  #said(name: string): string {
    return readFileSync(join(this.#dir, `${name}.err`), 'utf8').slice(-2_000)
  }

  async kill(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#members.map((member) => this.#end(member, 'SIGKILL')))
  }

  accepted(): Accepted[] {
    return this.#lines('producer').filter((line) => line['is'] === 'accepted') as unknown as Accepted[]
  }

  unsure(): number {
    return this.#lines('producer').filter((line) => line['is'] === 'unsure').length
  }

  ran(): Ran[] {
    return this.#lines('worker').filter((line) => line['is'] !== 'born') as unknown as Ran[]
  }

  #lines(role: Role): Record<string, unknown>[] {
    const files = readdirSync(this.#dir).filter((name) => name.startsWith(`${role}-`) && name.endsWith('.truth'))
    return files.flatMap((name) => readTruth(join(this.#dir, name)))
  }

  #spawn(role: Role): void {
    const name = `${role}-${this.#born++}`
    const file = join(this.#dir, `${name}.truth`)
    const errors = openSync(join(this.#dir, `${name}.err`), 'w')
    const { perSecond, producers } = this.#o
    const program = new URL(`${role}.mjs`, PROGRAMS).pathname
    const more = role === 'producer' ? [name, String(Math.ceil(perSecond / producers))] : []
    const child = spawn(process.execPath, [program, this.#address, file, ...more], {
      stdio: ['ignore', 'ignore', errors],
    })
    closeSync(errors)
    const member = { role, name, child }
    this.#members.push(member)
    child.once('exit', (code) => {
      const isOurs = !this.#members.includes(member)
      this.#members = this.#members.filter((other) => other !== member)
      if (isOurs || this.#isOver) return
      // Nobody killed it: whatever the server does, a worker must live through it.
      this.#o.say?.(`${name} ended by itself with ${code}`)
      this.diedAlone.push(`${name} (${code}): ${this.#said(name)}`)
      this.#spawn(role)
    })
  }

  /** Ends it, and resolves with its exit code when it is gone. */
  #end(member: Member, signal: NodeJS.Signals): Promise<number | null> {
    this.#members = this.#members.filter((other) => other !== member)
    const { child } = member
    if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode)
    return new Promise((resolve) => {
      child.once('exit', (code) => resolve(code))
      child.kill(signal)
    })
  }
}
