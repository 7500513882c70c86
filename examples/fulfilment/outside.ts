// The world outside of the shop: a bank, a label printer and a carrier, as files in a folder. Each takes an idempotency key, as real
// services do, and does a thing once for each key. What was asked of it and what it did is in its log, which the shop never reads.
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** One line of the log: a call began, the thing was done (once for each key), a call was answered. */
export interface Entry {
  readonly what: 'asked' | 'done' | 'answered'
  readonly service: string
  readonly key: string
  readonly pid: number
}

export class Outside {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
    mkdirSync(join(folder, 'done'), { recursive: true })
  }

  /** Does it, unless that key was seen before. It takes a while, and the caller may die at any moment of it. */
  async call(service: string, key: string, takesMs: number): Promise<string> {
    this.#log('asked', service, key)
    await pause(takesMs / 2)
    const receipt = `${service} ${key}`
    try {
      // The file can be made once: of two callers with one key, one is first.
      writeFileSync(join(this.#folder, 'done', `${service}-${key.replaceAll('/', '~')}`), receipt, { flag: 'wx' })
      this.#log('done', service, key)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    await pause(takesMs / 2)
    this.#log('answered', service, key)
    return receipt
  }

  /** The log, for a test that counts what really happened. */
  entries(): Entry[] {
    const file = join(this.#folder, 'log')
    if (!existsSync(file)) return []
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
    return lines.map((line) => JSON.parse(line) as Entry)
  }

  #log(what: Entry['what'], service: string, key: string): void {
    appendFileSync(join(this.#folder, 'log'), `${JSON.stringify({ what, service, key, pid: process.pid })}\n`)
  }
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
