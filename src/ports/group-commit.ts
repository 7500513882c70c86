import type { Clock } from '../core/clock.js'
import { MillraceError } from '../core/error.js'
import { OptionRangeError } from '../core/options.js'
import type { Maybe, Ms } from '../core/time.js'

/** Options of {@link GroupCommit}. */
export interface GroupCommitOptions<T, R> {
  /**
   * Sends one batch; the results align with it. It may answer at once or later. A rejection, or a throw, is the outcome of
   * every item of that batch and of no other.
   */
  flush(batch: readonly T[]): Maybe<readonly R[]>
  /** Most items in one batch. Default: no limit beyond `maxUnsent`. */
  readonly maxBatch?: number
  /**
   * How many batches may be under way at once. With one, a busy system batches by itself, and a batch that hangs holds up
   * what comes after it; with `Infinity` only what is added in the same turn travels together. Default: 1.
   */
  readonly maxUnderWay?: number
  /**
   * How long a batch may be under way. After that its items reject with `OUTCOME_UNKNOWN` and the next batch leaves, so that
   * a call which is never answered does not hold up the others for ever. Default: no limit.
   */
  readonly patience?: { readonly ms: Ms; readonly clock: Clock }
  /** Most items that wait to be sent; what is under way does not count. Default: 10 000. */
  readonly maxUnsent?: number
  /** Most bytes that wait to be sent, as counted by `sizeOf`. Default: 16 MiB. */
  readonly maxUnsentBytes?: number
  /** The size of an item in bytes. Without it only the number of items is limited. */
  sizeOf?(item: T): number
}

/** More was added than could be sent. Nothing of what was refused has been, or will be, sent. */
export class BufferFullError extends MillraceError {
  constructor(limit: 'maxUnsent' | 'maxUnsentBytes', most: number, waiting: number, added: number) {
    const unit = limit === 'maxUnsent' ? 'items' : 'bytes'
    super(
      'BUFFER_FULL',
      `${waiting} ${unit} wait to be sent and ${added} more would exceed ${limit} (${most}): they arrive faster than the ` +
        'backend takes them. Wait until earlier ones are accepted before adding more, add fewer at once, ' +
        `or raise ${limit}.`,
      { facts: { limit, most, waiting, added } },
    )
  }
}

/** A batch was not answered in time. It may have been applied, or may still be: only a repetition that is harmless is safe. */
export class OutcomeUnknownError extends MillraceError {
  constructor(afterMs: Ms) {
    super(
      'OUTCOME_UNKNOWN',
      `The backend did not answer within ${afterMs} ms, so nobody knows whether this was written. Repeat it under the same ` +
        'id (that is harmless), or look whether it is there.',
      { facts: { afterMs } },
    )
  }
}

/** Who waits for a run of neighbouring items. A count of 0 stands for one item whose result is given alone. */
interface Waiter<R> {
  readonly count: number
  readonly resolve: (value: R | readonly R[]) => void
  readonly reject: (error: unknown) => void
}

/**
 * Turns many small calls into few large ones, without a timer: what is added while nothing is under way leaves at the end of
 * the current turn of microtasks; what is added meanwhile leaves together when the reply has come. So an idle system waits
 * for nothing, and a busy one batches by itself.
 *
 * @example
 * ```ts
 * const commits = new GroupCommit<Settlement, CommitResult>({ flush: (batch) => ledger.commit(batch) })
 * await Promise.all(settlements.map((one) => commits.add(one))) // one call of ledger.commit
 * ```
 */
