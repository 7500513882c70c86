import { type ChildProcess, spawn } from 'node:child_process'
import { hasRunIn, notesOf, runningIn } from './run-log.js'

export interface FleetOptions {
  /** What each member is started with. */
  readonly args: readonly string[]
  /** Where members note their runs. */
  readonly log: string
  readonly size: number
  readonly killEveryMs: number
  readonly maxKills: number
  /** Whom to kill: one that is running an engine, or one that has run some. */
  readonly victim: 'running' | 'has run'
  /** Nothing has moved for so long: it hangs. */
  readonly hangsMs: number
}

/** Processes that are killed and started again. */
export class Fleet {
  /** When each was killed, by process id. */
  readonly killedAt = new Map<number, number>()
  readonly #options: FleetOptions
  readonly #members: ChildProcess[] = []
  #errors = ''
  #fallen: string | undefined

  constructor(options: FleetOptions) {
    this.#options = options
    for (let n = 0; n < options.size; n += 1) this.#members.push(this.#start())
  }

  /** Kills one after the other until it is over. Throws when nothing moves any more. */
  async run(watched: {
    readonly isOver: (kills: number) => Promise<boolean>
    readonly progress: () => Promise<readonly number[]>
    /** Processes that are not to be killed now. */
    readonly spared: () => Promise<ReadonlySet<number>>
  }): Promise<void> {
    const { killEveryMs, maxKills, hangsMs, log } = this.#options
    let killAt = Date.now() + killEveryMs
    let [seen, movedAt] = ['', Date.now()]
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, 50))
      if (this.#fallen !== undefined)
        throw new Error(`A member ended by itself: ${this.#fallen}. ${this.#errors.slice(-3_000)}`)
      if (await watched.isOver(this.killedAt.size)) return
      const now = JSON.stringify([await watched.progress(), notesOf(log).length])
      if (now !== seen) [seen, movedAt] = [now, Date.now()]
      if (Date.now() - movedAt > hangsMs)
        throw new Error(`Nothing has moved for ${hangsMs} ms, at ${now}. ${this.#errors.slice(-3_000)}`)
      if (Date.now() < killAt || this.killedAt.size >= maxKills) continue
      if (await this.#killOne(await watched.spared())) killAt = Date.now() + killEveryMs
    }
  }

  async stop(): Promise<void> {
    for (const member of this.#members) await this.#kill(member)
  }

  /** The oldest that has got to work. On a busy machine, those that are still starting would be killed forever otherwise. */
  async #killOne(spared: ReadonlySet<number>): Promise<boolean> {
    const { log, victim } = this.#options
    const working = victim === 'running' ? runningIn(log) : hasRunIn(log)
    const at = this.#members.findIndex(({ pid = 0 }) => working.has(pid) && !spared.has(pid))
    if (at < 0) return false
    const [member] = this.#members.splice(at, 1)
    await this.#kill(member)
    this.#members.push(this.#start())
    return true
  }

  #start(): ChildProcess {
    const child = spawn(process.execPath, ['test/guild/spider/processes/member.mjs', ...this.#options.args], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    child.stderr?.on('data', (chunk) => {
      this.#errors = `${this.#errors}${chunk}`.slice(-10_000)
    })
    child.once('exit', (code, signal) => {
      if (child.pid === undefined || !this.killedAt.has(child.pid)) this.#fallen = `${code ?? signal}`
    })
    return child
  }

  async #kill(child: ChildProcess | undefined): Promise<void> {
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    // Now, and not when this process is notified of it: until then another one may have taken over.
    this.killedAt.set(child.pid, Date.now())
    await gone
  }
}
