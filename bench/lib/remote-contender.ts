import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Counts, Place } from './contenders/contender.js'

const program = fileURLToPath(new URL('./contender-process.mjs', import.meta.url))

/** What a piece of work took. */
export interface Cost {
  readonly items: number
  readonly ms: number
  /** Processor time of the contender's process, and of the server where there is one. */
  readonly clientMs: number
  readonly serverMs?: number
}

export interface Calibration {
  readonly ms: number
  readonly cpuMs: number
}

interface OpenAsk {
  readonly place: Place
  readonly serverPid?: number
  readonly isForLatency?: boolean
  readonly types?: number
}

/** What a contender's process can be asked for, as contender-process.mjs does it. */
export interface Actions {
  calibrate: [ask: undefined, answer: Calibration]
  open: [ask: OpenAsk, answer: unknown]
  bulk: [ask: { readonly from: number; readonly count: number; readonly bytes: number }, answer: Cost]
  callers: [
    ask: { readonly from: number; readonly count: number; readonly bytes: number; readonly callers: number },
    answer: Cost,
  ]
  drain: [ask: { readonly count: number; readonly isAll?: boolean }, answer: Cost]
  listen: [ask: undefined, answer: unknown]
  pace: [
    ask: { readonly from: number; readonly count: number; readonly bytes: number; readonly everyMs: number },
    answer: unknown,
  ]
  latencies: [ask: { readonly count: number }, answer: readonly number[]]
  counts: [ask: undefined, answer: Counts]
  groups: [ask: { readonly groups: number; readonly itemsOfEach: number }, answer: Cost]
  spent: [ask: undefined, answer: { readonly clientMs: number; readonly serverMs?: number }]
  ran: [ask: undefined, answer: number]
  rest: [ask: undefined, answer: unknown]
  idle: [ask: { readonly ms: number }, answer: Cost]
  memory: [ask: undefined, answer: { readonly heapBytes: number; readonly peakBytes: number }]
  close: [
    ask: undefined,
    answer: { readonly errors: readonly string[]; readonly secondRuns: number; readonly heapBytes: number },
  ]
}

interface Reply {
  readonly answer?: unknown
  readonly error?: string
}

/** One contender in a process of its own. */
export class ContenderProcess {
  readonly name: string
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, (reply: Reply) => void>()
  #asked = 0
  #end: string | undefined

  constructor(name: string) {
    this.name = name
    this.#child = fork(program, [name], { execArgv: ['--expose-gc'], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.#child.on('message', (reply: Reply & { readonly id: number }) => {
      this.#waiting.get(reply.id)?.(reply)
      this.#waiting.delete(reply.id)
    })
    this.#child.once('exit', (code, signal) => {
      this.#end = `the process ended (${signal ?? `exit code ${code}`})`
      for (const settle of this.#waiting.values()) settle({ error: this.#end })
    })
  }

  /** Rejects with what the process reported, with the contender's name before it. */
  async ask<A extends keyof Actions>(
    action: A,
    ...[ask]: undefined extends Actions[A][0] ? [] : [ask: Actions[A][0]]
  ): Promise<Actions[A][1]> {
    const reply = await new Promise<Reply>((resolve) => {
      if (this.#end !== undefined) return resolve({ error: this.#end })
      this.#asked += 1
      this.#waiting.set(this.#asked, resolve)
      this.#child.send({ id: this.#asked, do: action, ask })
    })
    if (reply.error !== undefined) throw new ContenderError(this.name, action, reply.error)
    return reply.answer as Actions[A][1]
  }

  /** Ends the process, whatever it is at. */
  end(): void {
    this.#child.removeAllListeners('exit')
    this.#end = 'the process was ended'
    this.#child.kill('SIGKILL')
  }
}

/** A contender that failed: its figures would mean nothing. */
export class ContenderError extends Error {
  constructor(name: string, action: string, what: string) {
    super(`${name} failed at "${action}": ${what}`)
  }
}
