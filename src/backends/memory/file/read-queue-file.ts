import { JOURNAL_HEADER, QueueFileDamagedError, replay } from './journal.js'
import type { QueueFsLike } from './node-fs.js'
import { endLeases, nothingStored, type Stored } from './queue-records.js'
import { readSnapshot } from './snapshot.js'

/** What came of reading the file of a queue. */
export interface ReadQueueFile {
  /** What was in it, as far as it could be read; leases of the dead process have ended. */
  readonly stored: Stored
  /** It is a journal: more can be appended to it. */
  readonly isJournal: boolean
  /** Nothing may be appended before it has been written anew. */
  readonly mustRewrite: boolean
  readonly length: number
  /** What could not be read. */
  readonly damaged: string | undefined
  /** Why something could not be read. A missing file is no error, and neither is a last record that was cut short. */
  readonly error: unknown
}

type Loaded = Omit<ReadQueueFile, 'stored' | 'error'> & { readonly error?: unknown }

const NOTHING: Loaded = { isJournal: false, mustRewrite: false, length: 0, damaged: undefined }

export function readQueueFile(file: string, fs: QueueFsLike): ReadQueueFile {
  const stored = nothingStored()
  let loaded: Loaded
  try {
    // Another program may have replaced the file since it was last open in this process.
    fs.release?.(file)
    loaded = load(file, fs, stored)
  } catch (error) {
    loaded = { ...NOTHING, mustRewrite: true, error }
  }
  endLeases(stored)
  return { error: undefined, ...loaded, stored }
}

function load(file: string, fs: QueueFsLike, stored: Stored): Loaded {
  const pieces = piecesOf(file, fs)
  const first = pieces.next()
  if (first.done === true) return NOTHING
  const start = first.value
  if (start.startsWith(JOURNAL_HEADER)) return loadJournal(file, start, pieces, stored)
  const text = [start, ...pieces].join('')
  // A process that died while it created the file leaves a part of the header.
  if (JOURNAL_HEADER.startsWith(text)) return { ...NOTHING, mustRewrite: true }
  return loadSnapshot(file, text, stored)
}

function loadJournal(file: string, start: string, rest: Iterable<string>, stored: Stored): Loaded {
  let { length } = start
  const { isTorn, damaged } = replay(records(), stored)
  const loaded = { isJournal: true, mustRewrite: isTorn, length, damaged }
  if (damaged === undefined) return loaded
  const what = `a record in the middle does not match its checksum. The records before it were read; the next write saves the rest as ${file}.damaged.`
  return { ...loaded, error: new QueueFileDamagedError(file, what) }

  function* records(): IterableIterator<string> {
    yield start.slice(JOURNAL_HEADER.length)
    for (const piece of rest) {
      length += piece.length
      yield piece
    }
  }
}

function loadSnapshot(file: string, text: string, stored: Stored): Loaded {
  const loaded = { ...NOTHING, mustRewrite: true }
  const value = parsed(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const what = `it is neither a journal nor a snapshot of a queue. The queue starts empty; with the default fs the next write saves the old file as ${file}.damaged.`
    return { ...loaded, damaged: text, error: new QueueFileDamagedError(file, what) }
  }
  if (readSnapshot(value, stored)) return loaded
  const what = 'some of its items have no body. The others were read.'
  return { ...loaded, damaged: text, error: new QueueFileDamagedError(file, what) }
}

function* piecesOf(file: string, fs: QueueFsLike): IterableIterator<string> {
  if (fs.readPieces !== undefined) {
    yield* fs.readPieces(file) ?? []
    return
  }
  const text = fs.readFile(file)
  if (text !== undefined) yield text
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
