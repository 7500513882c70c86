import { journalRecord } from './journal.js'
import type { Message } from './message.js'
import { DEFAULT_QUEUE, type Op, type PutFields, type Stored } from './stored.js'

/** Messages per record of a rewritten journal. */
const STEP_OPS = 256
const PIECE = 1 << 20

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** A message as the file knows it, without what has its usual value: most messages have nothing but a body and a due time. */
export function putFields(queue: string, message: Message): PutFields {
  const { no, body, dueAt, priority, dedupeKey, deliveries, fence, lapses, crashes, hold, gate, lease } = message
  const fields: Writable<PutFields> = { no, body, dueAt: dueAt === Number.POSITIVE_INFINITY ? null : dueAt }
  if (queue !== DEFAULT_QUEUE) fields.queue = queue
  if (priority !== 0) fields.priority = priority
  if (dedupeKey !== undefined) fields.dedupeKey = dedupeKey
  if (deliveries !== 0) fields.deliveries = deliveries
  if (fence !== deliveries) fields.fence = fence
  if (lapses !== 0) fields.lapses = lapses
  if (crashes !== 0) fields.crashes = crashes
  if (hold !== undefined) fields.hold = hold
  if (gate !== undefined) fields.gate = gate
  if (lease !== undefined) fields.lease = lease.running ? 'running' : 'taken'
  return fields
}

/** The records of a rewritten journal, in pieces of about a megabyte. */
export function* journalPieces(stored: Stored): IterableIterator<string> {
  let piece = ''
  let step: Op[] = []
  let stepSize = 0
  for (const op of opsOf(stored)) {
    step.push(op)
    stepSize += op[0] === 'put' ? op[1].body.length : 0
    if (step.length < STEP_OPS && stepSize < PIECE) continue
    piece += journalRecord(step)
    step = []
    stepSize = 0
    if (piece.length < PIECE) continue
    yield piece
    piece = ''
  }
  if (step.length > 0) piece += journalRecord(step)
  if (piece !== '') yield piece
}

function* opsOf(stored: Stored): IterableIterator<Op> {
  for (const { lease, hold, gate, dedupeKey, dueAt, ...message } of stored.messages.values()) {
    yield [
      'put',
      {
        ...message,
        dueAt: dueAt === Number.POSITIVE_INFINITY ? null : dueAt,
        ...(dedupeKey === undefined ? {} : { dedupeKey }),
        ...(lease === 'none' ? {} : { lease }),
        ...(hold === undefined ? {} : { hold }),
        ...(gate === undefined ? {} : { gate }),
      },
    ]
  }
  for (const { queue, no, body, error } of stored.dead.values()) yield ['bury', queue, no, body, error]
  for (const { prefix, gate } of stored.gates.values()) yield ['gate', prefix, { ...gate, waiting: [...gate.waiting] }]
  for (const { prefix, what, name } of stored.pauses.values()) yield ['pause', prefix, what, name]
}
