import { AsyncLocalStorage } from 'node:async_hooks'
import { randomFillSync } from 'node:crypto'
import { MillraceError } from './error.js'
import { OptionTypeError } from './options.js'
import { processWide } from './process/process-wide.js'
import { describeValue } from './text/describe-value.js'
import type { At } from './time/time.js'

/** Makes one id per call: a non-empty string that no other call, in this process or another, returns. */
export type IdGenerator = () => string

/** Options of {@link uuidGenerator}: where its time and its chance come from. */
export interface UuidOptions {
  /** Epoch ms. Default: the machine's clock. It may go backwards; the ids do not. */
  readonly now?: () => At
  /** Fills the bytes with random ones. Default: the platform's secure generator. */
  readonly fillRandom?: (bytes: Uint8Array) => void
}

/** An id, or a generator of ids, is not what it has to be. */
class InvalidIdError extends MillraceError {
  constructor(source: string, id: unknown) {
    const got = describeValue(id)
    super(
      'INVALID_ID',
      `${source} must return a non-empty string, but returned ${got}. Return a new unique id per call.`,
      {
        facts: { source, got },
      },
    )
  }
}

/**
 * Makes a new id: a UUIDv7 unless `setIdGenerator` says otherwise. Ids of one process sort in the order of their making,
 * also within a millisecond and when the machine's clock is set back; across processes they sort by time.
 */
export function newId(): string {
  const ids = idsOfProcess()
  if (ids.derivations > 0) {
    const derived = ids.derivation?.getStore()?.mint
    if (derived !== undefined) return derived()
  }
  return ids.given === undefined ? ids.uuid() : checkedId(ids.given(), 'the function given to setIdGenerator()')
}

/**
 * Sets the id generator of this process; without an argument, back to UUIDv7.
 *
 * @example
 * ```ts
 * let n = 0
 * setIdGenerator(() => `wid-${++n}`)
 * setIdGenerator() // UUIDs again
 * ```
 */
export function setIdGenerator(generator?: IdGenerator): void {
  if (generator !== undefined && typeof generator !== 'function')
    throw new OptionTypeError('setIdGenerator(fn)', 'a function that returns an id', generator)
  idsOfProcess().given = generator
}

/**
 * Calls `fn`, and lets `mint` make every id that it asks for until it is done, on whatever path it asks. A caller that does the same
 * again elsewhere makes the same ids, so that what both of them enqueue is enqueued once.
 */
export async function mintingIds<T>(mint: IdGenerator, fn: () => T | Promise<T>): Promise<T> {
  const ids = idsOfProcess()
  ids.derivation ??= new AsyncLocalStorage()
  const minting: { mint: IdGenerator | undefined } = { mint }
  ids.derivations += 1
  try {
    return await ids.derivation.run(minting, fn)
  } finally {
    ids.derivations -= 1
    // What was begun in there may go on, and makes its own ids from now on.
    minting.mint = undefined
  }
}

/** The id itself when it is a usable one; otherwise an error that names who made it. */
export function checkedId(id: unknown, source: string): string {
  if (typeof id !== 'string' || id === '') throw new InvalidIdError(source, id)
  return id
}

/**
 * A generator of UUIDv7 with its own time and chance, for simulations that have to repeat.
 * About 0.3 µs per id: random bytes are drawn for 512 ids at a time, and only those that an id uses.
 */
export function uuidGenerator(options: UuidOptions = {}): IdGenerator {
  const { now = Date.now, fillRandom = randomFillSync } = options
  const stamp: Stamp = { ms: 0, seq: 0 }
  const pool = new Uint8Array(512 * FRESH_BYTES)
  let next = pool.length
  return () => {
    if (next === pool.length) {
      fillRandom(pool)
      next = 0
    }
    const from = next
    next += FRESH_BYTES
    advanceStamp(
      stamp,
      now(),
      ((pool[from]! & 0x7f) << 24) | (pool[from + 1]! << 16) | (pool[from + 2]! << 8) | pool[from + 3]!,
    )
    return uuidV7(stamp, pool, from + 4)
  }
}

