import { MillraceError } from '../../core/error.js'
import { numberOption } from '../../core/options.js'
import { describeValue } from '../../core/text/describe-value.js'
import type { At, Ms } from '../../core/time/time.js'
import { counterValue, finiteStep } from '../shared/counter-value.js'
import { Bytes, bytesOfKey } from './items/bytes.js'
import { NO_SLOT, TimeList } from './queue/time-list.js'
import type { Time } from './time.js'

/** Writes remove at most this many expired keys each: more than they add, so that nothing piles up, and never a long pause. */
const SWEEP_STEP = 16

const NEVER = Number.POSITIVE_INFINITY

interface Slot {
  readonly key: string
  value: string
  expiresAt: At
  place: number
  /** In bytes. */
  weight: number
}

/** Keys with texts that may expire. Each write removes some expired ones, so keys that are never read again do not pile up. */
export class KeySpace {
  readonly #time: Time
  readonly #bytes: Bytes
  readonly #texts = new Map<string, Slot>()
  readonly #expiring = new TimeList<Slot>(
    (a, b) => a.expiresAt < b.expiresAt,
    (slot, place) => {
      slot.place = place
    },
  )

  constructor(time: Time, bytes = new Bytes()) {
    this.#time = time
    this.#bytes = bytes
  }

  /** Keys that are stored, with those that have expired and are not yet removed. */
  get size(): number {
    return this.#texts.size
  }

  get(key: string): string | undefined {
    return this.#find(key, this.#time.wall())?.value
  }

  set(key: string, value: string, ttl: Ms | undefined): void {
    checkEntry(value, ttl)
    const now = this.#time.wall()
    this.#put(key, value, expiry(now, ttl) ?? NEVER)
    this.#sweep(now)
  }

  delete(key: string): void {
    const slot = this.#texts.get(key)
    if (slot !== undefined) this.#drop(slot)
  }

  setIfNotExists(key: string, value: string, ttl: Ms | undefined): boolean {
    checkEntry(value, ttl)
    if (this.get(key) !== undefined) return false
    this.set(key, value, ttl)
    return true
  }

  increment(key: string, by: number, ttl: Ms | undefined): number {
    finiteStep(key, by)
    checkTtl('increment', ttl)
    const now = this.#time.wall()
    const slot = this.#find(key, now)
    const value = counterValue(key, slot?.value) + by
    // The expiry is refreshed only when one is given.
    this.#put(key, String(value), expiry(now, ttl) ?? slot?.expiresAt ?? NEVER)
    this.#sweep(now)
    return value
  }

  #put(key: string, value: string, expiresAt: At): void {
    let slot = this.#texts.get(key)
    if (slot === undefined) {
      slot = { key, value, expiresAt: NEVER, place: NO_SLOT, weight: 0 }
      this.#texts.set(key, slot)
    }
    slot.value = value
    this.#weigh(slot, bytesOfKey(key, value))
    if (slot.expiresAt === expiresAt) return
    this.#expiring.remove(slot, slot.place)
    slot.expiresAt = expiresAt
    if (expiresAt < NEVER) this.#expiring.add(slot)
  }

  #find(key: string, now: At): Slot | undefined {
    const slot = this.#texts.get(key)
    if (slot === undefined || slot.expiresAt > now) return slot
    this.#drop(slot)
    return undefined
  }

  #drop(slot: Slot): void {
    this.#texts.delete(slot.key)
    this.#weigh(slot, 0)
    this.#expiring.remove(slot, slot.place)
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
  throw new MillraceError(
    'BAD_VALUE',
    `set(key, value): value must be a string, got ${describeValue(value)}. Encode it first.`,
  )
}

function checkTtl(call: 'set' | 'increment', ttl: unknown): void {
  numberOption(`${call}.ttl`, ttl, { min: 0, default: 0, infinite: true })
}
