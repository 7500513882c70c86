import { crc32 } from 'node:zlib'
import { MillraceError, type WithCause } from '../../../core/error.js'
import { isWellFormed } from '../../../core/text/well-formed.js'
import { applyOp, type Op, type Stored } from './queue-records.js'

/** How every journal begins. A file that begins otherwise is a snapshot, or not ours. */
export const JOURNAL_HEADER = 'millrace-queue 1\n'

/**
 * One record: a checksum, the changes of one step, and a newline, which the text before it never contains. The changes of a
 * step share a record, so that a write that was cut short undoes the whole step and never half of it.
 */
export function journalRecord(ops: readonly Op[]): string {
  const text = (ops.length === 1 ? barePush(ops[0]!) : undefined) ?? JSON.stringify(ops)
  return `${checksum(text)} ${text}\n`
}

/** A push of a body and nothing else, as it is: by far the most frequent change, and JSON would copy it once more. */
function barePush(op: Op): string | undefined {
  if (op[0] !== 'put') return undefined
  const { no, body, dueAt } = op[1]
  if (Object.keys(op[1]).length !== BARE_FIELDS) return undefined
  // A single surrogate would be replaced when it is written as UTF-8; JSON escapes it.
  const isSafe = !body.includes('\n') && isWellFormed(body)
  return isSafe && dueAt !== null ? `${BARE_PUSH}${no} ${dueAt} ${body}` : undefined
}

const BARE_PUSH = 'put '
/** Number, body and due time. */
const BARE_FIELDS = 3

/** A queue file is damaged in the middle. What comes before the damage was read; the rest is saved in another file. */
export class QueueFileDamagedError extends MillraceError {
  constructor(file: string, what: string, options?: WithCause) {
    super('QUEUE_FILE_DAMAGED', `${file}: ${what}`, { ...options, facts: { file } })
  }
}

/** What came of reading a journal. */
export interface Replayed {
  /** The file ends in a record that was cut short: the process died while it wrote. */
  readonly isTorn: boolean
  /** What could not be read, from the first bad record on. */
  readonly damaged: string | undefined
}

/** Applies a journal, given as pieces of text after its header, to `stored`. */
export function replay(pieces: Iterable<string>, stored: Stored): Replayed {
  let rest = ''
  let bad: string | undefined
  for (const piece of pieces) {
    if (bad !== undefined) {
      bad += piece
      continue
    }
    rest += piece
    let from = 0
    for (let end = rest.indexOf('\n', from); end >= 0; end = rest.indexOf('\n', from)) {
      const ops = readRecord(rest.slice(from, end))
      if (ops === undefined) {
        bad = rest.slice(from)
        break
      }
      for (const op of ops) applyOp(stored, op)
      from = end + 1
    }
    rest = bad === undefined ? rest.slice(from) : ''
  }
  if (bad === undefined) return { isTorn: rest !== '', damaged: undefined }
  // A bad record with nothing behind it is one that was cut short, too: the disk may write its blocks in any order.
  const isLast = bad.indexOf('\n') === bad.length - 1
  return { isTorn: true, damaged: isLast ? undefined : bad }
}

function readRecord(line: string): readonly Op[] | undefined {
  const text = line.slice(9)
  if (line[8] !== ' ' || checksum(text) !== line.slice(0, 8)) return undefined
  // The checksum holds, so this is what we wrote.
  return text.startsWith(BARE_PUSH) ? [readBarePush(text)] : (JSON.parse(text) as readonly Op[])
}

function readBarePush(text: string): Op {
  const afterNo = text.indexOf(' ', BARE_PUSH.length)
  const afterDue = text.indexOf(' ', afterNo + 1)
  const no = Number(text.slice(BARE_PUSH.length, afterNo))
  return ['put', { no, dueAt: Number(text.slice(afterNo + 1, afterDue)), body: text.slice(afterDue + 1) }]
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, '0')
}

/** Messages per record of a rewritten journal. */
const STEP_OPS = 256
const PIECE = 1 << 20

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
  let origin: string | undefined
  for (const { lease, hold, gate, dedupeKey, dueAt, note, starts, ...rest } of stored.messages.values()) {
    const { origin: own, id, ...message } = rest
    if (own !== undefined && own !== origin) {
      origin = own
      yield ['origin', own]
    }
    yield [
      'put',
      {
        ...message,
        dueAt: dueAt === Number.POSITIVE_INFINITY ? null : dueAt,
        ...(dedupeKey === undefined ? {} : { dedupeKey }),
        ...(lease === 'none' ? {} : { lease }),
        ...(id === undefined ? {} : { id }),
        ...(starts === 0 ? {} : { starts }),
        ...(note === undefined ? {} : { note }),
        ...(hold === undefined ? {} : { hold }),
        ...(gate === undefined ? {} : { gate }),
      },
    ]
  }
  for (const { queue, no, body, error, letter } of stored.dead.values())
    yield letter === undefined ? ['bury', queue, no, body, error] : ['bury', queue, no, body, error, letter]
  for (const gate of stored.gates.values()) yield ['gate', { ...gate, waiting: [...gate.waiting] }]
  for (const { what, name } of stored.pauses.values()) yield ['pause', what, name]
}