export class GroupCommit<T, R> {
  readonly #options: GroupCommitOptions<T, R>
  readonly #maxBatch: number
  readonly #maxUnderWay: number
  readonly #maxUnsent: number
  readonly #maxUnsentBytes: number
  #items: T[] = []
  #waiters: Waiter<R>[] = []
  #bytes = 0
  #isArmed = false
  #underWay = 0
  #idlers: (() => void)[] = []
  readonly #flush = (): void => {
    this.#isArmed = false
    this.#send()
  }

  constructor(options: GroupCommitOptions<T, R>) {
    this.#options = options
    this.#maxUnsent = limit('maxUnsent', options.maxUnsent ?? 10_000)
    this.#maxUnsentBytes = limit('maxUnsentBytes', options.maxUnsentBytes ?? 16 * 1024 * 1024)
    this.#maxBatch = limit('maxBatch', options.maxBatch ?? Infinity)
    this.#maxUnderWay = limit('maxUnderWay', options.maxUnderWay ?? 1)
    const patienceMs = options.patience?.ms
    if (patienceMs !== undefined && !(patienceMs > 0)) {
      throw new OptionRangeError('GroupCommit.patience.ms', 'a number > 0', patienceMs)
    }
  }

  /** How many items wait to be sent. */
  get unsent(): number {
    return this.#items.length
  }

  /** Adds one item; resolves with its own result. Rejects with `BUFFER_FULL` when too much waits already. */
  add(item: T): Promise<R> {
    const full = this.#refusal(1, this.#options.sizeOf?.(item) ?? 0)
    if (full !== undefined) return Promise.reject(full)
    return new Promise<R>((resolve, reject) => {
      this.#items.push(item)
      // A waiter of count 0 is only ever resolved with one result, one of a run only with a list: see #settle.
      this.#waiters.push({ count: 0, resolve: resolve as Waiter<R>['resolve'], reject })
      this.#arm()
    })
  }

  /**
   * Adds neighbours with one promise for all of them, which is cheaper than one each. All of them are refused, or none.
   * Rejects when the batch of any of them does.
   */
  async addMany(items: readonly T[]): Promise<readonly R[]> {
    if (items.length === 0) return []
    const { sizeOf } = this.#options
    const bytes = sizeOf === undefined ? 0 : items.reduce((sum, item) => sum + sizeOf(item), 0)
    const full = this.#refusal(items.length, bytes)
    if (full !== undefined) throw full
    if (items.length <= this.#maxBatch) return this.#addRun(items)
    const runs: Promise<readonly R[]>[] = []
    for (let from = 0; from < items.length; from += this.#maxBatch)
      runs.push(this.#addRun(items.slice(from, from + this.#maxBatch)))
    return (await Promise.all(runs)).flat(1) as readonly R[]
  }

  /** Resolves when nothing waits and nothing is under way: everything added so far has its outcome. */
  idle(): Promise<void> {
    if (this.#underWay === 0 && this.#items.length === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idlers.push(resolve))
  }

  #addRun(items: readonly T[]): Promise<readonly R[]> {
    return new Promise<readonly R[]>((resolve, reject) => {
      for (const item of items) this.#items.push(item)
      this.#waiters.push({ count: items.length, resolve: resolve as Waiter<R>['resolve'], reject })
      this.#arm()
    })
  }

  #refusal(count: number, bytes: number): BufferFullError | undefined {
    const waiting = this.#items.length
    if (waiting + count > this.#maxUnsent) return new BufferFullError('maxUnsent', this.#maxUnsent, waiting, count)
    // Something larger than the whole buffer still goes when nothing else waits: refused, it could never be sent.
    if (waiting > 0 && this.#bytes + bytes > this.#maxUnsentBytes)
      return new BufferFullError('maxUnsentBytes', this.#maxUnsentBytes, this.#bytes, bytes)
    this.#bytes += bytes
    return undefined
  }

  #arm(): void {
    if (this.#isArmed || this.#underWay >= this.#maxUnderWay) return
    this.#isArmed = true
    queueMicrotask(this.#flush)
  }

  #send(): void {
    if (this.#underWay >= this.#maxUnderWay || this.#items.length === 0) return
    const { items, waiters } = this.#take()
    let reply: Maybe<readonly R[]>
    this.#underWay += 1
    // What did not fit into this batch need not wait for its reply.
    if (this.#items.length > 0) this.#arm()
    try {
      reply = this.#options.flush(items)
    } catch (error) {
      this.#settle(waiters, items.length, undefined, error)
      return
    }
    if (!isLater(reply)) this.#settle(waiters, items.length, reply, undefined)
    else this.#await(reply, waiters, items.length)
  }

  /** Answered once: by the reply, or when patience ends. */
  #await(reply: Promise<readonly R[]>, waiters: readonly Waiter<R>[], count: number): void {
    const { patience } = this.#options
    let isOpen = true
    const answer = (results: readonly R[] | undefined, error: unknown): void => {
      if (!isOpen) return
      isOpen = false
      cancel?.()
      this.#settle(waiters, count, results, error)
    }
    const cancel = patience?.clock.after(patience.ms, () => answer(undefined, new OutcomeUnknownError(patience.ms)))
    reply.then(
      (results) => answer(results, undefined),
      (error: unknown) => answer(undefined, error),
    )
  }

  /** The next batch: everything, or as many whole runs as fit. */
  #take(): { readonly items: T[]; readonly waiters: Waiter<R>[] } {
    const items = this.#items
    const waiters = this.#waiters
    if (items.length <= this.#maxBatch) {
      this.#items = []
      this.#waiters = []
      this.#bytes = 0
      return { items, waiters }
    }
    let taken = 0
    let runs = 0
    for (; runs < waiters.length; runs += 1) {
      const count = waiters[runs]!.count || 1
      if (taken + count > this.#maxBatch) break
      taken += count
    }
    const { sizeOf } = this.#options
    const batch = items.splice(0, taken)
    if (sizeOf !== undefined) for (const item of batch) this.#bytes -= sizeOf(item)
    return { items: batch, waiters: waiters.splice(0, runs) }
  }

  #settle(waiters: readonly Waiter<R>[], count: number, results: readonly R[] | undefined, error: unknown): void {
    this.#underWay -= 1
    if (results !== undefined && results.length === count) {
      let next = 0
      for (const waiter of waiters) {
        if (waiter.count === 0) waiter.resolve(results[next++]!)
        else {
          waiter.resolve(results.slice(next, next + waiter.count))
          next += waiter.count
        }
      }
    } else {
      const cause = results === undefined ? error : misaligned(results.length, count)
      for (const waiter of waiters) waiter.reject(cause)
    }
    // Not at once: whoever was just answered may add its next item in this turn, and then they travel together.
    if (this.#items.length > 0) this.#arm()
    else if (this.#underWay === 0) for (const idler of this.#idlers.splice(0)) idler()
  }
}

function isLater<T>(value: Maybe<T>): value is Promise<T> {
  return typeof (value as Partial<Promise<T>> | undefined)?.then === 'function'
}

function limit(name: string, value: number): number {
  if (value >= 1 && (value === Infinity || Number.isInteger(value))) return value
  throw new OptionRangeError(`GroupCommit.${name}`, 'an integer of at least 1 (or Infinity)', value)
}

function misaligned(got: number, wanted: number): MillraceError {
  return new MillraceError(
    'BAD_FLUSH',
    `flush() answered ${got} results for a batch of ${wanted} items: return exactly one result per item, in order.`,
    { facts: { got, wanted } },
  )
}
