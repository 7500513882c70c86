import {
  chmodSync,
  closeSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { resolve } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { MillraceError } from '../../../core/error.js'
import { processWide } from '../../../core/process/process-wide.js'

/**
 * The files of a file-backed queue, as four synchronous calls; everything beyond them is optional. With only the four, the
 * whole state is written at every change; with `append`, changes are appended to a journal.
 */
export interface QueueFsLike {
  /** Undefined: there is no such file. */
  readFile(path: string): string | undefined
  writeFile(path: string, data: string): void
  rename(from: string, to: string): void
  /**
   * Creates the directory and those above it; one that exists is no error. May return the uppermost one that it created:
   * then `durability: 'power'` flushes the names of all of them.
   */
  mkdir(path: string): string | undefined | void
  append?(path: string, data: string): void
  remove?(path: string): void
  /** Returns once what was written to this file, or to this directory's list of names, survives a power cut. */
  sync?(path: string): void
  /** The file in pieces: for one that is longer than a string can be. */
  readPieces?(path: string): Iterable<string> | undefined
  /** Lets go of what is kept open for this file. */
  release?(path: string): void
}

/** So many files stay open for appending; a program has a handful of queues. */
const MAX_OPEN = 64
/** How often it checks whether the file that it appends to still has a name. */
const CHECK_EVERY = 64
const PIECE_BYTES = 1 << 20

/** Only its owner may read a new file: it holds inputs and results. */
const PRIVATE = 0o600

interface OpenFile {
  readonly fd: number
  appends: number
}

/** One per process and file, however its path is spelt: of two handles a rename would strand one. */
const openFiles = processWide('queue-files', () => new Map<string, OpenFile>())

/** The real file system. */
export const nodeQueueFs: QueueFsLike = Object.freeze({
  readFile: (path: string) => ifItExists(() => readFileSync(path, 'utf8')),
  writeFile: (path: string, data: string) => {
    release(path)
    writeFileSync(path, data, { mode: PRIVATE })
  },
  rename: (from: string, to: string) => {
    release(from)
    release(to)
    // The file that is replaced keeps its permissions.
    ifItExists(() => chmodSync(from, statSync(to).mode & 0o777))
    renameSync(from, to)
  },
  mkdir: (path: string) => mkdirSync(path, { recursive: true }),
  append: (path: string, data: string) => {
    const file = forAppending(path)
    file.appends += 1
    if (file.appends % CHECK_EVERY === 0 && fstatSync(file.fd).nlink === 0) {
      release(path)
      throw new MillraceError('QUEUE_FILE_DELETED', `${path} was deleted while it was in use. It will be written anew.`)
    }
    writeAll(file.fd, data)
  },
  remove: (path: string) => {
    release(path)
    rmSync(path, { force: true })
  },
  sync: (path: string) => {
    const file = openFiles().get(resolve(path))
    if (file !== undefined) {
      // Enough for an appended file: its length is written with its data.
      fdatasyncSync(file.fd)
      return
    }
    const fd = openSync(path, 'r')
    try {
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  },
  readPieces: (path: string) => {
    const fd = ifItExists(() => openSync(path, 'r'))
    return fd === undefined ? undefined : pieces(fd)
  },
  release,
})

function forAppending(path: string): OpenFile {
  const whole = resolve(path)
  let file = openFiles().get(whole)
  if (file === undefined) {
    if (openFiles().size >= MAX_OPEN) release(openFiles().keys().next().value!)
    file = { fd: openSync(whole, 'a', PRIVATE), appends: 0 }
    openFiles().set(whole, file)
  }
  return file
}

function release(path: string): void {
  const whole = resolve(path)
  const file = openFiles().get(whole)
  if (file === undefined) return
  openFiles().delete(whole)
  closeSync(file.fd)
}

/** Short records are spelt into the same bytes again and again: Node would allocate some for each. */
const scratch = Buffer.allocUnsafeSlow(1 << 16)
/** A character takes at most this many bytes in UTF-8. */
const MAX_BYTES = 3

function writeAll(fd: number, data: string): void {
  const isShort = data.length * MAX_BYTES <= scratch.length
  const bytes = isShort ? scratch : Buffer.from(data)
  const length = isShort ? scratch.write(data) : bytes.length
  // A write may take less than it was given, e.g. when the disk is nearly full.
  for (let written = 0; written < length; ) written += writeSync(fd, bytes, written, length - written)
}

function* pieces(fd: number): IterableIterator<string> {
  try {
    const decoder = new StringDecoder('utf8')
    const buffer = Buffer.allocUnsafe(PIECE_BYTES)
    for (;;) {
      const length = readSync(fd, buffer, 0, PIECE_BYTES, null)
      if (length === 0) break
      yield decoder.write(buffer.subarray(0, length))
    }
    const last = decoder.end()
    if (last !== '') yield last
  } finally {
    closeSync(fd)
  }
}

function ifItExists<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
