import { AsyncContext } from '../../../core/async-context.js'
import { doublingDelay } from '../../../core/retry/backoff.js'
import type { Clock, Random } from '../../../core/time/clock.js'
import { keepAlive } from '../../../core/time/keep-alive.js'
import type { StacksBackend } from '../backend.js'
import { InsideTransactionError, isConflict, ReentryDepthError, StacksClosedError } from '../errors.js'
import type { DurableDeliveries } from '../watch/durable-deliveries.js'
import type { PostCommit } from '../watch/post-commit.js'
import { DetachedRun, Detachment } from './detached.js'
import { FifoLock } from './fifo-lock.js'
import { outside, type Scope } from './scope.js'
import { Transaction } from './transaction.js'

/** How many hops a post-commit chain may have. */
const REENTRY_LIMIT = 16
/** How often a single write is tried again that lost against another before any handler ran. */
const SINGLE_WRITE_TRIES = 100

export interface TransactionsOptions {
  readonly backend: StacksBackend
  readonly clock: Clock
  readonly random: Random
  readonly postCommit: PostCommit
  readonly deliveries: DurableDeliveries
  /** Resolves when the durable watchers are known to the store; no write may come before. */
  readonly registered: () => Promise<void>
}

/** Runs transactions, and knows which one a call belongs to: the scope travels with the calls. */
export class Transactions {
  readonly #options: TransactionsOptions
  readonly #scopes = new AsyncContext<Scope>()
  /** One writer at a time, where the backend has one. Its turns are also the order of phase 2. */
  readonly #lock = new FifoLock()
  readonly #busy = new Set<Promise<unknown>>()
  #isClosed = false

  constructor(options: TransactionsOptions) {
    this.#options = options
  }

  get scope(): Scope {
    return this.#scopes.getStore() ?? outside()
  }

  runIn<T>(scope: Scope, run: () => T): T {
    return this.#scopes.run(scope, run)
  }

  /** Refuses transactions from now on, and waits for those that run. */
  async close(): Promise<void> {
    this.#isClosed = true
    while (this.#busy.size > 0) await Promise.allSettled(this.#busy)
  }

  checkOpen(): void {
    if (this.#isClosed) throw new StacksClosedError()
  }

  /** A transaction would wait for what waits for it to end. */
  checkOutside(call: string): void {
    const { frame, detachment } = this.scope
    const transaction = frame?.transaction ?? detachment?.from
    if (transaction?.isEnded === false) throw new InsideTransactionError(call, 'transaction')
  }

  checkNoHandler(call: string): void {
    const { slot, delivery } = this.scope
    if (slot?.isOver === false || delivery?.isOver === false) throw new InsideTransactionError(call, 'handler')
  }

  /** A new transaction, run again up to `retries` times when another one was faster. */
  run<R>(fn: (transaction: Transaction) => Promise<R>, isReadOnly: boolean, retries: number): Promise<R> {
    return this.#again(retries, () => this.#outermost(isReadOnly, fn))
  }

  /** A transaction of one write. It is tried again by itself as long as no handler has run. */
  async single<T>(run: (transaction: Transaction) => Promise<T>): Promise<T> {
    let hasCalledHandlers = false
    return this.#again(
      SINGLE_WRITE_TRIES,
      () =>
        this.#outermost(false, async (transaction) => {
          try {
            return await run(transaction)
          } finally {
            hasCalledHandlers = transaction.hasCalledHandlers
          }
        }),
      () => !hasCalledHandlers,
    )
  }

  detached<R>(fn: () => Promise<R>): Promise<R> {
    const scope = this.scope
    if (scope.frame === undefined) return (async () => fn())()
    const from = scope.frame.transaction
    // A snapshot holds no lock.
    if (from.isReadOnly) return this.#scopes.run({ ...scope, frame: undefined }, async () => fn())
    const detachment = new Detachment(from)
    const run = this.#scopes.run({ ...scope, frame: undefined, detachment }, async () => fn())
    return DetachedRun.of(run, () => {
      if (this.#scopes.getStore()?.frame?.transaction === from) detachment.awaited()
    })
  }

  async #again<T>(retries: number, run: () => Promise<T>, mayRepeat: () => boolean = () => true): Promise<T> {
    const { clock, random } = this.#options
    for (let tries = 0; ; tries += 1) {
      try {
        return await run()
      } catch (error) {
        if (!isConflict(error) || tries >= retries || !mayRepeat()) throw error
        // Our timers let a process end; this one has promised an answer.
        const release = clock.isReal === true ? keepAlive() : () => undefined
        await clock.sleep(doublingDelay(tries, { baseMs: 1, maxMs: 100, jitter: 'full' }, random)).finally(release)
      }
    }
  }

  #outermost<R>(isReadOnly: boolean, fn: (transaction: Transaction) => Promise<R>): Promise<R> {
    const run = this.#begin(isReadOnly, fn)
    this.#busy.add(run)
    const done = (): void => void this.#busy.delete(run)
    run.then(done, done)
    return run
  }

  async #begin<R>(isReadOnly: boolean, fn: (transaction: Transaction) => Promise<R>): Promise<R> {
    const scope = this.scope
    if (scope.hops >= REENTRY_LIMIT && !isReadOnly) {
      const refusal = new ReentryDepthError(REENTRY_LIMIT)
      scope.chain.refusal = refusal
      throw refusal
    }
    this.checkOpen()
    await this.#options.registered()
    const release = await this.#takeLock(isReadOnly, scope)
    let after: () => Promise<void>
    let value: R
    try {
      const transaction = new Transaction(await this.#options.backend.begin({ readOnly: isReadOnly }), isReadOnly)
      value = await this.#run(transaction, scope, fn)
      after = await this.#commit(transaction, scope)
    } finally {
      release()
    }
    await after()
    if (scope.hops === 0 && scope.chain.refusal !== undefined) throw scope.chain.refusal
    return value
  }

  async #takeLock(isReadOnly: boolean, scope: Scope): Promise<() => void> {
    if (isReadOnly || !this.#options.backend.isExclusive) return () => undefined
    return scope.detachment === undefined ? this.#lock.take() : scope.detachment.take(this.#lock)
  }

  /** Runs the function; when it or anything in it failed, rolls back and throws. */
  async #run<R>(transaction: Transaction, scope: Scope, fn: (transaction: Transaction) => Promise<R>): Promise<R> {
    const { root, backend } = transaction
    try {
      const value = await this.#scopes.run({ ...scope, frame: root }, () => fn(transaction))
      await root.close()
      if (transaction.doomed !== undefined) throw transaction.doomed
      return value
    } catch (error) {
      // What still waits is refused; what runs right now ends before the rollback.
      transaction.end()
      await root.close()
      await backend.rollback()
      throw error
    }
  }

  /** Commits, and returns what happens next: the phase-2 handlers, then the durable ones. */
  async #commit(transaction: Transaction, scope: Scope): Promise<() => Promise<void>> {
    const { backend, changes } = transaction
    const { postCommit, deliveries } = this.#options
    const events = changes.events()
    const deliver = deliveries.of(events, scope)
    let seq: number | null
    try {
      seq = events.length === 0 ? null : await backend.append(events, scope.hops)
      await backend.commit()
    } catch (error) {
      await backend.rollback()
      throw error
    } finally {
      transaction.end()
    }
    const phase2 = postCommit.turn(events, scope)
    return async () => {
      await phase2()
      if (seq !== null) await deliver(seq)
    }
  }
}
