import type { RetryPolicyOptions } from '../../core/retry/retry-policy.js'
import type { DeadEnding } from '../../ports/item.js'
import type { CancelResult } from '../control/cancel.js'
import type { Batch } from './define-batch-work.js'
import type { ContractOptions, WorkOptions } from './work-options.js'

declare const self: unique symbol
declare const group: unique symbol
declare const output: unique symbol

/**
 * One unit of work, built and not yet enqueued. Its id is fixed when it is built. `S` is what `.result()` gives, `G` what
 * it contributes to the value of its group; both exist only for the compiler.
 */
export interface Work<Name extends string = string, S = unknown, G = unknown> {
  readonly id: string
  readonly type: Name
  readonly input: unknown
  /** Texts of the input that begin with this stand for results of other items, which are put in when it runs. */
  readonly references?: string
  readonly [self]?: S
  readonly [group]?: G
}

declare const resultOf: unique symbol

/**
 * What a handler may return instead of a plain value: an instruction that does nothing until it is returned. Made by
 * `ctx.result`, `ctx.queue` and `ctx.void`.
 */
export interface WorkResult<S = unknown, G = unknown, Before extends readonly unknown[] = readonly unknown[]> {
  readonly [resultOf]: { readonly self: S; readonly group: G }
  /**
   * The same, with the results of what came before: `build` is called immediately with references to them, one for each work,
   * which can be parts of the new works' inputs. They are replaced by the results when the new works run. Computing with
   * them is an error, because they do not exist yet.
   *
   * @example
   * ```ts
   * return ctx.queue([resize('a.png'), resize('b.png')]).next((images) => album({ title, images }))
   * ```
   */
  next<const Ns extends Work | readonly Work[]>(
    build: (results: Before) => Ns,
    condition?: DependencyCondition,
    options?: WorkInstanceOptions,
  ): WorkResult<S, G | GroupOf<Ns>, ResultsOf<Ns>>
  /** Queues `items` once what came before meets `condition`; then they are what comes before. */
  next<const Ns extends GroupItem | readonly GroupItem[]>(
    items: Ns,
    condition?: DependencyCondition,
    options?: WorkInstanceOptions,
  ): WorkResult<S, G | GroupOf<Ns>, ResultsOf<Ns>>
}

/** What can be queued into a group: work, or the result of more of it. */
export type GroupItem = Work<string, unknown, unknown> | WorkResult<unknown, unknown>

/** When a gate opens: all have ended, all have succeeded, or so many of them have. */
export type StateCondition = 'all-done' | 'all-success' | { readonly count: number; readonly of?: 'done' | 'success' }

/** What `.next` waits for: the works before it, or (`of: 'tree'`) also everything that they queued. */
export type DependencyCondition =
  | StateCondition
  | {
      readonly of: 'tree'
      /** Whether everything below must succeed, or only end. Default `all-success`. */
      readonly when?: 'all-done' | 'all-success'
    }

/** Options of one item, given when it is queued. They win over those of its type. */
export interface WorkInstanceOptions {
  /** Start no earlier than this long from now, in ms. */
  readonly delay?: number
  /** Start no earlier than this instant, epoch ms. Wins over `delay`. */
  readonly runAt?: number
  /** Higher runs first. Default 0. */
  readonly priority?: number
  /** Doer group: what a `balancedDoer` keeps apart. */
  readonly group?: string
  readonly retry?: WorkRetry
  /** The item expires if it has not started by this instant, epoch ms. Wins over `timeout`. */
  readonly deadline?: number
  /** The item expires if it has not started this long after it was enqueued, in ms. */
  readonly timeout?: number
  /** Run immediately in this process, without waiting in the queue. Ignored for children and for work that is not due. */
  readonly skipQueue?: boolean
  /** Labels to find the item by. */
  readonly tags?: readonly string[]
  /**
   * How long one run may take, in ms. Then `ctx.signal` fires, and the run counts as a failed attempt, whatever its handler
   * does afterwards.
   */
  readonly runTimeout?: number
  /** The item expires at its deadline even while it runs. Default: a run that has started in time may finish. */
  readonly strictDeadline?: boolean
  /**
   * Your own database transaction: the item exists if it commits, and not otherwise. Only where the backend is in the same
   * database (`millrace/postgres`, `millrace/sqlite`). Await the handle after the commit: before it, and after a rollback,
   * `result()` rejects with `NOT_STORED`.
   */
  readonly tx?: unknown
}

