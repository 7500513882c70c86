import { MillraceError } from '../../core/error.js'
import { numberOption } from '../../core/options.js'
import { show } from '../../core/show.js'
import type { At, Ms } from '../../core/time.js'
import { Bytes, bytesOfKey } from './bytes.js'
import { Lane, NO_SLOT } from './lane.js'
import type { Time } from './time.js'

/** Writes remove at most this many expired keys each: more than they add, so that nothing piles up, and never a long pause. */
const SWEEP_STEP = 16

const NEVER = Number.POSITIVE_INFINITY

/** Where texts under the keys of records are counted, so that whoever reads records knows whether to look for texts at all. */
export interface TextCount {
  texts: number
}

/** A key whose value is part of a record: text that is made when it is read, and understood when it is written. */
export interface KeyView {
  readonly count: TextCount
  read(now: At): string | undefined
  /** Undefined: deleted. True: the record took it; otherwise the text is kept beside the record, and stands above it. */
  write(value: string | undefined, expiresAt: At, now: At): boolean
  /** The write is complete and can be read back: whoever waits for it may be told. */
  settled(): void
  /** The new value of a counter, if the record keeps it. */
  add(by: number, expiresAt: At | undefined, now: At): number | undefined
}

interface Slot {
  readonly key: string
  value: string
  expiresAt: At
  place: number
  /** In bytes. */
  weight: number
  readonly count: TextCount | undefined
}

/**
 * The one space of keys: texts with an expiry, and views of records. Expired texts are removed little by little by the
 * writes that follow, so that keys nobody reads again do not accumulate.
 */
export class KeySpace {
  readonly #time: Time
  readonly #viewOf: (key: string) => KeyView | undefined
  readonly #bytes: Bytes
  readonly #texts = new Map<string, Slot>()
  readonly #expiring = new Lane<Slot>(
    (a, b) => a.expiresAt < b.expiresAt,
    (slot, place) => {
      slot.place = place
    },
  )

  constructor(time: Time, viewOf: (key: string) => KeyView | undefined, bytes = new Bytes()) {
    this.#time = time
    this.#viewOf = viewOf
    this.#bytes = bytes
  }

  /** Texts that are kept, those not yet swept included. */
  get size(): number {
    return this.#texts.size
  }

  get(key: string): string | undefined {
    const now = this.#time.wall()
    return this.#textSlot(key, now)?.value ?? this.#viewOf(key)?.read(now)
  }

  set(key: string, value: string, ttl: Ms | undefined): void {
    checkEntry(value, ttl)
    const now = this.#time.wall()
    this.#put(key, value, expiry(now, ttl) ?? NEVER, now)
    this.#sweep(now)
  }

  delete(key: string): void {
    const now = this.#time.wall()
    this.dropText(key)
    const view = this.#viewOf(key)
    view?.write(undefined, now, now)
    view?.settled()
  }

  setIfNotExists(key: string, value: string, ttl: Ms | undefined): boolean {
    checkEntry(value, ttl)
    if (this.get(key) !== undefined) return false
    this.set(key, value, ttl)
    return true
  }

  increment(key: string, by: number, ttl: Ms | undefined): number {
    if (!Number.isFinite(by)) throw notANumber(key, by)
    checkTtl('increment', ttl)
    const now = this.#time.wall()
    const expiresAt = expiry(now, ttl)
    const slot = this.#textSlot(key, now)
    if (slot === undefined) {
      const view = this.#viewOf(key)
      const counted = view?.add(by, expiresAt, now)
      if (counted !== undefined) return counted
      const value = numberIn(key, view?.read(now)) + by
      this.#put(key, String(value), expiresAt ?? NEVER, now)
      this.#sweep(now)
      return value
    }
    const value = numberIn(key, slot.value) + by
    // The expiry is refreshed only when it is given.
    this.#put(key, String(value), expiresAt ?? slot.expiresAt, now)
    this.#sweep(now)
    return value
  }

  /** Every live text under this prefix. For the rare walk when a book is opened. */
  textsUnder(prefix: string): readonly { readonly key: string; readonly value: string; readonly expiresAt: At }[] {
    const now = this.#time.wall()
    return [...this.#texts.values()].filter(({ key, expiresAt }) => key.startsWith(prefix) && expiresAt > now)
  }

  /** The text itself, not what a record would say. */
  text(key: string, now: At): { readonly value: string; readonly expiresAt: At } | undefined {
    return this.#textSlot(key, now)
  }

  dropText(key: string): void {
    const slot = this.#texts.get(key)
    if (slot !== undefined) this.#drop(slot)
  }

  /** Keeps a text beside its record, which is told nothing. */
  keepText(key: string, value: string, expiresAt: At): void {
    this.#keep(key, value, expiresAt, this.#viewOf(key)?.count)
  }

  #put(key: string, value: string, expiresAt: At, now: At): void {
    const view = this.#viewOf(key)
    if (view?.write(value, expiresAt, now) === true) this.dropText(key)
    else this.#keep(key, value, expiresAt, view?.count)
    view?.settled()
  }

  #keep(key: string, value: string, expiresAt: At, count: TextCount | undefined): void {
    let slot = this.#texts.get(key)
    if (slot !== undefined && slot.count !== count) {
      this.#drop(slot)
      slot = undefined
    }
    if (slot === undefined) {
      slot = { key, value, expiresAt: NEVER, place: NO_SLOT, weight: 0, count }
      this.#texts.set(key, slot)
      if (count !== undefined) count.texts += 1
    }
    slot.value = value
    this.#weigh(slot, bytesOfKey(key, value))
    if (slot.expiresAt === expiresAt) return
    this.#expiring.remove(slot, slot.place)
    slot.expiresAt = expiresAt
    if (expiresAt < NEVER) this.#expiring.add(slot)
  }

  #textSlot(key: string, now: At): Slot | undefined {
    const slot = this.#texts.get(key)
    if (slot === undefined || slot.expiresAt > now) return slot
    this.#drop(slot)
    return undefined
  }

  #drop(slot: Slot): void {
    this.#texts.delete(slot.key)
    this.#weigh(slot, 0)
    this.#expiring.remove(slot, slot.place)
    if (slot.count !== undefined) slot.count.texts -= 1
  }

  #weigh(slot: Slot, bytes: number): void {
    this.#bytes.stored += bytes - slot.weight
    slot.weight = bytes
  }

  #sweep(now: At): void {
    for (let step = 0; step < SWEEP_STEP; step += 1) {
      const slot = this.#expiring.peek()
      if (slot === undefined || slot.expiresAt > now) return
      this.#drop(slot)
    }
  }
}

/** Undefined: no expiry was asked for. */
function expiry(now: At, ttl: Ms | undefined): At | undefined {
  return ttl !== undefined && ttl > 0 ? now + ttl : undefined
}

/** Whether this can be stored; throws if not. */
export function checkEntry(value: unknown, ttl: unknown): void {
  checkTtl('set', ttl)
  if (typeof value === 'string') return
  throw new MillraceError('BAD_VALUE', `set(key, value): value must be a string, got ${show(value)}. Encode it first.`)
}

function checkTtl(call: 'set' | 'increment', ttl: unknown): void {
  numberOption(`${call}.ttl`, ttl, { min: 0, default: 0, infinite: true })
}

function numberIn(key: string, text: string | undefined): number {
  if (text === undefined) return 0
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) throw notANumber(key, text)
  return value
}

function notANumber(key: string, value: unknown): MillraceError {
  return new MillraceError(
    'NOT_A_NUMBER',
    `increment("${key}"): ${show(value)} is not a number. Delete the key or use another one.`,
    { facts: { key } },
  )
}
