import { callObserver } from '../../core/call-observer.js'
import { MillraceError } from '../../core/error.js'
import { newId } from '../../core/ids.js'
import { booleanOption, functionOption, integerOption, optionsObject } from '../../core/options.js'
import type {
  Book,
  ReadOnlyBook,
  Stacks,
  StacksWarning,
  TransactionContext,
  TransactionOptions,
  WatcherReport,
} from './api.js'
import type { BackendReads, BackendTx } from './backend.js'
import { applyWrite } from './documents/apply-write.js'
import { type BookHost, readHandle, type Write, writeHandle } from './documents/books.js'
import { type BookRef, type BookSchema, bookRef, indexesOf, watcherName } from './documents/names.js'
import { type BookEntry, type Doc, privateCopy } from './documents/value.js'
import { CascadeDepthError, ReadOnlyTransactionError } from './errors.js'
import { type OpenStacksOptions, type ResolvedStacksOptions, resolveStacksOptions } from './open-options.js'
import { changeEvent } from './transaction/coalesce.js'
import { outside, type Scope } from './transaction/scope.js'
import { Frame, type Transaction } from './transaction/transaction.js'
import { Transactions } from './transaction/transactions.js'
import { markVeto } from './transaction/veto.js'
import { DEAD_EVENTS, type DeadEvent, type DeadEventListing, DeadEvents } from './watch/dead-events.js'
import { DurableDeliveries } from './watch/durable-deliveries.js'
import type { ChangeEvent, ChangeHandler, WatchOptions } from './watch/events.js'
import { PostCommit } from './watch/post-commit.js'
import { Watchers } from './watch/watchers.js'
import { WriterRegistration } from './watch/writer-registration.js'

/** How often a transaction is run again that lost against another. Each time, one of the others has committed. */
const DEFAULT_RETRIES = 50
/** How deep writes of phase-1 handlers may nest. */
const CASCADE_LIMIT = 16

/**
 * Opens a document store: books of JSON documents, queries, transactions that travel with the calls, and watchers.
 *
 * @example
 * ```ts
 * const stacks = await openStacks({ backend: memoryStacks() })
 * await stacks.declare('shop', { orders: { indexes: ['status'] } })
 * await stacks.seal()
 * await stacks.book<{ id: string; status: string }>('shop', 'orders').put({ id: 'o-1', status: 'open' })
 * ```
 */
export async function openStacks(given: OpenStacksOptions): Promise<Stacks> {
  const options = resolveStacksOptions(given)
  await options.backend.open({ home: options.home })
  return new StacksEngine(options)
}

class StacksEngine implements Stacks {
  readonly #options: ResolvedStacksOptions
  readonly #watchers = new Watchers()
  readonly #transactions: Transactions
  readonly #deliveries: DurableDeliveries
  readonly #deadEvents: DeadEvents
  readonly #registration: WriterRegistration
  readonly #ambient: BookHost
  /** Durable watchers being registered; no write may come before. */
  #registering: Promise<void> = Promise.resolve()
  #sealing: Promise<void> | undefined
  #closing: Promise<void> | undefined

