import { setTimeout as sleep } from 'node:timers/promises'
import {
  type AnyWorkBuilder,
  type Backend,
  createWork,
  memoryBackend,
  unlimitedDoer,
  type Work,
  type WorkInstanceOptions,
  type WorkSystem,
  type WorkSystemOptions,
} from 'millrace'
import type { Ledger } from '../../src/ports/ledger.js'
import { ledgerOn } from '../backends/ledger-on.js'
import { backendOf } from '../chaos/backend-of.mjs'
import { wrapLedger } from '../support/wrap-ledger.js'
import { Gauges } from './gauges.js'
import { LedgerWatch } from './ledger-watch.js'
import type { LoadReport, Order } from './report.js'
import { RunCount } from './run-count.js'
import type { Load } from './scenarios.js'
import { slowCommits } from './slow-commits.js'

type Closable = Backend & { close(): Promise<void> }

/** What a play adds to what is measured of every run. */
export interface Outcome {
  /** How many items should have ended. */
  readonly expected: number
  readonly facts?: LoadReport['facts']
  readonly broken?: readonly string[]
}

/** Bytes of one call that fills the queue: far below what a backend would refuse. */
const FILL_BYTES = 2 ** 21
const FILL_ITEMS = 1_000
const READ_ITEMS = 500
const STOP_PATIENCE_MS = 20_000

/** One worker process and its backend, with everything that is counted about them. */
export class Stage {
  readonly load: Load
  readonly runs = new RunCount()
  readonly watch: LedgerWatch
  readonly #backend: Closable
  /** What the engine works on: the same, watched, and slowed down if that was asked for. */
  readonly #watched: Backend
  readonly #direct: Closable
  readonly #gauges = new Gauges()
  readonly #errors: Record<string, number> = {}
  readonly #broken: string[] = []
  #beganAt = 0

  private constructor(order: Order, backend: Closable, direct: Closable) {
    this.load = order.load
    this.watch = new LedgerWatch(() => this.#gauges.sample())
    this.#backend = backend
    this.#direct = direct
    this.#watched = wrapLedger(backend, (ledger) => {
      const { slowCommitsMs } = order
      return this.watch.over(slowCommitsMs === 0 ? ledger : { ...ledger, ...slowCommits(ledger, slowCommitsMs) })
    })
  }

  static async open(order: Order): Promise<Stage> {
    if (order.address === '') {
      const memory = memoryBackend()
      return new Stage(order, memory, memory)
    }
    const stage = new Stage(order, await backendOf(order.address), await backendOf(order.directAddress))
    // Tables are made and connections opened before anything is measured, the fast way first.
    for (const backend of [stage.#direct, stage.#backend]) await ledgerOn(backend).read(['nothing'])
    return stage
  }

  /** Puts work into the queue before anything is measured. */
  async fill(count: number, make: (n: number) => Work): Promise<void> {
    const w = createWork({ backend: this.#direct, autoStart: false })
    const step = Math.max(1, Math.min(FILL_ITEMS, Math.floor(FILL_BYTES / this.load.inputBytes)))
    for (let from = 0; from < count; from += step)
      await w.enqueueMany(Array.from({ length: Math.min(step, count - from) }, (_, i) => make(from + i)))
    await w.stop()
  }

  /** Puts one item into the queue before anything is measured. */
  async put(work: Work, options?: WorkInstanceOptions): Promise<void> {
    const w = createWork({ backend: this.#direct, autoStart: false })
    await w.enqueue(work, options).accepted()
    await w.stop()
  }

  /** A system with the default options, except for what the load names. It is started by the play. */
  system<const Defs extends readonly AnyWorkBuilder[]>(work: Defs): WorkSystem<Defs> {
    const { visibility, isUnlimited } = this.load
    const options: WorkSystemOptions & { readonly work: Defs } = {
      backend: this.#watched,
      work,
      autoStart: false,
      onError: (error, phase) => {
        const word = `${phase} ${codeOf(error)}`
        if (this.#errors[word] === undefined) console.error(phase, error)
        this.#errors[word] = (this.#errors[word] ?? 0) + 1
      },
      ...(visibility === undefined ? {} : { visibility }),
      ...(isUnlimited ? { doer: unlimitedDoer() } : {}),
    }
    return createWork<Defs>(options)
  }

  /** From here on it is measured. */
  async begin(): Promise<void> {
    await this.#gauges.begin()
    // Sent before the load can keep it from leaving.
    await new Promise<void>((resolve) => void process.send?.({ is: 'begun' }, undefined, {}, () => resolve()))
    this.#beganAt = performance.now()
  }

  /** Resolves when that many items have ended, or when the time is over. */
  async ended(count: number): Promise<void> {
    await this.watch.reach(count, this.load.seconds * 1_000)
  }

  /** Stops a system, and says how long that took. One that hangs is reported, and does not keep the report from being made. */
  async stop(w: WorkSystem): Promise<number> {
    const stopAt = performance.now()
    const isOver = await Promise.race([w.stop().then(() => true), sleep(STOP_PATIENCE_MS, false, { ref: false })])
    if (!isOver) this.#broken.push(`stop() did not end within ${STOP_PATIENCE_MS / 1_000} s`)
    return Math.round(performance.now() - stopAt)
  }

  /** Which of these are recorded as a success. */
  async areDone(ids: readonly string[]): Promise<boolean[]> {
    const done: boolean[] = []
    for (let from = 0; from < ids.length; from += READ_ITEMS) {
      const views = await this.#ledger.read(ids.slice(from, from + READ_ITEMS))
      for (const view of views) done.push(view?.status === 'completed')
    }
    return done
  }

  /** How many items the backend has in each state. */
  async counts(): Promise<Record<string, number>> {
    const byState: Record<string, number> = {}
    for (const { counts } of await this.#ledger.inspect!.counts())
      for (const [state, count] of Object.entries(counts)) byState[state] = (byState[state] ?? 0) + count
    return byState
  }

  /** Ends the measurement and asks the backend what it has stored. */
  async report({ expected, facts = {}, broken = [] }: Outcome): Promise<LoadReport> {
    const { watch, runs } = this
    const ms = Math.round((watch.lastAt || performance.now()) - this.#beganAt)
    const costs = await this.#gauges.end()
    const counts = await this.counts()
    return {
      expected,
      done: watch.done,
      doneStored: counts['completed'] ?? 0,
      dead: watch.dead,
      deadStored: (counts['dead'] ?? 0) + (counts['cancelled'] ?? 0),
      secondRuns: runs.secondRuns,
      lapses: watch.lapses,
      stale: watch.stale,
      errors: this.#errors,
      ...costs,
      held: watch.mostHeld,
      running: runs.mostAtOnce,
      ms,
      perSecond: Math.round((watch.ended / Math.max(1, ms)) * 1_000),
      facts,
      broken: [...this.#broken, ...broken],
    }
  }

  async close(): Promise<void> {
    await this.#backend.close()
    if (this.#direct !== this.#backend) await this.#direct.close()
  }

  get #ledger(): Ledger {
    return ledgerOn(this.#direct)
  }
}

/** The code of an error, or its name. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return (error as { readonly code?: string }).code ?? error.name
}
