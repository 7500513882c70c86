import { isWellFormed } from '../../src/core/text/well-formed.js'
import type { At } from '../../src/core/time/time.js'
import type { ItemQuery } from '../../src/ports/inspect.js'
import type { Ledger, Notification } from '../../src/ports/ledger.js'
import { LedgerModel } from './ledger-model.js'

/**
 * The model as a ledger: the conformance suite runs on it too, so that the laws which ledgers are compared with are
 * themselves held to the clauses.
 */
export function modelLedger(now: () => At): Ledger {
  const model = new LedgerModel(now)
  const wakes = new Set<(queue: string, dueAt?: At) => void>()
  const inboxes = new Set<{ readonly inbox: string; readonly hear: (what: Notification) => void }>()
  const tell = () => {
    const { ready, inboxes: heard } = model.takeSignals()
    for (const { queue, dueAt } of ready)
      for (const wake of wakes) unharmed(() => wake(queue, dueAt > now() ? dueAt : undefined))
    for (const { to, what } of heard)
      for (const { inbox, hear } of inboxes) if (inbox === to) unharmed(() => hear(what))
  }
  const subscribe = <T>(set: Set<T>, one: T) => {
    set.add(one)
    return () => void set.delete(one)
  }
  return {
    atomic: true,
    limits: { maxItemBytes: 1_048_576, maxDelayMs: Infinity },
    claim: async (ask) => model.claim(ask),
    extend: async (held, leaseMs, me) => model.extend(held, leaseMs, me),
    removeWorker: async (worker) => model.leave(worker),
    commit: async (batch) => {
      const results = model.commit(batch)
      tell()
      return results
    },
    read: async (ids) => model.read(ids),
    groups: async (ids) => model.groups(ids),
    schedules: async (names) => names.map((name) => model.schedule(name)),
    watch: async (inbox, what) => model.watch(inbox, what),
    onReady: (wake) => subscribe(wakes, wake),
    onInbox: (inbox, hear) => subscribe(inboxes, { inbox, hear }),
    paused: async () => model.paused(),
    inspect: {
      list: async ({ limit, cursor, ...query }: ItemQuery) => {
        return pageOf(model.list(query), limit, cursor)
      },
      summaries: async (ids) => model.summaries(ids),
      idsStartingWith: async (prefix, limit) => ({
        ids: model
          .list({})
          .map(({ envelope }) => envelope.id)
          .filter((id) => isWellFormed(prefix) && id.startsWith(prefix))
          .slice(0, limit),
        isComplete: true,
      }),
      openCounts: async (ids) => model.groups(ids).map((group) => group?.open),
      count: async (query) => model.count(query),
      throughput: async (windowMs) => model.flow(windowMs),
      failures: async (limit) => model.failures(limit),
      stuckItems: async ({ limit, cursor }) => pageOf(model.stuckItems(), limit, cursor),
      attempts: async (id) => model.attempts(id),
      counts: async () => model.counts(),
      workers: async () => model.workers(),
      schedules: async () => model.schedules(),
      input: async (id) => model.input(id),
      gate: async (key) => model.gate(key),
      log: async (limit) => model.log.toReversed().slice(0, limit),
    },
  }
}

function pageOf<T>(all: readonly T[], limit: number, cursor: string | undefined) {
  const from = cursor === undefined ? 0 : Number(cursor)
  const items = all.slice(from, from + limit)
  return from + limit < all.length ? { items, next: String(from + limit) } : { items }
}

/** A listener that throws is its owner's affair. */
function unharmed(tell: () => void): void {
  try {
    tell()
  } catch {}
}
