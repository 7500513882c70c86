import { MillraceError } from './error.js'
import { OptionRangeError } from './options.js'
import type { Clock } from './time/clock.js'
import type { EventLoopTurns } from './time/event-loop-turns.js'
import { RoomSignal } from './time/room-signal.js'
import { isPromise, type MaybePromise, type Ms } from './time/time.js'

/** Options of {@link GroupCommit}. */
export interface GroupCommitOptions<T, R> {
  /**
   * Sends one batch; the results align with it. It may answer synchronously or later. A rejection, or a throw, is the outcome of
   * every item of that batch and of no other, unless `repeat` sends the batch again.
   */
  flush(batch: readonly T[]): MaybePromise<readonly R[]>
  /** Most items in one batch. Default: no limit beyond `maxUnsent`. */
  readonly maxBatch?: number
  /** Most bytes in one batch, as counted by `sizeOf`; a larger item is sent by itself. Default: no limit. */
  readonly maxBatchBytes?: number
  /**
   * How many batches may be in flight. With one, a busy system batches by itself, and a batch that hangs holds up
   * what comes after it; with `Infinity` only what is added in the same turn travels together. Default: 1.
   */
  readonly maxUnderWay?: number
  /**
   * How long a batch may be in flight. After that its items reject with `OUTCOME_UNKNOWN` and the next batch leaves, so that
   * a call which is never answered does not delay the others forever. Default: no limit.
   */
  readonly timeout?: { readonly ms: Ms; readonly clock: Clock }
  /** Sends a batch that failed again, as it was, until it is answered. Only for batches that may be applied twice. */
  readonly repeat?: Repeat<T>
  /** Lets the event loop in between two batches of a flush that never waits for anything outside the process. */
  readonly turns?: EventLoopTurns
  /** Most items that wait to be sent; what is in flight does not count. Default: 10 000. */
  readonly maxUnsent?: number
  /** Most bytes that wait to be sent, as counted by `sizeOf`. Default: 16 MiB. */
  readonly maxUnsentBytes?: number
  /** The size of an item in bytes. Without it only the number of items is limited. */
  sizeOf?(item: T): number
}

/** How a batch that failed is sent again. */
export interface Repeat<T> {
  readonly clock: Clock
  /** How long to wait after a batch has failed so often. */
  readonly delayMs: (failures: number) => Ms
  /** Called for every failure: `failures` is 1 for the first one of a batch. */
  readonly failed: (error: unknown, failures: number, batch: readonly T[]) => void
  /** No repetition can succeed: the items reject. */
  readonly isFinal?: (error: unknown) => boolean
}

const UNSENT = { waits: 'wait to be sent', because: 'they arrive faster than the backend takes them' }

/** More was added than could be sent. Nothing of what was refused has been, or will be, sent. */
export class BufferFullError extends MillraceError {
  constructor(
    limit: 'maxUnsent' | 'maxUnsentBytes',
    most: number,
    waiting: number,
    added: number,
    why: { readonly waits: string; readonly because: string } = UNSENT,
  ) {
    const unit = limit === 'maxUnsent' ? 'items' : 'bytes'
    super(
      'BUFFER_FULL',
      `${waiting} ${unit} ${why.waits} and ${added} more would exceed ${limit} (${most}): ${why.because}. ` +
        'Wait until earlier ones are accepted before adding more, add fewer at once, ' +
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
      `The backend did not answer within ${afterMs} ms, so it is not known whether this was written. Repeat it under the same ` +
        'id (that is harmless), or look whether it is there.',
      { facts: { afterMs } },
    )
  }
}

/** The caller that waits for one item. Neither of its functions may throw. */
export interface Answer<R> {
  resolve(result: R): void
  reject(error: unknown): void
}

/** The caller that waits for neighbouring items, which travel together. */
class Neighbours<R> {
  readonly count: number
  readonly to: Answer<readonly R[]>

  constructor(count: number, to: Answer<readonly R[]>) {
    this.count = count
    this.to = to
  }
}

/** Who waits, for one item or for several. */
type Waiter<R> = Answer<R> | Neighbours<R>

const countOf = (waiter: Waiter<unknown>): number => (waiter instanceof Neighbours ? waiter.count : 1)

/** Items that travel together, and those who wait for them. */
interface Batch<T, R> {
  items: readonly T[]
  waiters: readonly Waiter<R>[]
  failures: number
  /** How many batches had been answered when it last failed. */
  answersBefore: number
}

/**
 * A batch that failed so often goes behind the others and waits without a place, so that they get through if it is at fault: one item
 * that can never be written must not hold up the rest. Where others got through since its last try, it goes on in halves. Where
 * nothing does, the backend is at fault: it is tried in halves only every so many times, and those go on together.
 */
const TRIES_IN_FRONT = 5

