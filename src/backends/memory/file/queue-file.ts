import { dirname, resolve } from 'node:path'
import { functionOption, OptionError, OptionTypeError, oneOfOption, stringOption } from '../../../core/options.js'
import type { GateRecord } from '../groups/gate-table.js'
import type { DeadLettered, DeadLog, LetterFacts } from '../queue/dead-letters.js'
import type { Message } from '../queue/message.js'
import type { ChangeLog } from '../queue/message-queue.js'
import { JOURNAL_HEADER, journalPieces, journalRecord } from './journal.js'
import { nodeQueueFs, type QueueFsLike } from './node-fs.js'
import { type Op, putFields, type Stored } from './queue-records.js'
import { readQueueFile } from './read-queue-file.js'
import { writeSnapshot } from './snapshot.js'

/** Where and how a memory queue survives its process. */
export interface MemoryQueuePersistence {
  /** Persist here. Without it the queue lives in memory only. */
  readonly file?: string
  /** The file system. Default: the real one. */
  readonly fs?: QueueFsLike
  /** Called when the file is damaged at opening and when a write fails. Memory stays authoritative; nothing throws. */
  readonly onError?: (error: unknown) => void
  /**
   * `process` (default): what was accepted survives the death of the process. `power`: it also survives a power cut, because
   * file and directory are flushed to the disk before a call returns.
   */
  readonly durability?: 'process' | 'power'
}

/** Below this length a journal is not worth rewriting. */
const MIN_JOURNAL = 1 << 20
/** A journal is rewritten when it is this many times as long as what is alive in it. */
const MAX_GARBAGE = 4
/** And at least this many times as long as the last rewrite made it: a rewrite is paid for by what was appended since. */
const MIN_GROWTH = 2
/** About what a record takes beyond its texts. */
const RECORD_OVERHEAD = 64

/**
 * The file of one or more queues. Changes are noted as they are made and written by `flush`, all in one append: a step is
 * on disk as a whole or not at all. What cannot be written is reported once, and the next flush writes everything anew.
 */
export class QueueFile implements ChangeLog, DeadLog {
  /** What was in the file when it was opened; leases of the dead process have ended. */
  readonly stored: Stored
  readonly #file: string
  readonly #fs: QueueFsLike
  readonly #onError: ((error: unknown) => void) | undefined
  readonly #isPowerSafe: boolean
  /** Everything in memory, for a rewrite. */
  #current: () => Stored
  #ops: Op[] = []
  #isDirty = false
  #isDirectoryReady = false
  /** The file is there and ends in a whole record: appending to it is safe. */
  #isAppendable = false
  #mustRewrite = false
  #journal = 0
  #live = 0
  /** How long the last rewrite made the journal. */
  #rewritten = 0
  #damaged: string | undefined
  /** Of the messages that were put last. */
  #origin: string | undefined

  constructor(options: MemoryQueuePersistence & { readonly file: string }, owner: string) {
    const file = stringOption(`${owner}.file`, options.file)
    const { fs, onError, isPowerSafe } = checkPersistence(options, owner)
    // A program that changes its working directory keeps its file. What a path means to another fs is not known here.
    this.#file = fs === nodeQueueFs ? resolve(file) : file
    this.#fs = fs
    this.#onError = onError
    this.#isPowerSafe = isPowerSafe
    const read = readQueueFile(this.#file, this.#fs)
    this.stored = read.stored
    this.#isAppendable = read.isJournal
    this.#mustRewrite = read.mustRewrite
    this.#journal = read.length
    this.#damaged = read.damaged
    this.#current = () => read.stored
    if (read.error !== undefined) this.#report(read.error)
  }

  /** From now on a rewrite takes the state from here. */
  follow(current: () => Stored): void {
    this.#current = current
  }

  /** A message that was in the file when it was opened is alive in it. */
  restored(message: Message): void {
    this.#count(message, message.body)
  }

  /** Likewise a dead letter. */
  restoredDead(entry: DeadLettered): void {
    this.#live += deadSize(entry)
  }

  put(queue: string, message: Message): void {
    if (message.origin !== this.#origin) {
      this.#origin = message.origin
      this.#note(['origin', message.origin])
    }
    const fields = putFields(queue, message)
    this.#count(message, fields.body)
    this.#note(['put', fields])
  }

  leased(message: Message): void {
    this.#noteNumber(LEASED, message.no)
  }

  running(message: Message): void {
    this.#noteNumber(message.lease?.running === true ? RUNNING : NOT_RUNNING, message.no)
  }

  lapsed(message: Message): void {
    this.#noteNumber(LAPSED, message.no)
  }

  gone(message: Message): void {
    this.#live -= message.journaled
    message.journaled = 0
    this.#noteNumber(GONE, message.no)
  }

  started(message: Message): void {
    this.#noteNumber(STARTED, message.no)
  }

  noted({ no, note }: Message): void {
    if (note !== undefined) this.#note(['note', no, note])
  }

  moved({ no, dueAt, hold, gate }: Message): void {
    const at = dueAt === Number.POSITIVE_INFINITY ? null : dueAt
    this.#note(
      hold === undefined && gate === undefined ? ['move', no, at] : ['move', no, at, hold ?? null, gate ?? null],
    )
  }

