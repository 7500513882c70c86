import type { At, Ms } from '../../src/core/time/time.js'
import type {
  FailureGroup,
  GateView,
  ItemQuery,
  ItemSummary,
  ItemView,
  Throughput,
  TypeCounts,
} from '../../src/ports/inspect.js'
import type { Attempt, Lease } from '../../src/ports/item.js'
import type {
  ClaimReply,
  ClaimRequest,
  LeaseStatus,
  Notification,
  PausedNames,
  ScheduleRecord,
  WorkerRecord,
} from '../../src/ports/ledger.js'
import type { CommitResult, GroupValue, Settlement } from '../../src/ports/settlement.js'
import { itemState } from '../../src/ports/words.js'
import { Book, type Signals } from './book.js'
import { claim, extend, readyIn } from './claim.js'
import { commit } from './commit.js'
import { failuresOf } from './failures.js'
import { flowOf } from './flow.js'
import { groupValue } from './group.js'
import { fingerprintOf, type Row, summaryOf, viewOf } from './row.js'

/**
 * The ledger's laws in their simplest form: plain maps, full scans, one call at a time. It is slow and meant to be obviously
 * right; real ledgers are compared with it, call by call.
 */
export class LedgerModel {
  readonly #book: Book

  constructor(now: () => At, maxItemBytes = 1_048_576) {
    this.#book = new Book(now, maxItemBytes)
  }

  get rows(): ReadonlyMap<string, Row> {
    return this.#book.rows
  }

  /** What people did, in order. */
  get log(): Book['log'] {
    return this.#book.log
  }

  /** What has been made known since the last call. */
  takeSignals(): Signals {
    const told = this.#book.signals
    this.#book.signals = { ready: [], inboxes: [] }
    return told
  }

  claim(ask: ClaimRequest): ClaimReply {
    return claim(this.#book, ask)
  }

  /** What a claim would find now, in its order. */
  ready(queue: string): readonly Row[] {
    return readyIn(this.#book, queue)
  }

  isPaused(row: Row): boolean {
    return this.#book.isPaused(row)
  }

  paused(): PausedNames {
    const named = (what: string) =>
      [...this.#book.paused].filter((one) => one.startsWith(what)).map((one) => one.slice(what.length))
    return { queues: named('queue '), types: named('type ') }
  }

  extend(
    held: readonly { readonly lease: Lease; readonly running: boolean; readonly progress?: string }[],
    leaseMs: Ms,
    me: WorkerRecord,
  ): LeaseStatus[] {
    return extend(this.#book, held, leaseMs, me)
  }

  commit(batch: readonly Settlement[]): CommitResult[] {
    return commit(this.#book, batch)
  }

  read(ids: readonly string[]): (ItemView | undefined)[] {
    this.#book.tidy()
    return ids.map((id) => {
      const row = this.#book.rows.get(id)
      return row === undefined ? undefined : viewOf(row)
    })
  }

  summaries(ids: readonly string[]): (ItemSummary | undefined)[] {
    this.#book.tidy()
    return ids.map((id) => {
      const row = this.#book.rows.get(id)
      return row === undefined ? undefined : summaryOf(row)
    })
  }

  groups(ids: readonly string[]): ((GroupValue & { readonly open: number }) | undefined)[] {
    this.#book.tidy()
    return ids.map((id) => {
      const group = this.#book.groups.get(id)
      return group === undefined ? undefined : { ...groupValue(group), open: group.open }
    })
  }

  watch(inbox: string, what: Notification): void {
    for (const id of what.itemIds) this.#book.rows.get(id)?.watchers.add(inbox)
    for (const id of what.groupIds) this.#book.group(id).watchers.add(inbox)
  }

  /** Everything that fits the query, oldest arrival first; paging is the caller's. */
  list(query: Omit<ItemQuery, 'limit' | 'cursor'>): ItemSummary[] {
    this.#book.tidy()
    return this.#fitting(query).map(summaryOf)
  }

  count(query: Omit<ItemQuery, 'limit' | 'cursor'>): number {
    this.#book.tidy()
    return this.#fitting(query).length
  }

  #fitting(query: Omit<ItemQuery, 'limit' | 'cursor'>): Row[] {
    const fits = (row: Row) =>
      (query.state === undefined || this.#word(row) === query.state) &&
      (query.type === undefined || row.envelope.type === query.type) &&
      (query.queue === undefined || row.queue === query.queue) &&
      (query.groupId === undefined || row.envelope.groupId === query.groupId) &&
      (query.tag === undefined || (row.envelope.tags ?? []).includes(query.tag)) &&
      (query.class === undefined || row.class === query.class) &&
      (query.fingerprint === undefined || fingerprintOf(row) === query.fingerprint) &&
      (query.before === undefined || (row.endAt ?? row.envelope.queueAt) < query.before) &&
      (query.after === undefined || (row.endAt ?? row.envelope.queueAt) >= query.after)
    return [...this.#book.rows.values()].filter(fits)
  }

  flow(windowMs: Ms): Throughput[] {
    this.#book.tidy()
    return flowOf(this.#book, (row) => this.#word(row), windowMs)
  }

  failures(limit: number): FailureGroup[] {
    this.#book.tidy()
    return failuresOf(this.#book, (row) => this.#word(row)).slice(0, limit)
  }

  /** What nothing will ever put to work. */
  stuckItems(): ItemSummary[] {
    this.#book.tidy()
    const isStray = ({ status, lease, dueAt, hold }: Row) =>
      (status === 'running' && lease === undefined) ||
      (status === 'pending' && dueAt === Infinity && hold === undefined)
    return [...this.#book.rows.values()].filter(isStray).map(summaryOf)
  }

  attempts(id: string): readonly Attempt[] {
    return this.#book.rows.get(id)?.attempts ?? []
  }

  counts(): TypeCounts[] {
    this.#book.tidy()
    const found = new Map<string, { queue: string; type: string; counts: Record<string, number> }>()
    for (const row of this.#book.rows.values()) {
      const key = JSON.stringify([row.queue, row.envelope.type])
      const entry = found.get(key) ?? { queue: row.queue, type: row.envelope.type, counts: {} }
      const word = this.#word(row)
      entry.counts[word] = (entry.counts[word] ?? 0) + 1
      found.set(key, entry)
    }
    return [...found.values()]
  }

  schedule(name: string): ScheduleRecord | undefined {
    return this.#book.schedules.get(name)
  }

  schedules(): (ScheduleRecord & { readonly name: string })[] {
    return [...this.#book.schedules].map(([name, record]) => ({ name, ...record }))
  }

  leave(worker: string): void {
    this.#book.workers.delete(worker)
  }

  workers(): (WorkerRecord & { readonly seenAt: At })[] {
    return [...this.#book.workers.values()]
  }

  input(id: string): string | undefined {
    this.#book.tidy()
    return this.#book.rows.get(id)?.envelope.input
  }

  gate(key: string): GateView | undefined {
    const gate = this.#book.gates.get(key)
    return gate === undefined || gate.verdict() !== undefined ? undefined : { key, ...gate.view() }
  }

  #word(row: Row) {
    return itemState({ ...viewOf(row), attempt: row.envelope.attempt }, this.#book.now())
  }
}