/** Options of `add` and `enqueue`: those of an item, and its id. */
export interface EnqueueOptions extends WorkInstanceOptions {
  /**
   * The item's id, where it should not be a new one: one item per order, user or file of yours. While an item of that id is
   * kept, another enqueue of it is `coalesced` with the first.
   */
  readonly id?: string
}

/** Options of `enqueueMany`: those of each item, and who hears how far it has come. */
export interface ManyOptions extends WorkInstanceOptions {
  /** Called when a batch is durable, with the numbers so far. */
  readonly onProgress?: (receipts: ManyReceipts) => void
}

/** How many items `enqueueMany` created, and how many existed already. */
export interface ManyReceipts {
  readonly created: number
  readonly coalesced: number
}

/** The retry policy of an item: those of its fields that are given, over those of its type, system and the defaults. */
export type WorkRetry = RetryPolicyOptions

/** A work type: mints instances, and carries its definition for `createWork`. */
export interface WorkBuilder<Name extends string = string, I = unknown, S = unknown, G = unknown> {
  (input: I): Work<Name, S, G>
  readonly type: Name
  readonly def: WorkDefinition<Name, I>
}

/** Any builder at all. `never` in place of the input, because a builder consumes it. */
// biome-ignore lint/suspicious/noExplicitAny: an input is contravariant; `any` is the only type that all builders accept.
export type AnyWorkBuilder = WorkBuilder<string, any, unknown, unknown>

/**
 * A work type without its handler: mints instances in a process that adds work and does not run it. `defineWork` gives it
 * a handler in the worker. Made by `defineContract`. `O` is what its schema makes of an input.
 */
export interface WorkContract<Name extends string = string, I = unknown, O = I, S = unknown, G = unknown> {
  (input: I): Work<Name, S, G>
  readonly type: Name
  readonly contract: ContractDefinition<Name, I>
  readonly [output]?: O
  /** The same contract, for the compiler: its input, where no schema says what that is. */
  takes<T>(): WorkContract<Name, T, T, S, G>
  /** The same contract, for the compiler: its result. The handler has to return that. */
  returns<R>(): WorkContract<Name, I, O, R, NonVoidUnion<R>>
}

/** Any contract at all. */
// biome-ignore lint/suspicious/noExplicitAny: as above, and its handler consumes what the schema returns.
export type AnyWorkContract = WorkContract<string, any, any, any, any>

/** What `createWork({ work })` takes: types with a handler, and contracts of types that other processes run. */
export type AnyWorkType = AnyWorkBuilder | AnyWorkContract

/** Name and options of a work type, as far as they matter where its items are enqueued. */
export interface ContractDefinition<Name extends string = string, I = unknown> {
  readonly type: Name
  readonly options: ContractOptions<I>
}

/** Name, handler and options of a work type, as the engine reads them. */
export interface WorkDefinition<Name extends string = string, I = unknown> extends ContractDefinition<Name, I> {
  readonly options: WorkOptions<I>
  readonly run: WorkHandler<I>
  /** Its items run together. */
  readonly batch?: Batch<I>
  /** The contract that it carries out, where it was defined by one. */
  readonly contract?: ContractDefinition<Name, I>
}

/**
 * The function behind a work type. It may run more than once for one item. What it returns is the item's result, unless it
 * is an instruction of `ctx`.
 */
export type WorkHandler<I = unknown, R = unknown> = (input: I, ctx: WorkContext) => R | Promise<R>

