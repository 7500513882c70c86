import { MillraceError } from '../../core/error.js'
import { GroupCommit } from '../../core/group-commit.js'
import type { MaybePromise, Ms } from '../../core/time/time.js'
import type { PulledWork, PushOptions, Queue, Store } from '../../ports/ports.js'

/** Repeats a call of a port as the system's `portRetry` says. Only calls that may be repeated are given to it. */
export type RetryPort = <T>(call: () => Promise<T>) => Promise<T>

/** A port may answer now or later; a synchronous throw counts as a rejection. */
export async function called<T>(call: () => MaybePromise<T>): Promise<T> {
  return call()
}

/** How one call of many ended: a value, so that neighbours in a batch do not share a failure. */
export type CallOutcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown }

export async function callOutcomeOf<T>(promise: Promise<T>): Promise<CallOutcome<T>> {
  try {
    return { ok: true, value: await promise }
  } catch (error) {
    return { ok: false, error }
  }
}

function unwrap<T>(outcome: CallOutcome<T>): T {
  if (outcome.ok) return outcome.value
  throw outcome.error
}

/**
 * Waits for all of them and then throws the first failure, if any. Unlike with `Promise.all` nothing still runs in the
 * background when it throws, so a repetition does not overlap with what it repeats.
 */
export async function allDone<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const outcomes = await Promise.all(promises.map(callOutcomeOf))
  return outcomes.map(unwrap)
}

/** The JSON object in a text of the store. Undefined for anything else: a corrupt record must not stop the item. */
export function readObject<T extends object>(text: string | undefined): Partial<T> | undefined {
  try {
    const read: unknown = JSON.parse(text ?? 'null')
    return typeof read === 'object' && read !== null ? (read as Partial<T>) : undefined
  } catch {
    return undefined
  }
}

const MAX_BATCH = 500

/**
 * Calls of the same turn travel together where the port has one call for many. A call that hangs holds up no other: later
 * calls travel separately.
 */
function batched<T, R>(
  retry: RetryPort,
  many: ((batch: readonly T[]) => Promise<readonly R[]>) | undefined,
  each: (one: T) => Promise<R>,
): (calls: readonly T[]) => Promise<R[]> {
  if (many === undefined) return (calls) => Promise.all(calls.map((one) => retry(() => each(one))))
  const group = new GroupCommit<T, CallOutcome<R>>({
    maxUnderWay: Infinity,
    maxUnsent: Infinity,
    maxUnsentBytes: Infinity,
    maxBatch: MAX_BATCH,
    flush: (batch) => manyOrEach(batch, () => retry(() => many(batch)), each),
  })
  return async (calls) => (await group.addMany(calls)).map(unwrap)
}

/** The answer to a call for many that says nothing about each. */
async function nothingEach<T>(batch: readonly T[], call: () => MaybePromise<void>): Promise<readonly undefined[]> {
  await call()
  return batch.map(() => undefined)
}

/** Where one call for many fails, one call each, so that a bad entry fails by itself. A batch of one is not tried twice. */
async function manyOrEach<T, R>(
  batch: readonly T[],
  many: () => Promise<readonly R[]>,
  each: (one: T) => Promise<R>,
): Promise<readonly CallOutcome<R>[]> {
  const all = await callOutcomeOf(many())
  if (all.ok && all.value.length === batch.length) return all.value.map((value) => ({ ok: true, value }))
  if (!all.ok && batch.length === 1) return [all]
  return Promise.all(batch.map((one) => callOutcomeOf(each(one))))
}

interface Body {
  readonly body: string
  readonly options: PushOptions
}

/** A queue as the adapter uses it: always asynchronous; pushes and acks of the same turn travel together where it can. */
export class PlainQueue {
  readonly name: string
  readonly #port: Queue
  readonly #retry: RetryPort
  readonly #push: (bodies: readonly Body[]) => Promise<unknown>
  readonly #ack: (pulled: readonly PulledWork[]) => Promise<unknown>

