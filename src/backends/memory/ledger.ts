import type { Ledger } from '../../ports/ledger.js'
import type { Book } from './book.js'
import { claimItems } from './claim.js'
import { commitBatch } from './commit.js'
import { extendLeases } from './extend.js'
import { groupValue, loneGroup } from './group-record.js'
import { inspectBook } from './inspect.js'
import { scheduleOf } from './schedules.js'
import type { Time } from './time.js'
import { viewOf } from './view-of.js'

/**
 * The native ledger of the memory backend. Every call does its work in one turn before it returns its promise, so that all
 * of them are atomic, and none of them can be half done.
 */
export function memoryLedger(book: Book, maxItemBytes: number, time: Time): Ledger {
  const { signals, queues } = book.shelf
  return {
    atomic: true,
    limits: Object.freeze({ maxItemBytes, maxDelayMs: Number.POSITIVE_INFINITY }),
    claim: async (ask) => claimItems(book, ask, time),
    extend: async (held, leaseMs, me) => extendLeases(book, held, leaseMs, me, maxItemBytes, time),
    leave: async (worker) => book.workers.left(worker),
    commit: async (batch) => commitBatch(book, batch, maxItemBytes, time),
    read: async (ids) => {
      const now = time.wall()
      book.pauses.freeAll(now)
      for (const queue of queues.all()) queue.promote(now)
      return ids.map((id) => {
        const record = book.item(id, now)
        if (record === undefined) return undefined
        book.seen(record)
        return viewOf(book, record, now)
      })
    },
    groups: async (ids) => {
      const now = time.wall()
      return ids.map((id) => {
        const lone = book.loneItem(id, now)
        if (lone !== undefined) {
          book.seen(lone)
          return loneGroup(lone)
        }
        const group = book.group(id, now)
        if (group === undefined) return undefined
        book.seen(group)
        return { ...groupValue(group), open: group.open }
      })
    },
    schedules: async (names) => {
      const now = time.wall()
      return names.map((name) => scheduleOf(book, name, now))
    },
    watch: async (inbox, { ids, groups }) => {
      const now = time.wall()
      for (const id of ids) {
        const record = book.item(id, now)
        record?.watch(inbox)
        // It has ended, and is about to be read.
        if (record?.hasEnded === true) book.await(record, now)
      }
      // Whoever asks reads again afterwards: a group that has closed needs no watcher.
      for (const id of groups) if (book.loneItem(id, now)?.lone !== 'closed') book.group(id, now)?.watch(inbox)
    },
    onReady: (wake) => signals.onReady(wake),
    onInbox: (inbox, hear) => signals.onInbox(inbox, hear),
    paused: async () => {
      const all = [...book.pauses.all()]
      const named = (which: 'queue' | 'type') => all.filter(({ what }) => what === which).map(({ name }) => name)
      return { queues: named('queue'), types: named('type') }
    },
    inspect: inspectBook(book, time),
    // On a file, what was accepted outlives the process: nothing is owed then.
    ...(queues.file === undefined ? { unfinished: () => book.open } : undefined),
  }
}