/** What a handler can ask and do. Its functions work when taken out of the object. */
export interface WorkContext {
  readonly id: string
  readonly groupId: string
  /** Which try this is, from 1. Crashes and deferrals do not count. */
  readonly attempt: number
  /** Id of the item whose handler queued this one. */
  readonly parent?: string
  /** Ids that the gate waited for, when a gate queued this one. */
  readonly dependents?: readonly string[]
  readonly deadline?: number
  /** How often this item was delivered: 1 + the leases that lapsed, usually with their process. */
  readonly deliveries: number
  /** A number that rises with every lease of this item: put it in your own writes, and refuse smaller ones. */
  readonly fence: number
  /**
   * Aborts when the run should stop, with the reason as an error: `LEASE_LOST`, `CANCELLED`, `RUN_TIMEOUT`, `DEADLINE` or
   * `SHUTDOWN_DEADLINE`.
   */
  readonly signal: AbortSignal
  /** The item's own result, and its contribution to the value of the group. The first `final` one stays. A promise is awaited. */
  result<R>(value: R | Promise<R>, options?: ResultOptions<R>): WorkResult<R, R>
  /** Queues more work into this group. */
  queue<const Is extends GroupItem | readonly GroupItem[]>(
    items: Is,
    options?: WorkInstanceOptions,
  ): WorkResult<void, GroupOf<Is>, ResultsOf<Is>>
  /** No result, and no more work. */
  void(): WorkResult<void, void>
  /** The states of these items, in their order; undefined where nothing is known. */
  states(ids: readonly string[]): Promise<readonly (WorkState | undefined)[]>
  /**
   * The results of the items that this one waited for, in their order: one type, or the work itself, for each. Rejects with
   * `NO_RESULT` for one that did not complete.
   *
   * @example
   * ```ts
   * const [small, large] = await ctx.results([resize, resize])
   * ```
   */
  results<const Of extends readonly (AnyWorkType | Work)[]>(of: Of): Promise<ResultsOf<Of>>
  /** The results of all of them. */
  results(): Promise<readonly unknown[]>
  /** True for exactly one caller in the fleet per key and day. */
  claim(key: string): Promise<boolean>
  /** Reports how far the run has come, for callers of `handle.progress()`. Sent about once a second; the latest value counts. */
  progress(value: unknown): void
}

/** How a result reaches the group: `final` locks the value, `append` folds into it. */
export interface ResultOptions<R> {
  /** Locks the value of the group: later contributions are ignored. */
  readonly final?: boolean
  /** Folds this contribution into the value so far; what it returns replaces it. */
  readonly append?: (existing: R | undefined) => R
}

/** `failed` counts as an end wherever states are compared, but nothing writes it. */
export type WorkStatus = 'pending' | 'running' | 'success' | 'failed' | 'dead'

/** The state of an item. */
export interface WorkState {
  readonly id: string
  readonly type: string
  readonly status: WorkStatus
  readonly attempt: number
  readonly result?: unknown
  readonly error?: string
  /** Why it is dead. */
  readonly ending?: DeadEnding
  readonly queueAt: number
  readonly startAt: number
  readonly runAt?: number
  readonly endAt?: number
  readonly priority?: number
  readonly group?: string
  readonly tags?: readonly string[]
}

/** Which states `list` returns: those that fit all fields given. */
export interface ListFilter {
  readonly type?: string
  readonly tag?: string
  readonly status?: WorkStatus
}

/**
 * An enqueued item. Awaiting it waits for its whole group. Beware of `return enqueue(…)` in an async function: the handle
 * is thenable, so that awaits the group too.
 */
export interface WorkHandle<Self = unknown, Group = unknown> extends PromiseLike<Group> {
  readonly id: string
  readonly groupId: string
  /** Resolves once the item is durable. */
  accepted(): Promise<Receipt>
  /** The item's own result; rejects with its error when it is dead. */
  result(options?: WaitOptions): Promise<Self>
  /** The value of the group once everything in it has settled. An item that died does not reject it. */
  group(options?: WaitOptions): Promise<Group>
  /** Cancels the item, wherever it waits or runs, and resolves with what became of it. */
  cancel(reason?: string): Promise<CancelResult>
  /** The progress that its run last reported. Undefined while there is none. */
  progress(): Promise<unknown>
  /** Its progress as it changes, until it has ended. */
  watchProgress(options?: ProgressOptions): AsyncIterableIterator<unknown>
}

/**
 * An item by its id, as `w.handle(type, id)` gives it in any process. It is not thenable: awaiting it does not wait for
 * anything.
 */
