import type { FailureClass } from '../../src/core/failure/failure.js'
import { listedError } from '../../src/core/text/error-text.js'
import type { At } from '../../src/core/time/time.js'
import type { ItemSummary, ItemView } from '../../src/ports/inspect.js'
import type { Attempt, Ending, Envelope, Hold, ItemStatus } from '../../src/ports/item.js'

/** One item in the model's book. */
export interface Row {
  envelope: Envelope
  readonly queue: string
  /** Its place among those of one due time. A redriven item arrives anew. */
  arrival: number
  status: ItemStatus
  dueAt: At
  hold: Hold | undefined
  lease: { readonly token: string; readonly worker: string; until: At; running: boolean } | undefined
  /** The token that last settled it: a commit repeated after a lost reply is recognised by it. */
  settledBy: string | undefined
  fence: number
  lapses: number
  crashes: number
  deliveries: number
  gate: { readonly met: boolean } | undefined
  cancelled: string | undefined
  ending: Ending | undefined
  class: FailureClass | undefined
  result: string | undefined
  error: string | undefined
  /** What it died of, where no run told; until one does. */
  parkedAs: string | undefined
  runAt: At | undefined
  endAt: At | undefined
  goneAt: At
  progress: string | undefined
  readonly attempts: Attempt[]
  readonly watchers: Set<string>
}

export function newRow(envelope: Envelope, queue: string, arrival: number, dueAt: At, hold?: Hold): Row {
  return {
    envelope,
    queue,
    arrival,
    status: 'pending',
    dueAt,
    hold,
    lease: undefined,
    settledBy: undefined,
    fence: 0,
    lapses: 0,
    crashes: 0,
    deliveries: 0,
    gate: undefined,
    cancelled: undefined,
    ending: undefined,
    class: undefined,
    result: undefined,
    error: undefined,
    parkedAs: undefined,
    runAt: undefined,
    endAt: undefined,
    goneAt: Infinity,
    progress: undefined,
    attempts: [],
    watchers: new Set(),
  }
}

/** Priority descending, due time, arrival. */
export const inOrderOfClaim = (a: Row, b: Row): number =>
  b.envelope.priority - a.envelope.priority || a.dueAt - b.dueAt || a.arrival - b.arrival

/** What it failed of last. */
export const fingerprintOf = (row: Row): string | undefined => row.parkedAs ?? row.attempts.at(-1)?.fingerprint

/** The row as people and waiters see it. */
export function viewOf(row: Row): ItemView {
  const { input: _, ...envelope } = row.envelope
  const pending = row.status === 'pending'
  return defined<ItemView>({
    envelope,
    queue: row.queue,
    status: row.status,
    ending: row.ending,
    class: row.class,
    hold: pending ? row.hold : undefined,
    dueAt: pending && row.dueAt !== Infinity ? row.dueAt : undefined,
    worker: row.lease?.worker,
    leaseUntil: row.lease?.until,
    runAt: row.runAt,
    running: row.lease?.running,
    result: row.result,
    error: row.error,
    endAt: row.endAt,
    progress: row.progress,
    cancelReason: row.endAt === undefined ? row.cancelled : undefined,
    lapses: row.lapses,
    crashes: row.crashes,
  })
}

/** The row as lists show it. */
export function summaryOf(row: Row): ItemSummary {
  const { result: _result, progress: _progress, error, ...summary } = viewOf(row)
  return error === undefined ? summary : { ...summary, error: listedError(error) }
}

function defined<T extends object>(record: { [K in keyof T]: T[K] | undefined }): T {
  // The cast says what the filter does: what is left is exactly what was defined.
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as T
}
