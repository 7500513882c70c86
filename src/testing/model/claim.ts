import type { At, Ms } from '../../core/time.js'
import type { Claimed, Lease } from '../../ports/item.js'
import type { ClaimAsk, ClaimReply, Worker } from '../../ports/ledger.js'
import type { Book } from './book.js'
import { inOrderOfClaim, type Row } from './row.js'

/** Frees what has lapsed, then leases what is ready, queue by queue. */
export function claim(book: Book, ask: ClaimAsk): ClaimReply {
  book.tidy()
  const now = book.now()
  const asked = new Set(ask.from.map((from) => from.queue))
  const { removed } = book
  book.removed = 0
  const crashed: string[] = []
  for (const row of book.rows.values())
    if (asked.has(row.queue) && reclaim(row, now) === 'crashed') crashed.push(row.envelope.type)
  const items: Claimed[] = []
  for (const { queue, max } of ask.from)
    for (const row of readyIn(book, queue).slice(0, max)) items.push(lease(book, row, ask, items.length < ask.startNow))
  const later = [...book.rows.values()].filter(
    (row) => asked.has(row.queue) && row.status === 'pending' && row.dueAt > now && row.dueAt !== Infinity,
  )
  return {
    items,
    more: [...asked].some((queue) => readyIn(book, queue).length > 0),
    ...(later.length === 0 ? {} : { nextDueAt: Math.min(...later.map((row) => row.dueAt)) }),
    at: now,
    ...(crashed.length === 0 ? {} : { crashed }),
    ...(removed === 0 ? {} : { removed }),
  }
}

/** What a claim would find now, in its order. */
export function readyIn(book: Book, queue: string): readonly Row[] {
  const now = book.now()
  return [...book.rows.values()]
    .filter((row) => row.queue === queue && row.status === 'pending' && row.dueAt <= now && !book.isPaused(row))
    .toSorted(inOrderOfClaim)
}

/** The lease ended by expiry: pending again, in its old place. */
function reclaim(row: Row, now: At): 'crashed' | undefined {
  if (row.lease === undefined || row.lease.until > now) return undefined
  const hasStarted = row.lease.started
  row.lapses += 1
  if (hasStarted) row.crashes += 1
  row.status = 'pending'
  row.lease = undefined
  row.runAt = undefined
  return hasStarted ? 'crashed' : undefined
}

function lease(book: Book, row: Row, ask: ClaimAsk, started: boolean): Claimed {
  const now = book.now()
  book.tokens += 1
  row.status = 'running'
  row.hold = undefined
  row.fence += 1
  row.deliveries += 1
  row.runAt = started ? now : undefined
  row.lease = { token: `model token ${book.tokens}`, worker: ask.worker, until: now + ask.leaseMs, started }
  const { envelope, queue, fence, lapses, crashes, deliveries, gate } = row
  const { token, until } = row.lease
  return {
    lease: { id: envelope.id, queue, token, fence, until },
    envelope,
    lapses,
    crashes,
    started,
    deliveries,
    ...(gate === undefined ? {} : { gate }),
    ...(row.cancelled === undefined ? {} : { cancelled: row.cancelled }),
  }
}

export function extend(
  book: Book,
  held: readonly { readonly lease: Lease; readonly started: boolean; readonly progress?: string }[],
  leaseMs: Ms,
  me: Worker,
): ('held' | 'lost' | 'cancelled')[] {
  const now = book.now()
  book.workers.set(me.id, { ...me, seenAt: now })
  return held.map(({ lease, started, progress }) => {
    const row = book.heldBy(lease)
    if (row?.lease === undefined) return 'lost'
    row.lease.until = now + leaseMs
    row.lease.started ||= started
    if (started) row.runAt ??= now
    if (progress !== undefined) row.progress = progress
    return row.cancelled === undefined ? 'held' : 'cancelled'
  })
}