export interface ItemHandle<Self = unknown, Group = unknown> {
  readonly id: string
  readonly type: string
  /** Its state, with its result once it has completed. Undefined where there is no such item, or no longer. */
  state(): Promise<(WorkState & { readonly result?: Self }) | undefined>
  /** The item's own result; rejects with its error when it is dead, and with `UNKNOWN_ITEM` where there is none. */
  result(options?: WaitOptions): Promise<Self>
  /** The value of its group once everything in it has settled. */
  group(options?: WaitOptions): Promise<Group>
  /** Cancels the item, wherever it waits or runs, and resolves with what became of it. */
  cancel(reason?: string): Promise<CancelResult>
  /** The progress that its run last reported. Undefined while there is none. */
  progress(): Promise<unknown>
  /** Its progress as it changes, until it has ended. */
  watchProgress(options?: ProgressOptions): AsyncIterableIterator<unknown>
}

/** Options of `watchProgress`. */
export interface ProgressOptions {
  /** How often to poll, in ms. Default 1000. */
  readonly every?: number
  readonly signal?: AbortSignal
}

/** How long to wait for a result or a group. */
export interface WaitOptions {
  /** Stop waiting after this long, in ms. The work goes on. */
  readonly timeout?: number
  readonly signal?: AbortSignal
}

/** How an enqueue was accepted: `created`, or `coalesced` with an item that existed already. */
export interface Receipt {
  readonly kind: 'created' | 'coalesced'
  readonly id: string
}

// ── inference ──

/** Leaves out what contributes nothing. */
export type NonVoidUnion<U> = Exclude<U, void | undefined>

/** The own result of an item whose handler returns this: that of an instruction, or the plain value itself. */
export type SelfOfResult<R> = [R] extends [never] ? unknown : R extends WorkResult<infer S, unknown> ? S : R
export type GroupOfResult<R> = [R] extends [never] ? unknown : R extends WorkResult<unknown, infer G> ? G : R

/** The own result of a work. */
export type SelfOfWork<W> = W extends Work<string, infer S, unknown> ? S : never
/** The group value of a work. */
export type GroupOfWork<W> = W extends Work<string, unknown, infer G> ? G : never

/** The result of a work, or of what a work type builds. */
type ResultOf<T> = T extends Work<string, infer S, unknown> ? S : SelfOf<T>
/** The results of works or work types, one by one. */
export type ResultsOf<Is> = Is extends readonly unknown[]
  ? { -readonly [K in keyof Is]: ResultOf<Is[K]> }
  : [ResultOf<Is>]

/** What one item contributes to the value of its group. */
export type GroupOfItem<T> =
  T extends WorkResult<unknown, infer G>
    ? NonVoidUnion<G>
    : T extends Work<string, unknown, infer G>
      ? NonVoidUnion<G>
      : never
/** What one item, or every one of a list, contributes. */
export type GroupOf<Is> = Is extends readonly (infer T)[] ? GroupOfItem<T> : GroupOfItem<Is>

/** The name of a builder's type. */
export type NameOf<B> = B extends WorkBuilder<infer N, never, unknown, unknown> ? N : never
/** The input that a builder takes. */
export type InputOf<B> = B extends (input: infer I) => unknown ? I : never
/** The own result of what a builder builds. */
export type SelfOf<B> = B extends (input: never) => Work<string, infer S, unknown> ? S : never
/** The group value of what a builder builds. */
export type GroupOfBuilder<B> = B extends (input: never) => Work<string, unknown, infer G> ? G : never

/** What the handler of a contract gets: its input as the schema returned it. */
export type OutputOf<C> = C extends { readonly [output]?: infer O } ? O : never
/** What the handler of a contract may return: anything, unless the contract says what `.result()` gives. */
export type ReturnFor<C> = unknown extends SelfOf<C> ? unknown : SelfOf<C> | WorkResult<SelfOf<C>, unknown>

/** The names of a system's definitions. */
export type RegistryNames<Defs extends readonly AnyWorkType[]> = Defs[number]['type']
/** The builder of that name, among a system's definitions. */
export type BuilderForName<Defs extends readonly AnyWorkType[], N extends string> = Extract<
  Defs[number],
  { readonly type: N }
>
/** The input that the type of that name takes. */
export type InputForName<Defs extends readonly AnyWorkType[], N extends string> = InputOf<BuilderForName<Defs, N>>
/** The item's own result, for the type of that name. */
export type SelfForName<Defs extends readonly AnyWorkType[], N extends string> = SelfOf<BuilderForName<Defs, N>>
/** The group value of the type of that name. */
export type GroupForName<Defs extends readonly AnyWorkType[], N extends string> = GroupOfBuilder<
  BuilderForName<Defs, N>
>
