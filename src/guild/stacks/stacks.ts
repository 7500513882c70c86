import { AsyncLocalStorage } from 'node:async_hooks'
import { MillraceError } from '../../core/error.js'
import { newId, newToken } from '../../core/ids.js'
import { keepAlive } from '../../core/keep-alive.js'
import { booleanOption, functionOption, integerOption, optionsObject } from '../../core/options.js'
import { tell } from '../../core/tell.js'
import { unreachable } from '../../core/unreachable.js'
import type { Book, ReadOnlyBook, Stacks, StacksWarning, TransactionContext, TransactionOptions } from './api.js'
import type { BackendReads, BackendTx, Stored, WatcherState } from './backend.js'
import { type BookHost, readHandle, type Write, writeHandle } from './books.js'
import { changeEvent } from './coalesce.js'
import { DetachedRun, Detachment } from './detached.js'
import { DurablePump } from './durable-pump.js'
import { Enrolment } from './enrolment.js'
import {
  CascadeDepthError,
  DocumentNotFoundError,
  InsideTransactionError,
  isConflict,
  ReadOnlyTransactionError,
  ReentryDepthError,
  StacksClosedError,
  StaleWriteError,
} from './errors.js'
import type { ChangeEvent, ChangeHandler, WatchOptions } from './events.js'
import { FifoLock } from './fifo-lock.js'
import { type BookRef, type BookSchema, bookKey, bookRef, indexesOf, watcherName } from './names.js'
import { type OpenStacksOptions, type ResolvedStacksOptions, resolveStacksOptions } from './open-options.js'
import { PostCommit } from './post-commit.js'
import { outside, type Scope } from './scope.js'
import { Frame, Transaction } from './transaction.js'
import { type BookEntry, checkSize, type Doc, patched, privateCopy } from './value.js'
import { Watchers } from './watchers.js'

/** How deep writes of phase-1 handlers may nest. */
const CASCADE_LIMIT = 16
/** How many hops a post-commit chain may have. */
const REENTRY_LIMIT = 16
/** How often a single write is tried again that lost against another before any handler ran. */
const SINGLE_WRITE_TRIES = 100

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

/** What a commit brought: its events, the place of the last one, and the pumps that are to tell them. */
interface Committed {
  readonly events: ChangeEvent<Doc>[]
  readonly seq: number | null
  readonly told: readonly { readonly pump: DurablePump; readonly wasBehind: boolean }[]
}

class StacksEngine implements Stacks {
  readonly #options: ResolvedStacksOptions
  readonly #scopes = new AsyncLocalStorage<Scope>()
  readonly #watchers = new Watchers()
  readonly #postCommit: PostCommit
  /** One writer at a time, where the backend has one. Its turns are also the order of phase 2. */
  readonly #lock = new FifoLock()
  readonly #instance = newId()
  readonly #enrolment: Enrolment
  readonly #pumps: DurablePump[] = []
  readonly #ambient: BookHost
  /** Durable watchers being made known; no write may come before. */
  #registering: Promise<void> = Promise.resolve()
  readonly #busy = new Set<Promise<unknown>>()
  #sealing: Promise<void> | undefined
  #isDelivering = false
  #isResting = false
  #isClosed = false
  #closing: Promise<void> | undefined
  #stopListening: () => void = () => undefined

