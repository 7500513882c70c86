import { dirname } from 'node:path'
import { OptionError, OptionTypeError, oneOfOption, stringOption } from '../../core/options.js'
import type { DeadLettered, DeadLog } from './dead-letters.js'
import type { GateRecord } from './gate-record.js'
import { JOURNAL_HEADER, journalRecord } from './journal.js'
import type { Message } from './message.js'
import type { ChangeLog } from './message-queue.js'
import { nodeQueueFs, type QueueFsLike } from './node-fs.js'
import { readQueueFile } from './read-queue-file.js'
import { writeSnapshot } from './snapshot.js'
import type { Op, Stored } from './stored.js'
import { journalPieces, putFields } from './stored-ops.js'

/** Where and how a memory queue survives its process. */
export interface MemoryQueuePersistence {
  /** Persist here. Without it the queue lives in memory only. */
  readonly file?: string
  /** The file system. Default: the real one. */
  readonly fs?: QueueFsLike
  /** Hears of a damaged file at opening and of writes that failed. Memory stays authoritative; nothing throws. */
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
  /** Everything as it stands in memory, for a rewrite. */
  #current: () => Stored
  #ops: Op[] = []
  #isDirty = false
  #isDirectoryReady = false
  /** The file is there and ends in a whole record: appending to it is safe. */
  #isAppendable = false
  #mustRewrite = false
  #journal = 0
  #live = 0
  #damaged: string | undefined

  constructor(options: MemoryQueuePersistence & { readonly file: string }, owner: string) {
    this.#file = stringOption(`${owner}.file`, options.file)
    this.#fs = checkedFs(options.fs ?? nodeQueueFs, `${owner}.fs`)
    if (options.onError !== undefined && typeof options.onError !== 'function') {
      throw new OptionTypeError(`${owner}.onError`, 'a function', options.onError)
    }
    this.#onError = options.onError
    this.#isPowerSafe =
      oneOfOption(`${owner}.durability`, options.durability, ['process', 'power'], 'process') === 'power'
    if (this.#isPowerSafe && this.#fs.sync === undefined) {
      throw new OptionError(`${owner}.durability`, "'process' with an fs that has no sync(path)", 'power')
    }
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

  put(queue: string, message: Message): void {
    this.#live -= message.journaled
    const fields = putFields(queue, message)
    message.journaled = fields.body.length + RECORD_OVERHEAD
    this.#live += message.journaled
    this.#note(['put', fields])
  }

  leased(message: Message): void {
    this.#noteNumber(message.lease?.started === true ? LEASED_STARTED : LEASED, message.no)
  }

  lapsed(message: Message): void {
    this.#noteNumber(LAPSED, message.no)
  }

  gone(message: Message): void {
    this.#live -= message.journaled
    message.journaled = 0
    this.#noteNumber(GONE, message.no)
  }

  moved({ no, dueAt, hold, gate }: Message): void {
    const at = dueAt === Number.POSITIVE_INFINITY ? null : dueAt
    this.#note(
      hold === undefined && gate === undefined ? ['move', no, at] : ['move', no, at, hold ?? null, gate ?? null],
    )
  }

  buried(queue: string, no: number, entry: DeadLettered): void {
    const { body, error } = entry
    this.#live += body.length + error.length + RECORD_OVERHEAD
    this.#note(['bury', queue, no, body, error])
  }

  exhumed(no: number, entry: DeadLettered): void {
    this.#live -= entry.body.length + entry.error.length + RECORD_OVERHEAD
    this.#note(['exhume', no])
  }

  gateOpened(prefix: string, gate: GateRecord): void {
    this.#note(['gate', prefix, { ...gate, waiting: [...gate.waiting] }])
  }

  gateTold(prefix: string, key: string, member: string, ok: boolean): void {
    this.#note(['tell', prefix, key, member, ok ? 1 : 0])
  }

  gateClosed(prefix: string, key: string): void {
    this.#note(['ungate', prefix, key])
  }

  paused(prefix: string, what: 'queue' | 'type', name: string, isPaused: boolean): void {
    this.#note([isPaused ? 'pause' : 'resume', prefix, what, name])
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

  #note(op: Op): void {
    this.#isDirty = true
    if (this.#fs.append !== undefined) this.#ops.push(op)
  }

  /** Numbers of one kind in a row share one change. */
  #noteNumber(kind: readonly ['lease', 0 | 1] | readonly ['lapse'] | readonly ['gone'], no: number): void {
    this.#isDirty = true
    if (this.#fs.append === undefined) return
    const last = this.#ops.at(-1) as (string | number)[] | undefined
    if (last !== undefined && last[0] === kind[0] && (kind[1] === undefined || last[1] === kind[1])) last.push(no)
    else this.#ops.push([...kind, no] as unknown as Op) // The spread loses which of the three tuples it was.
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
    return this.#journal > MIN_JOURNAL && this.#journal > MAX_GARBAGE * this.#live
  }

  /** The whole state to a temporary file, swapped in by a rename: a reader finds the old file or the new one. */
  #rewrite(): void {
    const temporary = `${this.#file}.tmp`
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
    this.#fs.rename(temporary, this.#file)
    if (this.#isPowerSafe) this.#fs.sync?.(dirname(this.#file))
    this.#journal = length
    this.#isAppendable = true
    this.#mustRewrite = false
  }

  /** What could not be read may still matter to a person: it is set aside before the file is replaced. */
  #keepDamaged(): void {
    if (this.#damaged === undefined) return
    this.#fs.writeFile(`${this.#file}.damaged`, this.#damaged)
    this.#damaged = undefined
  }

  #makeDirectory(): void {
    if (this.#isDirectoryReady) return
    const directory = dirname(this.#file)
    if (directory !== '.') this.#fs.mkdir(directory)
    this.#isDirectoryReady = true
  }

  #report(error: unknown): void {
    try {
      this.#onError?.(error)
    } catch {
      // Who listens to errors must not make a new one out of them: the queue goes on.
    }
  }
}

const LEASED = ['lease', 0] as const
const LEASED_STARTED = ['lease', 1] as const
const LAPSED = ['lapse'] as const
const GONE = ['gone'] as const

function checkedFs(fs: QueueFsLike, path: string): QueueFsLike {
  for (const method of ['readFile', 'writeFile', 'rename', 'mkdir'] as const) {
    if (typeof fs?.[method] !== 'function') throw new OptionTypeError(`${path}.${method}`, 'a function', fs?.[method])
  }
  return fs
}
