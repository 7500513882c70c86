import type { At, Ms } from '../../core/time/time.js'
import type { WorkerRecord, WorkerSettings } from '../../ports/ledger.js'
import type { EngineContext } from '../engine-context.js'
import { type ItemRules, policyOf } from '../enqueue/resolve-item.js'
import type { ResolvedSystemOptions } from '../options.js'

/** How often an idle worker writes its record. A worker that holds items writes it with every heartbeat. */
const EVERY_MS: Ms = 15_000

/** A worker whose record is older than this does not count as alive. */
const ALIVE_MS: Ms = 60_000

/** How long a stop waits for the backend to remove the record: short, compared with what a stop may take. */
const REMOVE_MS: Ms = 250

/** A worker, and when it last wrote its record. */
export type SeenWorker = WorkerRecord & { readonly seenAt: At }

export function isAlive({ seenAt }: { readonly seenAt: At }, now: At): boolean {
  return now - seenAt <= ALIVE_MS
}

/** Whether this worker runs items of that type on that queue. */
export function runs({ queues, types }: WorkerRecord, queue: string, type: string): boolean {
  // The gates of dependencies are known to every system and listed by none.
  return queues.includes(queue) && (type.startsWith('@work/') || types.includes(type))
}

/** The settings that this process writes into its record: what its items get by default. */
export function workerSettings({ visibility, keep }: ResolvedSystemOptions, rules: ItemRules): WorkerSettings {
  const types = [...rules.registry.definitions].map(({ type, options: { runTimeout } }) => {
    const retry = policyOf(rules, type)
    return [type, Object.freeze(runTimeout === undefined ? { retry } : { retry, runTimeoutMs: runTimeout })] as const
  })
  return Object.freeze({
    leaseMs: visibility,
    keepMs: Object.freeze({ completed: keep.completedMs, dead: keep.deadMs }),
    types: Object.freeze(Object.fromEntries(types)),
  })
}

/** Keeps the record of this process in the backend, so that people can see a worker that is idle. Runs after claims. */
export class WorkerRegistration {
  readonly #context: EngineContext
  #sentMs = Number.NEGATIVE_INFINITY
  #sentTypes: readonly string[] = []
  #sending: Promise<unknown> = Promise.resolve()
  #isStarted = false

  constructor(context: EngineContext) {
    this.#context = context
  }

  afterClaim(nowMs: Ms): void {
    const { ledger, o, failed } = this.#context
    // Where workers cannot be listed, records have no reader.
    if (ledger.inspect === undefined) return
    const record = this.#context.workerRecord()
    // A new type is written immediately: until then its items seem to have no worker.
    if (nowMs - this.#sentMs < EVERY_MS && record.types === this.#sentTypes) return
    this.#sentMs = nowMs
    this.#sentTypes = record.types
    this.#sending = ledger.extend([], o.visibility, record).catch((error) => failed(error, 'queue'))
  }

  /** From here on heartbeats may write the record. */
  start(): void {
    this.#isStarted = true
  }

  /**
   * The worker has stopped: its record goes, after a write that is still in flight. A backend that does not answer, or is closed,
   * does not delay the stop, and is not reported: its record grows old.
   */
  async remove(): Promise<void> {
    const { ledger, worker, o } = this.#context
    if (!this.#isStarted || ledger.removeWorker === undefined) return
    this.#isStarted = false
    this.#sentMs = Number.NEGATIVE_INFINITY
    const timer = new AbortController()
    const removed = this.#sending.then(() => ledger.removeWorker?.(worker.id)).catch(() => undefined)
    await Promise.race([removed, o.clock.sleep(REMOVE_MS, timer.signal).catch(() => undefined)])
    timer.abort()
  }
}