  constructor(options: ResolvedStacksOptions) {
    this.#options = options
    const runIn = <T>(scope: Scope, run: () => T): T => this.#scopes.run(scope, run)
    this.#postCommit = new PostCommit({ watchers: this.#watchers, runIn, warn: (warning) => this.#warn(warning) })
    this.#ambient = this.#host(() => this.#scope().frame)
    const { backend, clock, watcherLeaseMs: leaseMs, differentWatchers } = options
    const warn = (warning: StacksWarning): void => this.#warn(warning)
    const common = { instance: this.#instance, clock, leaseMs, differentWatchers, warn }
    this.#enrolment = new Enrolment({ ...common, writers: backend.writers })
  }

  book<T extends BookEntry>(ownerId: string, name: string): Book<T> {
    return writeHandle<T>(this.#ambient, bookRef(ownerId, name))
  }

  readBook<T extends BookEntry>(ownerId: string, name: string): ReadOnlyBook<T> {
    return readHandle<T>(this.#ambient, bookRef(ownerId, name))
  }

  watch<T extends BookEntry>(ownerId: string, book: string, handler: ChangeHandler<T>, options?: WatchOptions): void {
    const ref = bookRef(ownerId, book)
    // The type of a book's documents is its owner's word: the store keeps JSON.
    const durable = this.#watchers.add(ref, handler as unknown as ChangeHandler<Doc>, options)
    if (durable === undefined) return
    const { outbox } = this.#options.backend
    this.#registering = this.#registering.then(() => outbox.register(durable.name, ref))
    // Whoever writes or seals hears why it failed.
    this.#registering.catch(() => undefined)
  }

  async declare(ownerId: string, books: Readonly<Record<string, BookSchema>>): Promise<void> {
    this.#checkOpen()
    this.#checkOutside('declare()')
    const declared = Object.entries(books).map(([name, schema]) => {
      const ref = bookRef(ownerId, name)
      return [ref, indexesOf(schema ?? {}, ref)] as const
    })
    for (const [ref, indexes] of declared) await this.#options.backend.ensureBook(ref, indexes)
  }

  async transaction<R>(fn: (tx: TransactionContext) => Promise<R>, given?: TransactionOptions): Promise<R> {
    functionOption('transaction(fn)', fn)
    const options = optionsObject('transaction', given, ['retries', 'readOnly'])
    const retries = integerOption('transaction.retries', options.retries, { min: 0, default: 0 })
    const { frame } = this.#scope()
    if (frame !== undefined) return this.#join(frame, fn)
    const isReadOnly = options.readOnly === true
    return this.#again(retries, () =>
      this.#outermost(isReadOnly, (transaction) => fn(this.#contextOf(transaction.root))),
    )
  }

  detached<R>(fn: () => Promise<R>): Promise<R> {
    const scope = this.#scope()
    if (scope.frame === undefined) return (async () => fn())()
    const from = scope.frame.transaction
    // A snapshot holds no lock that anybody could wait for.
    if (from.isReadOnly) return this.#scopes.run({ ...scope, frame: undefined }, async () => fn())
    const detachment = new Detachment(from)
    const run = this.#scopes.run({ ...scope, frame: undefined, detachment }, async () => fn())
    return DetachedRun.of(run, () => {
      if (this.#scopes.getStore()?.frame?.transaction === from) detachment.awaited()
    })
  }

  onChangeElsewhere(look: () => void): () => void {
    this.#checkOpen()
    return this.#options.backend.outbox.onAppend(functionOption('onChangeElsewhere(look)', look))
  }

  async seal(given?: { readonly deliver?: boolean }): Promise<void> {
    const { deliver } = optionsObject('seal', given, ['deliver'])
    const mayDeliver = booleanOption('seal.deliver', deliver, true)
    this.#checkOutside('seal()')
    this.#sealing ??= this.#seal().catch((error: unknown) => {
      // Refused is not sealed: it can be tried again when the others have stopped.
      this.#sealing = undefined
      throw error
    })
    await this.#sealing
    if (mayDeliver) await this.deliver()
  }

  async #seal(): Promise<void> {
    this.#checkOpen()
    this.#watchers.seal()
    await this.#registering
    await this.#enrolment.begin(this.#watchers.fingerprint)
  }

