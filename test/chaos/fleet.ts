import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { CuttingProxy } from './cutting-proxy.js'
import { machineNow } from './machine-time.mjs'
import type { ChaosOptions } from './options.js'
import type { Timeline } from './timeline.js'
import { readTruth } from './truth-log.mjs'

export type Role = 'worker' | 'producer' | 'waiter' | 'locker'

export interface Member {
  readonly role: Role
  readonly name: string
  readonly child: ChildProcess
  /** Between it and the server. A file has none. */
  readonly proxy: CuttingProxy | undefined
  isStopped: boolean
}

const PROGRAMS = new URL('.', import.meta.url)
/** How long a waiter waits in the end for what has not ended. */
export const PATIENCE_MS = 120_000

/** The processes, each with what it writes down and, where there is a server, with its own connection that can fail. */
export class Fleet {
  readonly #dir: string
  readonly #address: string
  readonly #o: ChaosOptions
  readonly #timeline: Timeline
  #members: Member[] = []
  #born = 0
  #isOver = false
  #isClosed = false
  #offsetMs = 0
  readonly endedUnasked: string[] = []
  readonly badExits: string[] = []

  constructor(dir: string, address: string, options: ChaosOptions, timeline: Timeline) {
    this.#dir = dir
    this.#address = address
    this.#o = options
    this.#timeline = timeline
  }

  async start(): Promise<void> {
    const { workers, producers, everyMs, backend } = this.#o
    // One comes first and makes the tables; the others would only wait for it.
    const first = await this.#spawn('worker')
    if (first !== undefined) await this.#listening(first.name)
    await sleep(200)
    const more: Role[] = [...repeat<Role>('worker', workers - 1), ...repeat<Role>('producer', producers), 'waiter']
    if (backend === 'postgres' && everyMs.locks !== undefined) more.push('locker')
    await Promise.all(more.map((role) => this.#spawn(role)))
  }

  /** Those of these roles that run at the moment and are not stopped. */
  members(...roles: Role[]): Member[] {
    return this.#members.filter(({ role, isStopped }) => roles.includes(role) && !isStopped)
  }

  /** Kills it; another one takes its place. */
  async killAndReplace(victim: Member): Promise<void> {
    await this.#end(victim, 'SIGKILL')
    await this.#spawn(victim.role)
  }

  stop(member: Member): void {
    member.isStopped = true
    member.child.kill('SIGSTOP')
  }

  goOn(member: Member): void {
    member.child.kill('SIGCONT')
    member.isStopped = false
  }

  /** Sets the wall clocks of all processes, as if it were that of the machine. */
  setClocks(offsetMs: number): void {
    this.#offsetMs = offsetMs
    // One that dies meanwhile has no use for it.
    for (const { child } of this.#members) if (child.connected) child.send({ offsetMs }, () => {})
  }

  /** Nothing that ends from here on is replaced. */
  async end(...roles: Role[]): Promise<void> {
    this.#isOver = true
    await Promise.all(
      this.members(...roles).map(async (member) => {
        await this.#listening(member.name)
        const code = await this.#end(member, 'SIGTERM')
        if (code !== 0) this.badExits.push(`${member.name} (${code}): ${this.#said(member.name)}`)
      }),
    )
  }

  async kill(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#members.map((member) => this.#end(member, 'SIGKILL')))
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

  /** Undefined: everything has been closed meanwhile. */
  async #spawn(role: Role): Promise<Member | undefined> {
    const name = `${role}-${this.#born++}`
    // A user of the same database has their own connection.
    const proxy = this.#address.startsWith('sqlite:') || role === 'locker' ? undefined : await this.#proxy()
    if (this.#isClosed) {
      proxy?.close()
      return undefined
    }
    const { leaseMs, perSecond, producers, everyMs } = this.#o
    const settings: import('./member.mjs').Settings = {
      address: proxy === undefined ? this.#address : through(this.#address, proxy.port),
      file: join(this.#dir, `${name}.truth`),
      name,
      leaseMs,
      offsetMs: this.#offsetMs,
      perSecond: Math.ceil(perSecond / producers),
      crasherEveryMs: everyMs.crashers ?? 0,
      patienceMs: PATIENCE_MS,
    }
    const errors = openSync(join(this.#dir, `${name}.err`), 'w')
    const child = spawn(process.execPath, [new URL(`${role}.mjs`, PROGRAMS).pathname, JSON.stringify(settings)], {
      stdio: ['ignore', 'ignore', errors, 'ipc'],
    })
    closeSync(errors)
    const member: Member = { role, name, child, proxy, isStopped: false }
    this.#members.push(member)
    child.once('exit', (code, signal) => {
      const now = machineNow()
      this.#timeline.add({ who: name, kind: 'death', from: now, to: now })
      proxy?.close()
      const isOurs = !this.#members.includes(member)
      this.#members = this.#members.filter((other) => other !== member)
      if (isOurs) return
      if (signal !== 'SIGKILL' || !this.#hasCrashed(name)) {
        // It was not killed: whatever the server does, a process must live through it.
        this.#o.say?.(`${name} ended by itself with ${code ?? signal}`)
        this.endedUnasked.push(`${name} (${code ?? signal}): ${this.#said(name)}`)
      }
      // Work that takes its process along is still there when the faults are over, and so is the rest of the work.
      if (!this.#isClosed && (!this.#isOver || role === 'worker')) void this.#spawn(role)
    })
    return member
  }

  #proxy(): Promise<CuttingProxy> {
    return CuttingProxy.open(Number(new URL(this.#address).port))
  }

  /** It said itself that it was going to. */
  #hasCrashed(name: string): boolean {
    return readTruth(join(this.#dir, `${name}.truth`)).some(({ is }) => is === 'crash')
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

/** The same address behind a proxy. */
function through(address: string, port: number): string {
  const url = new URL(address)
  url.port = String(port)
  return url.href
}

function repeat<T>(value: T, times: number): T[] {
  return Array.from({ length: times }, () => value)
}
