import type { Ledger } from '../../ports/ledger.js'
import { isOnlyLogged } from '../shared/is-only-logged.js'
import { claimItems } from './commit/claim.js'
import { commitBatch } from './commit/commit.js'
import { extendLeases } from './commit/lease.js'
import { groupValue, singleGroup } from './groups/group-table.js'
import type { ItemTable } from './items/item-table.js'
import { viewOf } from './items/item-view.js'
import { inspectTable } from './read/inspect.js'
import type { Time } from './time.js'

/**
 * The native ledger of the memory backend. Every call does its work in one turn before it returns its promise, so all of
 * them are atomic. `checkMode` throws if the queues of the backend are used as plain ports.
 */
export function memoryLedger(table: ItemTable, maxItemBytes: number, time: Time, checkMode: () => void): Ledger {
  const { queues } = table.context
  const { listeners } = table.context.notifier
  return {
    atomic: true,
    limits: Object.freeze({ maxItemBytes, maxDelayMs: Number.POSITIVE_INFINITY }),
    claim: async (ask) => {
      if (ask.queues.length > 0) checkMode()
      return claimItems(table, ask, time)
    },
    extend: async (held, leaseMs, me) => extendLeases(table, held, leaseMs, me, maxItemBytes, time),
    removeWorker: async (worker) => table.workers.left(worker),
    commit: async (batch) => {
      if (!isOnlyLogged(batch)) checkMode()
      return commitBatch(table, batch, maxItemBytes, time)
    },
    read: async (ids) => {
      const now = time.wall()
      table.pauses.freeAll(now)
      for (const queue of queues.all()) queue.promote(now)
      return ids.map((id) => {
        const record = table.item(id, now)
        if (record === undefined) return undefined
        table.seen(record)
        return viewOf(record)
      })
    },
    groups: async (ids) => {
      const now = time.wall()
      return ids.map((id) => {
        const single = table.singleItem(id, now)
        if (single !== undefined) {
          table.seen(single)
          return singleGroup(single)
        }
        const group = table.group(id, now)
        if (group === undefined) return undefined
        table.seen(group)
        return { ...groupValue(group), open: group.open }
      })
    },
    schedules: async (names) => names.map((name) => table.schedules.get(name)),
    watch: async (inbox, { itemIds, groupIds }) => {
      const now = time.wall()
      for (const id of itemIds) {
        const record = table.item(id, now)
        record?.watch(inbox)
        // It has ended, and its watcher is about to read it.
        if (record?.hasEnded === true) table.await(record, now)
      }
      // The caller reads again afterwards: a group that has closed needs no watcher.
      for (const id of groupIds) if (table.singleItem(id, now)?.single !== 'closed') table.group(id, now)?.watch(inbox)
    },
    onReady: (wake) => listeners.onReady(wake),
    onInbox: (inbox, listener) => listeners.onInbox(inbox, listener),
    paused: async () => {
      const all = [...table.pauses.all()]
      const named = (which: 'queue' | 'type') => all.filter(({ what }) => what === which).map(({ name }) => name)
      return { queues: named('queue'), types: named('type') }
    },
    inspect: inspectTable(table, time),
    // On a file, accepted work outlives the process: the process may end.
    ...(queues.file === undefined ? { openCount: () => table.open } : undefined),
  }
}