  async deliver(): Promise<void> {
    if (this.#sealing === undefined)
      throw new MillraceError('NOT_SEALED', 'Events are delivered once no more watchers can come. Call seal() first.')
    await this.#sealing
    if (this.#isDelivering || this.#isResting) return
    this.#isDelivering = true
    const { backend, clock, watcherLeaseMs: leaseMs } = this.#options
    const runIn = <T>(scope: Scope, run: () => T): T => this.#scopes.run(scope, run)
    const common = { outbox: backend.outbox, holder: this.#instance, clock, leaseMs, runIn }
    for (const watcher of this.#watchers.durable)
      this.#pumps.push(new DurablePump({ ...common, watcher, warn: (warning) => this.#warn(warning) }))
    if (this.#pumps.length === 0) return
    const wake = (): void => {
      for (const pump of this.#pumps) pump.wake()
    }
    this.#stopListening = backend.outbox.onAppend(wake)
    // What a crash has left behind.
    await Promise.all(this.#pumps.map((pump) => pump.begin()))
  }

  watchers(): Promise<WatcherState[]> {
    return this.#options.backend.outbox.list()
  }

  async forgetWatcher(name: string): Promise<void> {
    this.#checkOutside('forgetWatcher()')
    await this.#options.backend.outbox.forget(watcherName(name))
  }

  async close(): Promise<void> {
    this.#checkOutside('close()')
    this.#checkNoHandler('close()')
    this.#closing ??= this.#close()
    await this.#closing
  }

  async rest(): Promise<void> {
    this.#checkNoHandler('rest()')
    this.#isResting = true
    this.#stopListening()
    await Promise.all(this.#pumps.map((pump) => pump.stop()))
  }

  async #close(): Promise<void> {
    // First of all, so that a handler that runs now can still write.
    await this.rest()
    this.#isClosed = true
    while (this.#busy.size > 0) await Promise.allSettled(this.#busy)
    await this.#enrolment.end()
    await this.#options.backend.close()
  }

  #scope(): Scope {
    return this.#scopes.getStore() ?? outside()
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new StacksClosedError()
  }

  /** A transaction would wait for what waits for it to end. */
  #checkOutside(call: string): void {
    const { frame, detachment } = this.#scope()
    const transaction = frame?.transaction ?? detachment?.from
    if (transaction?.isEnded === false) throw new InsideTransactionError(call, 'transaction')
  }

  #checkNoHandler(call: string): void {
    const { slot, delivery } = this.#scope()
    if (slot?.isOver === false || delivery?.isOver === false) throw new InsideTransactionError(call, 'handler')
  }

  #warn(warning: StacksWarning): void {
    tell(() => this.#options.onWarning(warning))
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
      const { frame } = this.#scope()
      // Inside a phase-1 handler of the same transaction the handler's place counts: its trigger still holds the root's.
      return frame?.transaction === root.transaction ? frame : root
    })
    return {
      book: <T extends BookEntry>(ownerId: string, name: string) => writeHandle<T>(host, bookRef(ownerId, name)),
      readBook: <T extends BookEntry>(ownerId: string, name: string) => readHandle<T>(host, bookRef(ownerId, name)),
    }
  }

  #read<T>(frame: Frame | undefined, run: (reads: BackendReads) => Promise<T>): Promise<T> {
    if (frame !== undefined) return frame.run(() => frame.transaction.step(run))
    if (this.#isClosed) return Promise.reject(new StacksClosedError())
    return run(this.#options.backend.reads)
  }

  #write(frame: Frame | undefined, ref: BookRef, write: Write): Promise<Doc | null> {
    if (frame !== undefined) return frame.run((tx) => this.#apply(frame, tx, ref, write))
    return this.#single((transaction) => {
      const { root } = transaction
      return root.run((tx) => this.#apply(root, tx, ref, write))
    })
  }

  /** A transaction of one write. It is tried again by itself as long as nobody could notice. */
  async #single<T>(run: (transaction: Transaction) => Promise<T>): Promise<T> {
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

  async #again<T>(retries: number, run: () => Promise<T>, mayRepeat: () => boolean = () => true): Promise<T> {
    const { clock, random } = this.#options
    for (let tries = 0; ; tries += 1) {
      try {
        return await run()
      } catch (error) {
        if (!isConflict(error) || tries >= retries || !mayRepeat()) throw error
        // Our timers let a process end; this one has promised an answer.
        const release = clock.isReal === true ? keepAlive() : () => undefined
        await clock.sleep(random() * Math.min(100, 2 ** tries)).finally(release)
      }
    }
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

  #outermost<R>(isReadOnly: boolean, fn: (transaction: Transaction) => Promise<R>): Promise<R> {
    const run = this.#begin(isReadOnly, fn)
    this.#busy.add(run)
    const done = (): void => void this.#busy.delete(run)
    run.then(done, done)
    return run
  }

  async #begin<R>(isReadOnly: boolean, fn: (transaction: Transaction) => Promise<R>): Promise<R> {
    const scope = this.#scope()
    if (scope.hops >= REENTRY_LIMIT && !isReadOnly) {
      const refusal = new ReentryDepthError(REENTRY_LIMIT)
      scope.chain.refusal = refusal
      throw refusal
    }
    this.#checkOpen()
    await this.#registering
    const release = await this.#takeLock(isReadOnly, scope)
    let after: () => Promise<void>
    let value: R
    try {
      const transaction = new Transaction(await this.#options.backend.begin({ readOnly: isReadOnly }), isReadOnly)
      value = await this.#run(transaction, scope, fn)
      const committed = await this.#commit(transaction, scope)
      after = this.#postCommit.turn(committed.events, scope)
      if (committed.seq !== null) after = this.#thenDurable(after, committed.seq, committed.told, scope)
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
      // What still waits is refused; what runs right now comes to its end before the rollback.
      transaction.end()
      await root.close()
      await backend.rollback()
      throw error
    }
  }

  async #commit(transaction: Transaction, { hops }: Scope): Promise<Committed> {
    const { backend, changes } = transaction
    const events = changes.events()
    const books = new Set(events.map(bookKey))
    // Asked before it is committed: from then on these events are what a pump may be behind with.
    const told = this.#pumps
      .filter(({ watcher }) => books.has(bookKey(watcher.ref)))
      .map((pump) => ({ pump, wasBehind: pump.isBehind }))
    try {
      const seq = events.length === 0 ? null : await backend.append(events, hops)
      await backend.commit()
      return { events, seq, told }
    } catch (error) {
      await backend.rollback()
      throw error
    } finally {
      transaction.end()
    }
  }

  /**
   * After the ordinary handlers, the durable ones. Only a call from outside waits for them: a handler would wait for itself.
   * And only for those that had nothing left to do: nobody who writes waits for what others left behind.
   */
  #thenDurable(before: () => Promise<void>, seq: number, told: Committed['told'], scope: Scope): () => Promise<void> {
    const mayWait = scope.hops === 0 && !scope.isDurable
    return async () => {
      await before()
      const waits = told.map(({ pump, wasBehind }) => (mayWait && !wasBehind ? pump.settled(seq) : pump.wake()))
      await Promise.all(waits)
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
    const { id, prev, now } = await transaction.step(() => this.#change(tx, ref, write))
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
        await this.#scopes.run({ ...this.#scope(), frame: inner }, async () => handler(privateCopy(event)))
        await inner.close()
        // It may have caught the failure of something that it triggered.
        if (transaction.doomed !== undefined) throw transaction.doomed
      } catch (error) {
        transaction.doom(error)
        await inner.close()
        throw error
      }
    }
  }