/**
 * Turns many small calls into few large ones, without a timer: what is added while nothing is in flight leaves at the end of
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
  readonly #maxBatchBytes: number
  readonly #maxInFlight: number
  readonly #maxUnsent: number
  readonly #maxUnsentBytes: number
  #items: T[] = []
  #waiters: Waiter<R>[] = []
  #bytes = 0
  /** Batches that failed and whose next try is due; they go before what is new. */
  readonly #again: Batch<T, R>[] = []
  /** Batches that failed and whose next try is not due yet. */
  #resting = 0
  /** The one of them that others may join. */
  #pool: Batch<T, R> | undefined
  #isArmed = false
  #inFlight = 0
  /** How many batches were answered so far. */
  #answers = 0
  #idlers: (() => void)[] = []
  readonly #room = new RoomSignal(
    () => this.#items.length > this.#maxUnsent / 2 || this.#bytes > this.#maxUnsentBytes / 2,
  )
  readonly #flush = (): void => {
    const due = this.#options.turns?.due()
    if (due !== undefined) {
      void due.then(this.#flush)
      return
    }
    this.#isArmed = false
    this.#send()
  }

  constructor(options: GroupCommitOptions<T, R>) {
    this.#options = options
    this.#maxUnsent = limit('maxUnsent', options.maxUnsent ?? 10_000)
    this.#maxUnsentBytes = limit('maxUnsentBytes', options.maxUnsentBytes ?? 16 * 1024 * 1024)
    this.#maxBatch = limit('maxBatch', options.maxBatch ?? Infinity)
    this.#maxBatchBytes = limit('maxBatchBytes', options.maxBatchBytes ?? Infinity)
    this.#maxInFlight = limit('maxUnderWay', options.maxUnderWay ?? 1)
    const timeoutMs = options.timeout?.ms
    if (timeoutMs !== undefined && !(timeoutMs > 0)) {
      throw new OptionRangeError('GroupCommit.timeout.ms', 'a number > 0', timeoutMs)
    }
  }

  /** How many items wait to be sent. */
  get unsent(): number {
    return this.#items.length
  }

  /** Adds one item; resolves with its own result. Rejects with `BUFFER_FULL` when too much waits already. */
  add(item: T): Promise<R> {
    return new Promise<R>((resolve, reject) => this.addFor({ resolve, reject }, item))
  }

  /** The same without a promise: for thousands of items a turn, each with an object that is made for it anyway. */
  addFor(to: Answer<R>, item: T): void {
    const full = this.#refusal(1, this.#options.sizeOf?.(item) ?? 0)
    if (full !== undefined) {
      to.reject(full)
      return
    }
    this.#items.push(item)
    this.#waiters.push(to)
    this.#arm()
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
    if (items.length <= this.#maxBatch && bytes <= this.#maxBatchBytes) return this.#addRun(items)
    const runs: Promise<readonly R[]>[] = []
    for (let from = 0; from < items.length; ) {
      const to = from + this.#fitting(items, from)
      runs.push(this.#addRun(items.slice(from, to)))
      from = to
    }
    return (await Promise.all(runs)).flat(1) as readonly R[]
  }

  /** Backpressure: undefined where there is plenty of room, otherwise a promise to await before adding more. */
  whenRoom(): Promise<void> | undefined {
    return this.#room.whenRoom()
  }

  /** Resolves when nothing waits and nothing is in flight: everything added so far has its outcome. */
  idle(): Promise<void> {
    if (this.#isIdle) return Promise.resolve()
    return new Promise((resolve) => this.#idlers.push(resolve))
  }

  #addRun(items: readonly T[]): Promise<readonly R[]> {
    return new Promise<readonly R[]>((resolve, reject) => {
      for (const item of items) this.#items.push(item)
      this.#waiters.push(new Neighbours(items.length, { resolve, reject }))
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
    if (this.#isArmed || this.#inFlight >= this.#maxInFlight) return
    this.#isArmed = true
    queueMicrotask(this.#flush)
  }

  #send(): void {
    if (this.#inFlight >= this.#maxInFlight) return
    const batch = this.#again.shift() ?? (this.#items.length === 0 ? undefined : this.#take())
    if (batch === undefined) return
    let reply: MaybePromise<readonly R[]>
    this.#inFlight += 1
    this.#room.left()
    // What did not fit into this batch need not wait for its reply.
    if (this.#again.length > 0 || this.#items.length > 0) this.#arm()
    try {
      reply = this.#options.flush(batch.items)
    } catch (error) {
      this.#failed(batch, error)
      return
    }
    if (!isPromise(reply)) this.#answered(batch, reply)
    else this.#await(reply, batch)
  }

  /** Answered once: by the reply, or by the timeout. */
  #await(reply: Promise<readonly R[]>, batch: Batch<T, R>): void {
    const { timeout } = this.#options
    let isOpen = true
    const once = (go: () => void): void => {
      if (!isOpen) return
      isOpen = false
      cancel?.()
      go()
    }
    const cancel = timeout?.clock.after(timeout.ms, () =>
      once(() => this.#failed(batch, new OutcomeUnknownError(timeout.ms))),
    )
    reply.then(
      (results) => once(() => this.#answered(batch, results)),
      (error: unknown) => once(() => this.#failed(batch, error)),
    )
  }

  /** The next batch: everything, or as many whole runs as fit. */
  #take(): Batch<T, R> {
    const items = this.#items
    const waiters = this.#waiters
    if (items.length <= this.#maxBatch && this.#bytes <= this.#maxBatchBytes) {
      this.#items = []
      this.#waiters = []
      this.#bytes = 0
      return { items, waiters, failures: 0, answersBefore: this.#answers }
    }
    const fitting = this.#fitting(items, 0)
    let taken = 0
    let runs = 0
    for (; runs < waiters.length; runs += 1) {
      const count = countOf(waiters[runs]!)
      // A run of several has been cut to fit: it may go beyond the bytes that were counted from here, never the first.
      if (taken > 0 && taken + count > fitting) break
      taken += count
    }
    const { sizeOf } = this.#options
    const batch = items.splice(0, taken)
    if (sizeOf !== undefined) for (const item of batch) this.#bytes -= sizeOf(item)
    return { items: batch, waiters: waiters.splice(0, runs), failures: 0, answersBefore: this.#answers }
  }

  /** How many of these, from there on, make one batch: at least one. */
  #fitting(items: readonly T[], from: number): number {
    const most = Math.min(items.length - from, this.#maxBatch)
    const { sizeOf } = this.#options
    if (sizeOf === undefined || this.#maxBatchBytes === Infinity) return most
    let bytes = 0
    for (let count = 0; count < most; count += 1) {
      bytes += sizeOf(items[from + count]!)
      if (bytes > this.#maxBatchBytes) return Math.max(1, count)
    }
    return most
  }

  #answered(batch: Batch<T, R>, results: readonly R[]): void {
    const { items, waiters } = batch
    this.#answers += 1
    if (results.length !== items.length) {
      this.#reject(batch, misaligned(results.length, items.length))
      return
    }
    let next = 0
    for (const waiter of waiters) {
      const from = next
      next += countOf(waiter)
      if (waiter instanceof Neighbours) waiter.to.resolve(results.slice(from, next))
      else waiter.resolve(results[from]!)
    }
    this.#left()
  }

  #failed(batch: Batch<T, R>, error: unknown): void {
    const { repeat } = this.#options
    if (repeat === undefined || repeat.isFinal?.(error) === true) {
      this.#reject(batch, error)
      return
    }
    batch.failures += 1
    repeat.failed(error, batch.failures, batch.items)
    // At first it keeps its place while it waits: a backend that is away is asked by few batches, not by all of them in turn.
    const isInFront = batch.failures < TRIES_IN_FRONT
    const isAtFault = this.#answers > batch.answersBefore
    const isApart = isAtFault || batch.failures % TRIES_IN_FRONT === 0
    batch.answersBefore = this.#answers
    if (isInFront || isApart) this.#rest(batch, isInFront)
    else this.#restTogether(batch)
    if (!isInFront) this.#left()
  }

  #rest(batch: Batch<T, R>, isInFront: boolean): void {
    this.#due(batch, () => {
      if (isInFront) {
        this.#again.unshift(batch)
        this.#left()
      } else {
        this.#again.push(...halves(batch))
        this.#arm()
      }
    })
  }

  /** With what else failed because the backend is away, as far as it fits: so its return is met by few batches. */
  #restTogether(batch: Batch<T, R>): void {
    const pool = this.#pool
    const both = pool === undefined ? undefined : [...pool.items, ...batch.items]
    if (pool !== undefined && both !== undefined && this.#fitting(both, 0) === both.length) {
      pool.items = both
      pool.waiters = [...pool.waiters, ...batch.waiters]
      pool.failures = Math.max(pool.failures, batch.failures)
      return
    }
    this.#pool = batch
    this.#due(batch, () => {
      if (this.#pool === batch) this.#pool = undefined
      this.#again.push(batch)
      this.#arm()
    })
  }

  #due(batch: Batch<T, R>, go: () => void): void {
    const { clock, delayMs } = this.#options.repeat!
    this.#resting += 1
    clock.after(delayMs(batch.failures), () => {
      this.#resting -= 1
      go()
    })
  }

  #reject({ waiters }: Batch<T, R>, error: unknown): void {
    for (const waiter of waiters) (waiter instanceof Neighbours ? waiter.to : waiter).reject(error)
    this.#left()
  }

  get #isIdle(): boolean {
    return this.#inFlight === 0 && this.#resting === 0 && this.#items.length === 0 && this.#again.length === 0
  }

  #left(): void {
    this.#inFlight -= 1
    // Not immediately: a caller that was just answered may add its next item in this turn, and then they share a batch.
    if (this.#again.length > 0 || this.#items.length > 0) this.#arm()
    else if (this.#isIdle) for (const idler of this.#idlers.splice(0)) idler()
  }
}

/** The same items as two batches, if they are more than one run. */
function halves<T, R>(batch: Batch<T, R>): readonly Batch<T, R>[] {
  const { items, waiters, ...rest } = batch
  if (waiters.length < 2) return [batch]
  const middle = waiters.length >> 1
  const first = waiters.slice(0, middle)
  const count = first.reduce((sum, waiter) => sum + countOf(waiter), 0)
  return [
    { items: items.slice(0, count), waiters: first, ...rest },
    { items: items.slice(count), waiters: waiters.slice(middle), ...rest },
  ]
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
