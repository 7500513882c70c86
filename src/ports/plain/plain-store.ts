import { MillraceError } from '../../core/error.js'
import type { Ms } from '../../core/time.js'
import { GroupCommit } from '../group-commit.js'
import type { Store } from '../ports.js'
import { called, manyOrEach, type Outcome, type RetryPort, unwrap } from './call.js'

export interface Entry {
  readonly key: string
  readonly value: string
  readonly ttl?: Ms
}

const MAX_KEYS = 500

/** Stands for a millisecond where a store without `delete` was told to forget a key. No text of ours looks like it. */
const GONE = '\u0000gone'

/**
 * A store as the adapter uses it: always asynchronous, with the optional powers of the port used where they are there. Reads
 * and writes of the same turn travel together through `getMany` and `setMany`, so that code is written for one item and
 * pays one round trip for all of them.
 *
 * What may be repeated is repeated by `retry`: reads, writes of a given value, and claims that carry their own name.
 */
export class PlainStore {
  readonly #port: Store
  readonly #retry: RetryPort
  readonly #reads: GroupCommit<string, Outcome<string | undefined>> | undefined
  readonly #writes: GroupCommit<readonly Entry[], Outcome<void>> | undefined

  constructor(port: Store, retry: RetryPort) {
    this.#port = port
    this.#retry = retry
    // A call that hangs must hold up nobody else: what is asked for meanwhile travels on its own.
    const unbounded = { maxUnderWay: Infinity, maxUnsent: Infinity, maxUnsentBytes: Infinity, maxBatch: MAX_KEYS }
    if (port.getMany !== undefined)
      this.#reads = new GroupCommit({ ...unbounded, flush: (keys) => this.#readMany(keys) })
    if (port.setMany !== undefined)
      this.#writes = new GroupCommit({ ...unbounded, flush: (lists) => this.#writeMany(lists) })
  }

  /** Many keys cost one round trip. */
  get readsInBulk(): boolean {
    return this.#reads !== undefined
  }

  async get(key: string): Promise<string | undefined> {
    return present(await this.#find(key))
  }

  async getAll(keys: readonly string[]): Promise<(string | undefined)[]> {
    if (this.#reads !== undefined) return (await this.#reads.addMany(keys)).map((found) => present(unwrap(found)))
    return Promise.all(keys.map((key) => this.get(key)))
  }

  set(key: string, value: string, ttl?: Ms): Promise<void> {
    return this.write([entry(key, value, ttl)])
  }

  /** Writes in this order: a later entry is never there without the earlier ones, as long as `setMany` keeps order too. */
  async write(entries: readonly Entry[]): Promise<void> {
    if (entries.length === 0) return
    if (this.#writes !== undefined) return unwrap(await this.#writes.add(entries))
    for (const one of entries) await this.#retry(() => this.#writeOne(one))
  }

  /** Sets it if nothing is there. Who set it does not matter to the caller, so that it may be repeated. */
  addIfAbsent(key: string, value: string, ttl?: Ms): Promise<boolean> {
    return this.#retry(() => called(() => this.#port.setIfNotExists(key, value, expiry(ttl))))
  }

  /**
   * Claims a key with a text that is this claimer's own, and returns the text that holds it: the claimer's, if it won now or
   * earlier. A reply that was lost is found out by reading back, never guessed.
   */
  claim(key: string, own: string, ttl?: Ms): Promise<string> {
    return this.#retry(async () => {
      for (;;) {
        if (await called(() => this.#port.setIfNotExists(key, own, expiry(ttl)))) return own
        // Undefined: the claim in our way expired between the two calls.
        const holder = await this.#find(key)
        if (holder !== undefined) return holder
      }
    })
  }

  async remove(key: string): Promise<void> {
    await this.#retry(() =>
      // Without `delete` the entry is made to expire at once.
      called(() => (this.#port.delete === undefined ? this.#port.set(key, GONE, 1) : this.#port.delete(key))),
    )
  }

  get canCompare(): boolean {
    return this.#port.compareAndSet !== undefined
  }

  /** Not repeated: after a lost reply the answer would be false. Callers read again and look for their own mark. */
  compareAndSet(key: string, expected: string | undefined, next: string, ttl?: Ms): Promise<boolean> {
    return called(async () => (await this.#port.compareAndSet?.(key, expected, next, expiry(ttl))) ?? false)
  }

  async #find(key: string): Promise<string | undefined> {
    if (this.#reads !== undefined) return unwrap(await this.#reads.add(key))
    return this.#retry(() => this.#readOne(key))
  }

  #readOne(key: string): Promise<string | undefined> {
    return called(async () => (await this.#port.get(key)) ?? undefined)
  }

  #writeOne({ key, value, ttl }: Entry): Promise<void> {
    return called(() => this.#port.set(key, value, ttl))
  }

  #readMany(keys: readonly string[]): Promise<readonly Outcome<string | undefined>[]> {
    return manyOrEach(
      keys,
      () =>
        this.#retry(async () => {
          const values = (await this.#port.getMany?.(keys)) ?? []
          if (values.length !== keys.length) throw misaligned(values.length, keys.length)
          return Array.from(values, (value) => value ?? undefined)
        }),
      (key) => this.#readOne(key),
    )
  }

  #writeMany(lists: readonly (readonly Entry[])[]): Promise<readonly Outcome<void>[]> {
    return manyOrEach(
      lists,
      () =>
        this.#retry(async () => {
          await this.#port.setMany?.(lists.flat())
          return lists.map(() => undefined)
        }),
      async (list) => {
        for (const one of list) await this.#writeOne(one)
      },
    )
  }
}

const present = (text: string | undefined): string | undefined => (text === GONE ? undefined : text)

/** An entry with its expiry as ports mean it: absent is for ever, and nothing is kept for less than a millisecond. */
export function entry(key: string, value: string, ttl?: Ms): Entry {
  const expires = expiry(ttl)
  return expires === undefined ? { key, value } : { key, value, ttl: expires }
}

function expiry(ttl: Ms | undefined): Ms | undefined {
  if (ttl === undefined || ttl === Infinity) return undefined
  return Math.max(1, Math.ceil(ttl))
}

function misaligned(got: number, wanted: number): MillraceError {
  return new MillraceError(
    'BAD_PORT',
    `store.getMany() answered ${got} values for ${wanted} keys: return one per key, in order, undefined where there is none.`,
    { facts: { got, wanted } },
  )
}
