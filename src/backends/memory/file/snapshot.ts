import type { At } from '../../../core/time/time.js'
import type { Hold } from '../../../ports/item.js'
import type { GateDecision } from '../groups/gate-table.js'
import type { LetterFacts } from '../queue/dead-letters.js'
import {
  applyOp,
  DEFAULT_QUEUE,
  type GateFields,
  type Stored,
  type StoredMessage,
  type StoredPause,
} from './queue-records.js'

/**
 * The whole state as one JSON object. `items` and `dead` are the format that the file queue of `@ayepi/work` writes, so that
 * its files can be taken over; the other fields are ours and may be missing.
 */
interface SnapshotItem {
  readonly body: string
  /** When it is visible; for a leased one, when the lease ends. */
  readonly visibleAt: At | null
  /** The number of the delivery that is going on, or of the next one. */
  readonly attempt: number
  readonly leaseToken?: string
  readonly dedupeKey?: string
  readonly dueAt?: At | null
  readonly queue?: string
  readonly priority?: number
  readonly fence?: number
  readonly lapses?: number
  readonly crashes?: number
  readonly running?: true
  readonly hold?: Hold
  readonly gate?: GateDecision
  readonly origin?: string
  readonly no?: number
  readonly id?: string
  readonly starts?: number
  readonly note?: string
}

/** Adds what a snapshot holds to `stored`. False: parts of it made no sense and were left out. */
export function readSnapshot(snapshot: object, stored: Stored): boolean {
  const { items, dead, gates, pauses } = snapshot as Record<string, unknown>
  let no = 0
  let isWhole = true
  for (const item of listOf(items)) {
    const own = fieldsOf(item)['no']
    // The number is a part of its id. Files of others do not tell it.
    no = typeof own === 'number' && own > no ? own : no + 1
    const message = messageOf(item, no)
    if (message === undefined) isWhole = false
    else stored.messages.set(no, message)
  }
  for (const entry of listOf(dead)) {
    const { body, error, queue, letter } = fieldsOf(entry)
    if (typeof body !== 'string' || typeof error !== 'string') isWhole = false
    else stored.dead.set(++no, { no, body, error, queue: textOr(queue, DEFAULT_QUEUE), letter: letterOf(letter) })
  }
  // These two are only ever written by us, after a checksum-free but complete write: they are taken as they are.
  for (const gate of listOf(gates) as GateFields[]) applyOp(stored, ['gate', gate])
  for (const { what, name } of listOf(pauses) as StoredPause[]) applyOp(stored, ['pause', what, name])
  return isWhole
}

/** The snapshot as text. Messages are in the order of their arrival. */
export function writeSnapshot(stored: Stored): string {
  const messages = [...stored.messages.values()].sort((a, b) => a.no - b.no)
  const gates = [...stored.gates.values()].map((gate) => ({ ...gate, waiting: [...gate.waiting] }))
  const pauses = [...stored.pauses.values()]
  return JSON.stringify({
    items: messages.map(itemOf),
    dead: [...stored.dead.values()].map(({ body, error, queue, letter }) => ({
      body,
      error,
      ...(queue === DEFAULT_QUEUE ? {} : { queue }),
      ...(letter === undefined ? {} : { letter }),
    })),
    ...(gates.length === 0 ? {} : { gates }),
    ...(pauses.length === 0 ? {} : { pauses }),
  })
}

function itemOf(message: StoredMessage): SnapshotItem {
  const isLeased = message.lease !== 'none'
  return {
    body: message.body,
    visibleAt: message.dueAt,
    attempt: isLeased ? message.deliveries : message.deliveries + 1,
    // Only that there was a lease matters to a reader: its holder is gone.
    ...(isLeased ? { leaseToken: 'taken' } : {}),
    ...(message.dedupeKey === undefined ? {} : { dedupeKey: message.dedupeKey }),
    ...(isLeased ? { dueAt: message.dueAt } : {}),
    ...(message.queue === DEFAULT_QUEUE ? {} : { queue: message.queue }),
    ...(message.priority === 0 ? {} : { priority: message.priority }),
    ...(message.fence === message.deliveries ? {} : { fence: message.fence }),
    ...(message.lapses === 0 ? {} : { lapses: message.lapses }),
    ...(message.crashes === 0 ? {} : { crashes: message.crashes }),
    ...(message.lease === 'running' ? { running: true } : {}),
    ...(message.hold === undefined ? {} : { hold: message.hold }),
    ...(message.gate === undefined ? {} : { gate: message.gate }),
    ...(message.origin === undefined ? {} : { origin: message.origin, no: message.no }),
    ...(message.id === undefined ? {} : { id: message.id }),
    ...(message.starts === 0 ? {} : { starts: message.starts }),
    ...(message.note === undefined ? {} : { note: message.note }),
  }
}

function messageOf(item: unknown, no: number): StoredMessage | undefined {
  const read = fieldsOf(item)
  if (typeof read['body'] !== 'string') return undefined
  const isLeased = typeof read['leaseToken'] === 'string'
  const attempt = Math.max(1, numberOr(read['attempt'], 1))
  const deliveries = isLeased ? attempt : attempt - 1
  // The end of a lease says nothing about the due time: without a due time, the item is due immediately.
  const dueAt = isLeased ? (read['dueAt'] === undefined ? 0 : read['dueAt']) : read['visibleAt']
  return {
    no,
    queue: textOr(read['queue'], DEFAULT_QUEUE),
    body: read['body'],
    dedupeKey: typeof read['dedupeKey'] === 'string' ? read['dedupeKey'] : undefined,
    priority: numberOr(read['priority'], 0),
    dueAt: dueAt === null ? Number.POSITIVE_INFINITY : numberOr(dueAt, 0),
    deliveries,
    fence: numberOr(read['fence'], deliveries),
    lapses: numberOr(read['lapses'], 0),
    crashes: numberOr(read['crashes'], 0),
    id: typeof read['id'] === 'string' ? read['id'] : undefined,
    starts: numberOr(read['starts'], 0),
    note: typeof read['note'] === 'string' ? read['note'] : undefined,
    origin: typeof read['origin'] === 'string' ? read['origin'] : undefined,
    lease: isLeased ? (read['running'] === true ? 'running' : 'taken') : 'none',
    hold: holdOf(read['hold']),
    gate: decisionOf(read['gate']),
  }
}

function holdOf(value: unknown): Hold | undefined {
  const { by, key } = fieldsOf(value)
  if (typeof key !== 'string') return undefined
  return by === 'gate' || by === 'pause' || by === 'limit' ? { by, key } : undefined
}

function decisionOf(value: unknown): GateDecision | undefined {
  const { met } = fieldsOf(value)
  return typeof met === 'boolean' ? { met } : undefined
}

function letterOf(value: unknown): LetterFacts | undefined {
  const { id, at, detail } = fieldsOf(value)
  if (typeof id !== 'string' || typeof at !== 'number') return undefined
  return typeof detail === 'string' ? { id, at, detail } : { id, at }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function numberOr(value: unknown, fallback: number): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : fallback
}

function textOr(value: unknown, fallback: string): string {
  return typeof value === 'string' ? value : fallback
}
