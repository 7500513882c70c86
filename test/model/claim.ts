import { expiredShare } from '../../src/backends/shared/expired-share.js'
import type { At, Ms } from '../../src/core/time/time.js'
import { isExpired } from '../../src/ports/envelope.js'
import type { ClaimedItem, Lease } from '../../src/ports/item.js'
import type { ClaimReply, ClaimRequest, LeaseStatus, Room, WorkerRecord } from '../../src/ports/ledger.js'
import type { Book } from './book.js'
import { inOrderOfClaim, type Row } from './row.js'

/** Frees what has lapsed, then leases what is ready, queue by queue. */
export function claim(book: Book, ask: ClaimRequest): ClaimReply {
  book.tidy()
  const now = book.now()
  const asked = new Set(ask.queues.map((from) => from.queue))
  const { removed } = book
  book.removed = 0
  const crashed: string[] = []
  for (const row of book.rows.values())
    if (asked.has(row.queue) && reclaim(row, now) === 'crashed') crashed.push(row.envelope.type)
  const items: ClaimedItem[] = []
  let { rooms } = ask
  for (const { queue, max } of ask.queues) {
    const { expired, others } = claimable(readyIn(book, queue), rooms, max, now)
    for (const row of [...expired, ...others]) items.push(lease(book, row, ask))
    rooms = roomLeft(rooms, others)
  }
  const later = [...book.rows.values()].filter(
    (row) => asked.has(row.queue) && row.status === 'pending' && row.dueAt > now && row.dueAt !== Infinity,
  )
  return {
    items,
    more: ask.queues.some(({ queue, max }) => {
      const { expired, others } = claimable(readyIn(book, queue), ask.rooms, max, now)
      return expired.length + others.length > 0
    }),
    ...(later.length === 0 ? {} : { nextDueAt: Math.min(...later.map((row) => row.dueAt)) }),
    now: now,
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

/**
 * With rooms: what has expired, by deadline and arrival, up to its share of `max`; then what the rooms have place for. Without:
 * everything, in its order.
 */
function claimable(rows: readonly Row[], rooms: readonly Room[] | undefined, max: number, now: At) {
  if (rooms === undefined) return { expired: [], others: rows.slice(0, max) }
  const byDeadline = (a: Row, b: Row) => a.envelope.deadline! - b.envelope.deadline! || a.arrival - b.arrival
  const late = rows.filter(({ envelope }) => isExpired(envelope, now))
  const expired = late.toSorted(byDeadline).slice(0, expiredShare(max))
  const others = rows.filter((row) => !expired.includes(row))
  return { expired, others: takeable(others, rooms).slice(0, max - expired.length) }
}

/** Those of the rows, in their order, that the rooms have place for. */
function takeable(rows: readonly Row[], rooms: readonly Room[]): readonly Row[] {
  const left = rooms.map((room) => room.max)
  return rows.filter((row) => {
    const room = rooms.findIndex(({ types }) => types.includes(row.envelope.type))
    if (room < 0 || left[room]! <= 0) return false
    left[room]! -= 1
    return true
  })
}

/** The rooms once these rows are in them. */
function roomLeft(rooms: readonly Room[] | undefined, rows: readonly Row[]): readonly Room[] | undefined {
  return rooms?.map(({ types, max }) => ({
    types,
    max: max - rows.filter(({ envelope }) => types.includes(envelope.type)).length,
  }))
}

/** The lease ended by expiry: pending again, in its old place. */
function reclaim(row: Row, now: At): 'crashed' | undefined {
  if (row.lease === undefined || row.lease.until > now) return undefined
  const wasRunning = row.lease.running
  row.lapses += 1
  if (wasRunning) row.crashes += 1
  row.status = 'pending'
  row.lease = undefined
  row.runAt = undefined
  return wasRunning ? 'crashed' : undefined
}

function lease(book: Book, row: Row, ask: ClaimRequest): ClaimedItem {
  const now = book.now()
  book.tokens += 1
  row.status = 'running'
  row.hold = undefined
  row.fence += 1
  row.deliveries += 1
  row.runAt = now
  row.lease = { token: `model token ${book.tokens}`, worker: ask.worker, until: now + ask.leaseMs, running: false }
  const { envelope, queue, fence, lapses, crashes, deliveries, gate } = row
  const { token, until } = row.lease
  return {
    lease: { id: envelope.id, queue, token, fence, until },
    envelope,
    lapses,
    crashes,
    deliveries,
    ...(gate === undefined ? {} : { gate }),
    ...(row.cancelled === undefined ? {} : { cancelReason: row.cancelled }),
  }
}

export function extend(
  book: Book,
  held: readonly { readonly lease: Lease; readonly running: boolean; readonly progress?: string }[],
  leaseMs: Ms,
  me: WorkerRecord,
): LeaseStatus[] {
  const now = book.now()
  book.workers.set(me.id, { ...me, seenAt: now })
  return held.map(({ lease, running, progress }) => {
    const row = book.heldBy(lease)
    if (row?.lease === undefined) return 'lost'
    row.lease.until = now + leaseMs
    row.lease.running = running
    if (progress !== undefined) row.progress = progress
    return row.cancelled === undefined ? 'held' : 'cancelled'
  })
}
