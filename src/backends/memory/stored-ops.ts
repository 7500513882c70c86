import { journalRecord } from './journal.js'
import type { Message } from './message.js'
import { DEFAULT_QUEUE, type Op, type PutFields, type Stored } from './stored.js'

/** Messages per record of a rewritten journal. */
const STEP_OPS = 256
const PIECE = 1 << 20

/** A message as the file knows it, without what has its usual value. */
export function putFields(queue: string, message: Message): PutFields {
  const { no, body, dueAt, priority, dedupeKey, deliveries, fence, lapses, crashes, hold, gate } = message
  return {
    no,
    body,
    dueAt: dueAt === Number.POSITIVE_INFINITY ? null : dueAt,
    ...(queue === DEFAULT_QUEUE ? undefined : { queue }),
    ...(priority === 0 ? undefined : { priority }),
    ...(dedupeKey === undefined ? undefined : { dedupeKey }),
    ...(deliveries === 0 ? undefined : { deliveries }),
    ...(fence === deliveries ? undefined : { fence }),
    ...(lapses === 0 ? undefined : { lapses }),
    ...(crashes === 0 ? undefined : { crashes }),
    ...(message.lease === undefined ? undefined : { lease: message.lease.started ? 'started' : 'taken' }),
    ...(hold === undefined ? undefined : { hold }),
    ...(gate === undefined ? undefined : { gate }),
  }
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
