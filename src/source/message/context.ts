import { OptionRangeError } from '../../core/options.js'

/**
 * What surrounds one run of a handler: its abort signal, values that middleware passes inwards, and its lease. A context
 * never changes; `with` gives a child that sees one value more.
 */
export interface Context {
  /** Aborts when the run has to end: the lease was lost, time is up, or the process shuts down. */
  readonly signal: AbortSignal
  /** The value under the key, here or in any parent. */
  get<T>(key: ContextKey<T>): T | undefined
  /** A child in which the key has this value; the parent stays as it was. */
  with<T>(key: ContextKey<T>, value: T): Context
  /** Extends the lease while the work goes on. Present when the subscription can. */
  readonly extendLease?: (() => Promise<void>) | undefined
}

declare const contextType: unique symbol

/** A key for a value in a context: a unique object, so that keys of different modules never collide. */
export interface ContextKey<T> {
  /** For people: what the key stands for. */
  readonly name: string
  /** Carries the type only; no key has it at run time. */
  readonly [contextType]?: (value: T) => T
}

/**
 * Makes a key that equals no other.
 *
 * @example
 * ```ts
 * const tenant = contextKey<string>('tenant')
 * background().with(tenant, 'acme').get(tenant) // 'acme'
 * ```
 */
export function contextKey<T>(name: string): ContextKey<T> {
  return Object.freeze({ name })
}

/** A key of our own, the same one in every copy of the package: middleware may come from another copy than the hopper. */
export function ownContextKey<T>(name: string): ContextKey<T> {
  return Symbol.for(`millrace.context.${name}`) as unknown as ContextKey<T>
}

/** The header that carries the attempt of a message where the backend redelivers by publishing a copy. */
export const AttemptHeader = 'crucible-retry-attempt'

/** A context with nothing in it. Without a signal it never aborts. */
export function background(signal?: AbortSignal): Context {
  return new Root(signal === undefined ? new NeverAborted() : { signal })
}

/**
 * A context for one run. The signal is made only when the handler reads it, so that a run which never does costs
 * no `AbortController`. Values that every run of a consumer shares come from `shared`, and cost a run nothing.
 */
export function runContext(
  run: { readonly signal: AbortSignal },
  extendLease?: () => Promise<void>,
  shared?: Context,
): Context {
  return new Root(run, extendLease, shared)
}

/** A child that runs as attempt `n`, counted from 1. */
export function withAttempt(ctx: Context, n: number): Context {
  if (!(Number.isInteger(n) && n >= 1))
    throw new OptionRangeError('withAttempt(ctx, n)', 'an integer >= 1 (attempts count from 1)', n)
  return ctx.with(attemptKey, n)
}

/** Which attempt this is, and whether that is known. Unknown: `[1, false]`. */
export function attempt(ctx: Context): readonly [n: number, present: boolean] {
  const n = ctx.get(attemptKey)
  return n === undefined ? [1, false] : [n, true]
}

const attemptKey = ownContextKey<number>('attempt')

class Root implements Context {
  readonly #run: { readonly signal: AbortSignal }
  readonly #shared: Context | undefined
  readonly extendLease: (() => Promise<void>) | undefined

  constructor(run: { readonly signal: AbortSignal }, extendLease?: () => Promise<void>, shared?: Context) {
    this.#run = run
    this.extendLease = extendLease
    this.#shared = shared
  }

  get signal(): AbortSignal {
    return this.#run.signal
  }

  get<T>(key: ContextKey<T>): T | undefined {
    return this.#shared?.get(key)
  }

  with<T>(key: ContextKey<T>, value: T): Context {
    return new Child(this, key, value)
  }
}

/** One value on top of a parent: a link, so that `with` costs the same however much there is already. */
class Child implements Context {
  readonly #parent: Context
  readonly #key: object
  readonly #value: unknown

  constructor(parent: Context, key: object, value: unknown) {
    this.#parent = parent
    this.#key = key
    this.#value = value
  }

  get signal(): AbortSignal {
    return this.#parent.signal
  }

  get extendLease(): (() => Promise<void>) | undefined {
    return this.#parent.extendLease
  }

  get<T>(key: ContextKey<T>): T | undefined {
    let here: Context = this
    while (here instanceof Child) {
      // The key is the same object, so the value is of its type: `with` saw to that.
      if (here.#key === key) return here.#value as T
      here = here.#parent
    }
    return here.get(key)
  }

  with<T>(key: ContextKey<T>, value: T): Context {
    return new Child(this, key, value)
  }
}

/** Not one signal for all: what handlers hang on it, and forget there, must go when their run does. */
class NeverAborted {
  #signal: AbortSignal | undefined

  get signal(): AbortSignal {
    this.#signal ??= new AbortController().signal
    return this.#signal
  }
}