  constructor(options: ResolvedStacksOptions) {
    this.#options = options
    const { backend, clock, random, watcherLeaseMs: leaseMs, differentWatchers, onWarning } = options
    const instance = newId()
    const warn = (warning: StacksWarning): void => callObserver(() => onWarning(warning))
    const runIn = <T>(scope: Scope, run: () => T): T => this.#transactions.runIn(scope, run)
    const postCommit = new PostCommit({ watchers: this.#watchers, runIn, warn })
    this.#deadEvents = new DeadEvents({
      backend,
      clock,
      book: () => this.book<DeadEvent>(DEAD_EVENTS.ownerId, DEAD_EVENTS.book),
      handlerOf: (name) => this.#watchers.durable.find((watcher) => watcher.name === name),
    })
    this.#deliveries = new DurableDeliveries({
      outbox: backend.outbox,
      holder: instance,
      clock,
      leaseMs,
      runIn,
      warn,
      deadLetter: (...dead) => this.#deadEvents.add(...dead),
    })
    this.#registration = new WriterRegistration({
      writers: backend.writers,
      instance,
      clock,
      leaseMs,
      differentWatchers,
      warn,
    })
    const registered = () => this.#registering
    this.#transactions = new Transactions({
      backend,
      clock,
      random,
      postCommit,
      deliveries: this.#deliveries,
      registered,
    })
    this.#ambient = this.#host(() => this.#transactions.scope.frame)
  }

  book<T extends BookEntry>(ownerId: string, name: string): Book<T> {
    return writeHandle<T>(this.#ambient, bookRef(ownerId, name))
  }

  readBook<T extends BookEntry>(ownerId: string, name: string): ReadOnlyBook<T> {
    return readHandle<T>(this.#ambient, bookRef(ownerId, name))
  }

  watch<T extends BookEntry>(ownerId: string, book: string, handler: ChangeHandler<T>, options?: WatchOptions): void {
    const ref = bookRef(ownerId, book)
    // The owner of a book declares the type of its documents; the store keeps JSON.
    const durable = this.#watchers.add(ref, handler as unknown as ChangeHandler<Doc>, options)
    if (durable === undefined) return
    const { outbox } = this.#options.backend
    this.#registering = this.#registering.then(() => outbox.register(durable.name, ref))
    // The next write, or seal(), rejects with the reason.
    this.#registering.catch(() => undefined)
  }

  watched(ownerId: string, book: string): number {
    return this.#watchers.phase1(bookRef(ownerId, book)).length
  }

  async declare(ownerId: string, books: Readonly<Record<string, BookSchema>>): Promise<void> {
    this.#transactions.checkOpen()
    this.#transactions.checkOutside('declare()')
    const declared = Object.entries(books).map(([name, schema]) => {
      const ref = bookRef(ownerId, name)
      return [ref, indexesOf(schema ?? {}, ref)] as const
    })
    for (const [ref, indexes] of declared) await this.#options.backend.ensureBook(ref, indexes)
  }

  async transaction<R>(fn: (tx: TransactionContext) => Promise<R>, given?: TransactionOptions): Promise<R> {
    functionOption('transaction(fn)', fn)
    const options = optionsObject('transaction', given, ['retries', 'readOnly'])
    const retries = integerOption('transaction.retries', options.retries, { min: 0, default: DEFAULT_RETRIES })
    const { frame } = this.#transactions.scope
    if (frame !== undefined) return this.#join(frame, fn)
    const run = (transaction: Transaction): Promise<R> => fn(this.#contextOf(transaction.root))
    return this.#transactions.run(run, options.readOnly === true, retries)
  }

  detached<R>(fn: () => Promise<R>): Promise<R> {
    return this.#transactions.detached(fn)
  }

  onChangeElsewhere(callback: () => void): () => void {
    this.#transactions.checkOpen()
    return this.#options.backend.outbox.onAppend(functionOption('onChangeElsewhere(callback)', callback))
  }

  async seal(given?: { readonly deliver?: boolean }): Promise<void> {
    const { deliver } = optionsObject('seal', given, ['deliver'])
    const mayDeliver = booleanOption('seal.deliver', deliver, true)
    this.#transactions.checkOutside('seal()')
    this.#sealing ??= this.#seal().catch((error: unknown) => {
      // Refused is not sealed: it can be tried again when the others have stopped.
      this.#sealing = undefined
      throw error
    })
    await this.#sealing
    if (mayDeliver) await this.deliver()
  }

  async #seal(): Promise<void> {
    this.#transactions.checkOpen()
    this.#watchers.seal()
    await this.#registering
    await this.#registration.begin(this.#watchers.fingerprint)
  }

  async deliver(): Promise<void> {
    if (this.#sealing === undefined)
      throw new MillraceError('NOT_SEALED', 'Events are delivered once no more watchers can come. Call seal() first.')
    await this.#sealing
    await this.#deliveries.begin(this.#watchers.durable)
  }

  async watchers(): Promise<WatcherReport[]> {
    const states = await this.#options.backend.outbox.list()
    const dead = await this.#deadEvents.counts(states.map(({ name }) => name))
    return states.map((state, at) => ({ ...state, dead: dead[at] ?? 0 }))
  }

  async deadEvents(listing?: DeadEventListing): Promise<DeadEvent[]> {
    return this.#deadEvents.list(listing)
  }

  async redeliver(id: string): Promise<void> {
    this.#transactions.checkOutside('redeliver()')
    await this.#deadEvents.redeliver(id, async ({ handler }, event) => {
      // As when it is delivered: on its own, not as a part of what the caller does.
      await this.#transactions.runIn(outside(), async () => handler(privateCopy(event)))
    })
  }

  async forgetWatcher(name: string): Promise<void> {
    this.#transactions.checkOutside('forgetWatcher()')
    await this.#options.backend.outbox.forget(watcherName(name))
  }

  async close(): Promise<void> {
    this.#transactions.checkOutside('close()')
    this.#transactions.checkNoHandler('close()')
    this.#closing ??= this.#close()
    await this.#closing
  }

  async rest(): Promise<void> {
    this.#transactions.checkNoHandler('rest()')
    await this.#deliveries.stop()
  }

  async #close(): Promise<void> {
    // First of all, so that a handler that runs now can still write.
    await this.rest()
    await this.#transactions.close()
    await this.#registration.end()
    await this.#options.backend.close()
  }

  /** Where the reads and writes of a handle go: to the piece of code that runs now, or outside of transactions. */
  #host(frameOf: () => Frame | undefined): BookHost {
    return {
      maxDocumentBytes: this.#options.maxDocumentBytes,
      read: (run) => this.#read(frameOf(), run),
      write: (ref, write) => this.#write(frameOf(), ref, write),
    }
  }

  #contextOf(root: Frame): TransactionContext {
    const host = this.#host(() => {
      const { frame } = this.#transactions.scope
      // Inside a phase-1 handler of the same transaction the handler's place counts: its trigger still holds the root's.
      return frame?.transaction === root.transaction ? frame : root
    })
    return {
      book: <T extends BookEntry>(ownerId: string, name: string) => writeHandle<T>(host, bookRef(ownerId, name)),
      readBook: <T extends BookEntry>(ownerId: string, name: string) => readHandle<T>(host, bookRef(ownerId, name)),
    }
  }

  async #read<T>(frame: Frame | undefined, run: (reads: BackendReads) => Promise<T>): Promise<T> {
    if (frame !== undefined) return frame.run(() => frame.transaction.step(run))
    this.#transactions.checkOpen()
    return run(this.#options.backend.reads)
  }

  #write(frame: Frame | undefined, ref: BookRef, write: Write): Promise<Doc | null> {
    if (frame !== undefined) return frame.run((tx) => this.#apply(frame, tx, ref, write))
    return this.#transactions.single((transaction) => {
      const { root } = transaction
      return root.run((tx) => this.#apply(root, tx, ref, write))
    })
  }

  async #join<R>(frame: Frame, fn: (tx: TransactionContext) => Promise<R>): Promise<R> {
    frame.check()
    try {
      return await fn(this.#contextOf(frame))
    } catch (error) {
      frame.transaction.doom(error)
      throw error
    }
  }

  /** One write: the document, then the phase-1 handlers, each awaited. */
  async #apply(frame: Frame, tx: BackendTx, ref: BookRef, write: Write): Promise<Doc | null> {
    const { transaction, level } = frame
    if (transaction.isReadOnly) throw new ReadOnlyTransactionError()
    if (level > CASCADE_LIMIT) {
      const error = new CascadeDepthError(CASCADE_LIMIT, ref.ownerId, ref.book)
      transaction.doom(error)
      throw error
    }
    const { id, prev, now } = await transaction.step(() => applyWrite(tx, ref, write, this.#options.maxDocumentBytes))
    if (prev === null && now === null) return null
    transaction.changes.record(ref, id, prev, now)
    const event = changeEvent(ref, id, prev, now)
    if (event !== undefined) await this.#phase1(frame, event)
    return now === null ? null : privateCopy(now)
  }

  async #phase1(frame: Frame, event: ChangeEvent<Doc>): Promise<void> {
    const { transaction, level } = frame
    for (const { handler } of this.#watchers.phase1(event)) {
      transaction.hasCalledHandlers = true
      const inner = new Frame(transaction, level + 1)
      try {
        await this.#transactions.runIn({ ...this.#transactions.scope, frame: inner }, async () =>
          handler(privateCopy(event)),
        )
        await inner.close()
        // It may have caught the failure of something that it triggered.
        if (transaction.doomed !== undefined) throw transaction.doomed
      } catch (error) {
        transaction.doom(error)
        if (!transaction.isBroken) markVeto(error)
        await inner.close()
        throw error
      }
    }
  }
}