  async #change(
    tx: BackendTx,
    ref: BookRef,
    write: Write,
  ): Promise<{ readonly id: string; readonly prev: Doc | null; readonly now: Doc | null }> {
    switch (write.kind) {
      case 'put': {
        const { doc, ifRev } = write
        const locked = ifRev === undefined ? undefined : await tx.lock(ref, doc.id)
        if (ifRev !== undefined) checkRev(ref, doc.id, locked ?? null, ifRev)
        return { id: doc.id, prev: await tx.put(ref, doc, newToken(), locked), now: doc }
      }
      case 'patch': {
        const { id, fields, ifRev } = write
        const stored = await tx.lock(ref, id)
        if (ifRev !== undefined) checkRev(ref, id, stored, ifRev)
        if (stored === null) throw new DocumentNotFoundError(ref.ownerId, ref.book, id)
        const now = patched(stored.doc, fields)
        checkSize(now, this.#options.maxDocumentBytes)
        await tx.put(ref, now, newToken(), stored)
        return { id, prev: stored.doc, now }
      }
      case 'delete': {
        const { id, ifRev } = write
        if (ifRev !== undefined) checkRev(ref, id, await tx.lock(ref, id), ifRev)
        return { id, prev: await tx.delete(ref, id), now: null }
      }
      default:
        return unreachable(write)
    }
  }
}

function checkRev(ref: BookRef, id: string, stored: Stored | null, ifRev: string | null): void {
  const rev = stored?.rev ?? null
  if (rev !== ifRev) throw new StaleWriteError(ref.ownerId, ref.book, id, rev)
}
