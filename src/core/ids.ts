import { AsyncLocalStorage } from 'node:async_hooks'
import { randomFillSync } from 'node:crypto'
import { v7 } from 'uuid'
import { MillraceError } from './error.js'
import { OptionTypeError } from './options.js'
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
  if (derivations > 0) {
    const derived = derivation?.getStore()?.mint
    if (derived !== undefined) return derived()
  }
  return generate === defaultGenerator ? generate() : checkedId(generate(), 'the function given to setIdGenerator()')
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
  generate = generator ?? defaultGenerator
}

/**
 * Calls `fn`, and lets `mint` make every id that it asks for until it is done, on whatever path it asks. A caller that does the same
 * again elsewhere makes the same ids, so that what both of them enqueue is enqueued once.
 */
export async function mintingIds<T>(mint: IdGenerator, fn: () => T | Promise<T>): Promise<T> {
  derivation ??= new AsyncLocalStorage()
  const minting: { mint: IdGenerator | undefined } = { mint }
  derivations += 1
  try {
    return await derivation.run(minting, fn)
  } finally {
    derivations -= 1
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
  // One object for all calls: the library reads it immediately and keeps nothing.
  const random = new Uint8Array(16)
  const parts = { msecs: 0, seq: 0, random }
  return () => {
    if (next === pool.length) {
      fillRandom(pool)
      next = 0
    }
    for (let i = 16 - FRESH_BYTES; i < 16; i += 1) random[i] = pool[next++]!
    advanceStamp(stamp, now(), ((random[6]! & 0x7f) << 24) | (random[7]! << 16) | (random[8]! << 8) | random[9]!)
    parts.msecs = stamp.ms
    parts.seq = stamp.seq
    return v7(parts)
  }
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
 * Makes a lease token: 96 random bits as 16 characters that are safe in URLs, keys and file names. Who has not been given
 * it cannot guess it. It has no order and no meaning.
 */
export function newToken(): string {
  if (generateToken !== undefined) return generateToken()
  if (nextToken === tokens.length) {
    randomFillSync(tokens)
    nextToken = 0
  }
  const from = nextToken
  nextToken += TOKEN_BYTES
  return tokens.toString('base64url', from, nextToken)
}

/**
 * Lets a simulation make the tokens of this process, so that its seed repeats exactly; without an argument, back to chance.
 * Behind no door: tokens that can be guessed protect nothing.
 */
export function setTokenGenerator(generator?: () => string): void {
  generateToken = generator
}

/** Bytes 6 to 15 of an id: the random start of the counter, and the tail. */
const FRESH_BYTES = 10
/** 48 bits: the year 10889. A clock that counts in microseconds ends here instead of wrapping to an early date. */
const MAX_UUID_MS = 2 ** 48 - 1

const TOKEN_BYTES = 12
const tokens = Buffer.alloc(512 * TOKEN_BYTES)
let nextToken = tokens.length
let generateToken: (() => string) | undefined

/** How many `mintingIds` calls are running: usually none, and then an id costs no look-up. */
let derivations = 0
let derivation: AsyncLocalStorage<{ readonly mint: IdGenerator | undefined }> | undefined

const defaultGenerator: IdGenerator = uuidGenerator()
let generate: IdGenerator = defaultGenerator