  buried(queue: string, no: number, entry: DeadLettered, letter?: LetterFacts): void {
    this.#live += deadSize(entry)
    const { body, error } = entry
    this.#note(letter === undefined ? ['bury', queue, no, body, error] : ['bury', queue, no, body, error, letter])
  }

  exhumed(no: number, entry: DeadLettered): void {
    this.#live -= deadSize(entry)
    this.#note(['exhume', no])
  }

  gateOpened(gate: GateRecord): void {
    this.#note(['gate', { ...gate, waiting: [...gate.waiting] }])
  }

  gateNotified(key: string, member: string, completed: boolean): void {
    this.#note(['gate-member', key, member, completed ? 1 : 0])
  }

  gateClosed(key: string): void {
    this.#note(['ungate', key])
  }

  paused(what: 'queue' | 'type', name: string, isPaused: boolean): void {
    this.#note([isPaused ? 'pause' : 'resume', what, name])
  }

  /** Writes what was noted. Nothing noted, nothing written. */
  flush(): void {
    if (!this.#isDirty) return
    const ops = this.#ops
    this.#ops = []
    this.#isDirty = false
    try {
      this.#makeDirectory()
      if (this.#mustRewrite || this.#fs.append === undefined || this.#isMostlyGarbage()) this.#rewrite()
      else this.#append(ops)
    } catch (error) {
      this.#mustRewrite = true
      this.#report(error)
    }
  }

  /** Lets go of the file. A later change opens it again. */
  close(): void {
    this.#fs.release?.(this.#file)
  }

  #count(message: Message, body: string): void {
    this.#live -= message.journaled
    message.journaled = body.length + RECORD_OVERHEAD
    this.#live += message.journaled
  }

  #note(op: Op): void {
    this.#isDirty = true
    if (this.#fs.append !== undefined) this.#ops.push(op)
  }

  /** Numbers of one kind in a row share one change. */
  #noteNumber(kind: readonly ['lease' | 'lapse' | 'gone' | 'start'] | readonly ['run', 0 | 1], no: number): void {
    this.#isDirty = true
    if (this.#fs.append === undefined) return
    const last = this.#ops.at(-1) as (string | number)[] | undefined
    if (last !== undefined && last[0] === kind[0] && (kind[1] === undefined || last[1] === kind[1])) last.push(no)
    else this.#ops.push([...kind, no] as unknown as Op) // The spread loses which of the tuples it was.
  }

  #append(ops: readonly Op[]): void {
    const record = journalRecord(ops)
    const text = this.#isAppendable ? record : JOURNAL_HEADER + record
    this.#fs.append?.(this.#file, text)
    this.#journal += text.length
    if (this.#isPowerSafe) {
      this.#fs.sync?.(this.#file)
      if (!this.#isAppendable) this.#fs.sync?.(dirname(this.#file))
    }
    this.#isAppendable = true
  }

  #isMostlyGarbage(): boolean {
    if (this.#journal <= MIN_JOURNAL || this.#journal <= MAX_GARBAGE * this.#live) return false
    return this.#journal > MIN_GROWTH * this.#rewritten
  }

  /** The whole state to a temporary file, swapped in by a rename: a reader finds the old file or the new one. */
  #rewrite(): void {
    const temporary = `${this.#file}.tmp`
    let length: number
    try {
      length = this.#writeAnew(temporary)
      this.#fs.rename(temporary, this.#file)
    } catch (error) {
      this.#discard(temporary)
      throw error
    }
    if (this.#isPowerSafe) this.#fs.sync?.(dirname(this.#file))
    this.#journal = length
    this.#rewritten = length
    this.#isAppendable = true
    this.#mustRewrite = false
    this.#origin = undefined
  }

  /** Returns how long the journal is now. */
  #writeAnew(temporary: string): number {
    const stored = this.#current()
    let length = 0
    if (this.#fs.append === undefined) this.#fs.writeFile(temporary, writeSnapshot(stored))
    else {
      this.#keepDamaged()
      this.#fs.writeFile(temporary, JOURNAL_HEADER)
      for (const piece of journalPieces(stored)) {
        this.#fs.append(temporary, piece)
        length += piece.length
      }
    }
    if (this.#isPowerSafe) this.#fs.sync?.(temporary)
    return length
  }

  /** A part of a file is of no use, and on a full disk it is in the way of the next try. */
  #discard(temporary: string): void {
    try {
      this.#fs.remove?.(temporary)
    } catch {
      // The write that failed is what is reported; the next one begins this file anew.
    }
  }

  /** What could not be read may still matter to a person: it is copied before the file is replaced. */
  #keepDamaged(): void {
    if (this.#damaged === undefined) return
    this.#fs.writeFile(`${this.#file}.damaged`, this.#damaged)
    this.#damaged = undefined
  }

  #makeDirectory(): void {
    if (this.#isDirectoryReady) return
    const directory = dirname(this.#file)
    if (directory !== '.') {
      const uppermost = this.#fs.mkdir(directory)
      if (this.#isPowerSafe && typeof uppermost === 'string') this.#syncNames(directory, uppermost)
    }
    this.#isDirectoryReady = true
  }

  /** The name of every new directory is stored in the one above it. That of the file is flushed when there is a file. */
  #syncNames(directory: string, uppermost: string): void {
    const top = resolve(uppermost)
    for (let made = directory; ; made = dirname(made)) {
      this.#fs.sync?.(dirname(made))
      if (resolve(made) === top || dirname(made) === made) return
    }
  }

  #report(error: unknown): void {
    try {
      this.#onError?.(error)
    } catch {
      // An observer that throws must not add an error: the queue goes on.
    }
  }
}

const LEASED = ['lease'] as const
const RUNNING = ['run', 1] as const
const NOT_RUNNING = ['run', 0] as const
const LAPSED = ['lapse'] as const
const GONE = ['gone'] as const
const STARTED = ['start'] as const

/** Checks how a file is to be kept, whether or not there is one: a slip shows on the first day, not with the first file. */
export function checkPersistence(options: MemoryQueuePersistence, owner: string) {
  const fs = options.fs === undefined ? nodeQueueFs : checkedFs(options.fs, `${owner}.fs`)
  const onError =
    options.onError === undefined
      ? undefined
      : functionOption<(error: unknown) => void>(`${owner}.onError`, options.onError)
  const durability = oneOfOption(`${owner}.durability`, options.durability, ['process', 'power'], 'process')
  if (durability === 'power' && fs.sync === undefined) {
    throw new OptionError(`${owner}.durability`, "'process' with an fs that has no sync(path)", 'power')
  }
  return { fs, onError, isPowerSafe: durability === 'power' }
}

function deadSize({ body, error }: DeadLettered): number {
  return body.length + error.length + RECORD_OVERHEAD
}

function checkedFs(fs: QueueFsLike, path: string): QueueFsLike {
  if (typeof fs !== 'object' || fs === null) throw new OptionTypeError(path, 'an object like QueueFsLike', fs)
  for (const method of ['readFile', 'writeFile', 'rename', 'mkdir'] as const) {
    if (typeof fs[method] !== 'function') throw new OptionTypeError(`${path}.${method}`, 'a function', fs[method])
  }
  return fs
}