/** RFC 9562: 48 bits of time, the version, 12 bits of the counter, the variant, its other 20, and 42 random ones. */
function uuidV7({ ms, seq }: Stamp, random: Uint8Array, from: number): string {
  const high = Math.floor(ms / 0x10000)
  const low = ms % 0x10000
  putHex(0, high >>> 24)
  putHex(2, high >>> 16)
  putHex(4, high >>> 8)
  putHex(6, high)
  putHex(9, low >>> 8)
  putHex(11, low)
  putHex(14, 0x70 | (seq >>> 28))
  putHex(16, seq >>> 20)
  putHex(19, 0x80 | ((seq >>> 14) & 0x3f))
  putHex(21, seq >>> 6)
  putHex(24, (seq << 2) | (random[from]! & 0x03))
  for (let i = 1; i <= 5; i += 1) putHex(24 + 2 * i, random[from + i]!)
  return uuidText.toString('latin1')
}

/** Where ids are written: a text that is made of twenty pieces takes ten times the memory of one made of bytes. */
const uuidText = Buffer.from('00000000-0000-7000-8000-000000000000', 'latin1')

function putHex(at: number, byte: number): void {
  uuidText[at] = DIGITS[(byte >>> 4) & 0x0f]!
  uuidText[at + 1] = DIGITS[byte & 0x0f]!
}

/** The ordered part of an id: a millisecond, and a 32-bit counter within it (held as a signed integer). */
export interface Stamp {
  ms: number
  seq: number
}

/**
 * Moves a stamp to the next one in order. A new millisecond starts at `freshSeq` (31 random bits, so that processes differ
 * and at least 2^31 more fit); in the same one, or after the clock went back, the counter goes on.
 */
export function advanceStamp(stamp: Stamp, now: At, freshSeq: number): void {
  const ms = Math.min(Math.floor(now), MAX_UUID_MS)
  if (ms > stamp.ms) {
    stamp.ms = ms
    stamp.seq = freshSeq
    return
  }
  stamp.seq = (stamp.seq + 1) | 0
  if (stamp.seq === 0) stamp.ms += 1
}

/**
 * Makes a lease token: 96 random bits (less the 1.5 % that would begin with a dash) as 16 characters that are safe in URLs, keys, file names
 * and on a command line. Who has not been given it cannot guess it. It has no order and no meaning.
 */
export function newToken(): string {
  const { token } = idsOfProcess()
  if (token !== undefined) return token()
  if (nextToken === tokens.length) {
    randomFillSync(tokens)
    nextToken = 0
  }
  const from = nextToken
  nextToken += TOKEN_BYTES
  const made = tokens.toString('base64url', from, nextToken)
  // Some of them are ids that people type: on a command line this one would be a flag.
  return made.startsWith('-') ? newToken() : made
}

/**
 * Lets a simulation make the tokens of this process, so that its seed repeats exactly; without an argument, back to chance.
 * Behind no door: tokens that can be guessed protect nothing.
 */
export function setTokenGenerator(generator?: () => string): void {
  idsOfProcess().token = generator
}

/** Bytes 6 to 15 of an id: the random start of the counter, and the tail. */
const FRESH_BYTES = 10
/** 48 bits: the year 10889. A clock that counts in microseconds ends here instead of wrapping to an early date. */
const MAX_UUID_MS = 2 ** 48 - 1

const TOKEN_BYTES = 12
const tokens = Buffer.alloc(512 * TOKEN_BYTES)
let nextToken = tokens.length

const DIGITS = Buffer.from('0123456789abcdef', 'latin1')

interface IdsOfProcess {
  /** Makes the ids while no other function was given. One for all copies of the package: it keeps the order of the process. */
  readonly uuid: IdGenerator
  given: IdGenerator | undefined
  token: (() => string) | undefined
  /** How many `mintingIds` calls are running: usually none, and then an id costs no look-up. */
  derivations: number
  derivation: AsyncLocalStorage<{ readonly mint: IdGenerator | undefined }> | undefined
}

const idsOfProcess = processWide<IdsOfProcess>('ids', () => ({
  uuid: uuidGenerator(),
  given: undefined,
  token: undefined,
  derivations: 0,
  derivation: undefined,
}))