  constructor(name: string, port: Queue, retry: RetryPort) {
    this.name = name
    this.#port = port
    this.#retry = retry
    this.#push = batched<Body, void>(
      retry,
      port.pushMany && ((bodies) => nothingEach(bodies, () => port.pushMany!(bodies))),
      ({ body, options }) => called(() => port.push(body, options)),
    )
    this.#ack = batched<PulledWork, void>(
      retry,
      port.ackMany && ((pulled) => nothingEach(pulled, () => port.ackMany!(pulled))),
      (pulled) => called(() => port.ack(pulled)),
    )
  }

  /** A pop that returns this many may have left some behind. */
  full(max: number): number {
    return Math.min(max, this.#port.maxPop ?? Infinity)
  }

  /** Not repeated: what a lost reply had leased comes back when its lease runs out. */
  async pop(max: number, leaseMs: Ms): Promise<readonly PulledWork[]> {
    return (await called(() => this.#port.pop(max, leaseMs))) ?? []
  }

  async push(body: string, { delay: asked = 0, ...rest }: PushOptions): Promise<void> {
    const delay = Math.min(Math.max(0, asked), this.#port.maxDelay ?? Infinity)
    // No key at all where there is no delay: simple queues check for the key, not for its value.
    await this.#push([{ body, options: delay > 0 ? { ...rest, delay } : rest }])
  }

  async ack(pulled: PulledWork): Promise<void> {
    await this.#ack([pulled])
  }

  fail(pulled: PulledWork, delayMs?: Ms): Promise<void> {
    const delay = delayMs === undefined ? [] : [Math.max(0, delayMs)]
    return this.#retry(() => called(() => this.#port.fail(pulled, ...delay)))
  }

  /** Each lease has its own outcome. `false`: it was lost. Nothing: the port does not know. */
  async heartbeats(pulled: readonly PulledWork[], leaseMs: Ms): Promise<readonly CallOutcome<boolean | void>[]> {
    const one = (lease: PulledWork) => called(() => this.#port.heartbeat(lease, leaseMs))
    if (this.#port.heartbeatMany === undefined) return Promise.all(pulled.map((lease) => callOutcomeOf(one(lease))))
    return manyOrEach(pulled, async () => (await this.#port.heartbeatMany?.(pulled, leaseMs)) ?? [], one)
  }

  get hasDeadLetters(): boolean {
    return this.#port.deadLetter !== undefined
  }

  async deadLetter(body: string, error: string): Promise<void> {
    await this.#port.deadLetter?.(body, error)
  }
}

export interface Entry {
  readonly key: string
  readonly value: string
  readonly ttl?: Ms
}

/** Written for a millisecond where a store without `delete` is to forget a key. None of our texts looks like it. */
const GONE = '\u0000gone'

/**
 * A store as the adapter uses it: always asynchronous, with the optional powers of the port used where it has them. Reads
 * and writes of the same turn travel together through `getMany` and `setMany`, so code is written for one item and pays one
 * round trip for all of them.
 *
 * `retry` repeats what may be repeated: reads, writes of a given value, and claims that carry the claimer's name.
 */
export class PlainStore {
  readonly port: Store
  readonly retry: RetryPort
  readonly #read: (keys: readonly string[]) => Promise<(string | undefined)[]>
  readonly #writeBatch: ((lists: readonly (readonly Entry[])[]) => Promise<unknown>) | undefined

  constructor(port: Store, retry: RetryPort) {
    this.port = port
    this.retry = retry
    this.#read = batched<string, string | undefined>(
      retry,
      port.getMany && ((keys) => this.#readMany(keys)),
      async (key) => (await port.get(key)) ?? undefined,
    )
    if (port.setMany !== undefined)
      this.#writeBatch = batched<readonly Entry[], void>(
        retry,
        (lists) => nothingEach(lists, () => port.setMany!(lists.flat())),
        async (list) => {
          for (const one of list) await this.#writeOne(one)
        },
      )
  }

  /** Many keys cost one round trip. */
  get readsInBulk(): boolean {
    return this.port.getMany !== undefined
  }

  async get(key: string): Promise<string | undefined> {
    const [found] = await this.#read([key])
    return present(found)
  }

  /** The values of these keys, in order. An undefined key is not asked for. */
  async getAll(keys: readonly (string | undefined)[]): Promise<(string | undefined)[]> {
    const found = await this.#read(keys.filter((key) => key !== undefined))
    return keys.map((key) => (key === undefined ? undefined : present(found.shift())))
  }

  set(key: string, value: string, ttl?: Ms): Promise<void> {
    return this.write([entry(key, value, ttl)])
  }

  /** Writes in this order: a later entry is never there without the earlier ones, as long as `setMany` keeps order too. */
  async write(entries: readonly Entry[]): Promise<void> {
    if (entries.length === 0) return
    if (this.#writeBatch !== undefined) await this.#writeBatch([entries])
    else for (const one of entries) await this.retry(() => this.#writeOne(one))
  }

  /** Sets it if nothing is there. The caller does not care who set it, so it may be repeated. */
  addIfAbsent(key: string, value: string, ttl?: Ms): Promise<boolean> {
    return this.retry(() => called(() => this.port.setIfNotExists(key, value, expiry(ttl))))
  }

  /**
   * Claims a key with a text that only this claimer writes, and returns the text that holds it: the claimer's, if it won now
   * or earlier. After a lost reply it reads back and does not guess.
   */
  claim(key: string, own: string, ttl?: Ms): Promise<string> {
    return this.retry(async () => {
      for (;;) {
        if (await this.port.setIfNotExists(key, own, expiry(ttl))) return own
        // Undefined: the claim in our way expired between the two calls.
        const [holder] = await this.#read([key])
        if (holder !== undefined) return holder
      }
    })
  }

  async remove(key: string): Promise<void> {
    await this.retry(() =>
      // Without `delete` the entry is made to expire immediately.
      called(() => (this.port.delete === undefined ? this.port.set(key, GONE, 1) : this.port.delete(key))),
    )
  }

  get canCompare(): boolean {
    return this.port.compareAndSet !== undefined
  }

  /** Not repeated: after a lost reply the answer would be false. Callers read again and search for their own mark. */
  async compareAndSet(key: string, expected: string | undefined, next: string, ttl?: Ms): Promise<boolean> {
    return (await this.port.compareAndSet?.(key, expected, next, expiry(ttl))) ?? false
  }

  #writeOne({ key, value, ttl }: Entry): Promise<void> {
    return called(() => this.port.set(key, value, ttl))
  }

  async #readMany(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    const values = await this.port.getMany!(keys)
    const [got, wanted] = [values.length, keys.length]
    if (got === wanted) return Array.from(values, (value) => value ?? undefined)
    throw new MillraceError(
      'BAD_PORT',
      `store.getMany() answered ${got} values for ${wanted} keys: return one per key, in order, undefined where there is none.`,
      { facts: { got, wanted } },
    )
  }
}

const present = (text: string | undefined): string | undefined => (text === GONE ? undefined : text)

/** An entry with its expiry as ports mean it: absent is forever, and nothing is kept for less than a millisecond. */
export function entry(key: string, value: string, ttl?: Ms): Entry {
  const expires = expiry(ttl)
  return expires === undefined ? { key, value } : { key, value, ttl: expires }
}

function expiry(ttl: Ms | undefined): Ms | undefined {
  if (ttl === undefined || ttl === Infinity) return undefined
  return Math.max(1, Math.ceil(ttl))
}
