import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

/** What every process of a fleet is given; see consumer.mjs. */
export interface FleetSettings {
  readonly broker: 'redis' | 'nats'
  readonly url: string
  readonly stream: string
  readonly letters: string
  readonly leaseMs: number
  readonly handleMs: number
  readonly attempts: number
  readonly work: string
}

/** A line of a truth log. */
export interface TruthLine {
  readonly is: 'born' | 'start' | 'done' | 'failed'
  readonly n: number
  readonly tries: number
}

const PROGRAM = join(import.meta.dirname, 'consumer.mjs')

/** Consumers that are killed, stopped and replaced. */
export class Fleet {
  readonly #settings: FleetSettings
  readonly #dir: string
  readonly #members: (ChildProcess | undefined)[]
  readonly #files: string[] = []
  #isEnding = false
  kills = 0
  readonly crashes: string[] = []

  constructor(settings: FleetSettings, dir: string, size: number) {
    this.#settings = settings
    this.#dir = dir
    this.#members = Array.from({ length: size }, () => undefined)
    for (let i = 0; i < size; i += 1) this.#start(i)
  }

  /** Pulls the plug of one of them. Another one takes its place. */
  kill(i: number): void {
    this.kills += 1
    this.#members[i]?.kill('SIGKILL')
  }

  /** Freezes one for that long, and lets it go on. */
  async freeze(i: number, ms: number): Promise<void> {
    const member = this.#members[i]
    member?.kill('SIGSTOP')
    await wait(ms)
    member?.kill('SIGCONT')
  }

  /** Ends all of them in order. */
  async end(): Promise<void> {
    this.#isEnding = true
    await Promise.all(
      this.#members.map(async (member) => {
        if (member === undefined || member.exitCode !== null || member.signalCode !== null) return
        const gone = new Promise((resolve) => member.once('exit', resolve))
        member.kill('SIGTERM')
        const isGone = await Promise.race([gone.then(() => true), wait(15_000).then(() => false)])
        if (!isGone) {
          this.crashes.push('a consumer did not end after SIGTERM')
          member.kill('SIGKILL')
          await gone
        }
      }),
    )
  }

  /** Everything that any of them has written. The last line of one that was killed may be cut. */
  truth(): TruthLine[] {
    return this.#files.flatMap((file) =>
      textOf(file)
        .split('\n')
        .filter((line) => line.endsWith('}'))
        .map((line) => JSON.parse(line) as TruthLine),
    )
  }

  remove(): void {
    for (const file of this.#files) rmSync(file, { force: true })
  }

  #start(i: number): void {
    const file = join(this.#dir, `truth-${this.#files.length}.jsonl`)
    this.#files.push(file)
    const member = spawn(process.execPath, [PROGRAM, JSON.stringify({ ...this.#settings, file })], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let errors = ''
    member.stderr.on('data', (chunk: Buffer) => {
      errors += chunk.toString()
    })
    this.#members[i] = member
    member.once('exit', (code, signal) => {
      // It was told to end before it could listen to that.
      const wasEarly = this.#isEnding && signal === 'SIGTERM'
      if (signal !== 'SIGKILL' && !wasEarly && code !== 0)
        this.crashes.push(`exit ${code ?? signal}: ${errors.slice(0, 2_000)}`)
      if (!this.#isEnding) this.#start(i)
    })
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return '' // It was killed before its first line.
  }
}
