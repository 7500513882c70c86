import { MillraceError } from '../../core/error.js'
import { OptionTypeError } from '../../core/options.js'
import { callable, clock, number, oneOf, readOptions } from '../../core/read-options.js'
import { nakAfter, type Result, skip } from '../../core/stream/result.js'
import type { Clock } from '../../core/time/clock.js'
import { isPromise, type MaybePromise, type Ms } from '../../core/time/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { Context } from '../message/context.js'
import type { Message } from '../message/message.js'
import { type Before, defineMiddleware } from './define-middleware.js'
import type { Middleware } from './handler.js'
import { defaultKey } from './idempotency-key.js'
import { keepKeyLease } from './key-lease.js'
import { clockIn, hostKey } from './middleware-host.js'

/** What `begin` found: the key is ours now, was done before, or is being worked on. */
export type BeginResult =
  | { readonly state: 'acquired'; readonly token: string }
  | { readonly state: 'done' }
  | { readonly state: 'busy'; readonly retryAfterMs?: Ms }

/** Remembers which keys have been done. A stale token never commits or releases what another holds. */
export interface IdempotencyStore {
  /** Takes the key for `leaseMs`, if it is neither taken nor done. Atomic: one of any number of callers gets it. */
  begin(key: string, leaseMs: Ms): Promise<BeginResult>
  /** Remembers the key as done for `ttlMs`. */
  commit(key: string, token: string, ttlMs: Ms): Promise<void>
  /** Forgets the key, so that the next delivery runs. */
  release(key: string, token: string): Promise<void>
  /** Extends the lease of a run that goes on; `false`: it was lost. Without it a run may take no longer than its lease. */
  renew?(key: string, token: string, leaseMs: Ms): Promise<boolean>
}

/** Options of {@link idempotency}. */
export interface IdempotencyOptions {
  /** Give each consumer its own keys (see the `prefix` of `idempotencyStore`), or one makes the other skip. */
  readonly store: IdempotencyStore
  /**
   * The key of a message; `undefined`: none, and it simply runs. Default: {@link defaultKey}, which falls back on the
   * position of the message: a subscription whose positions name no messages (no capability `identity`) is refused then.
   */
  readonly keyOf?: (message: Message) => string | undefined
  /**
   * How long a key stays taken when its holder dies. A run that goes on renews its lease, where the store can; otherwise a
   * duplicate may begin after this. Default 60 000.
   */
  readonly leaseMs?: Ms
  /** How long a key is remembered as done: longer than any redelivery can come late. Default 24 hours. */
  readonly ttlMs?: Ms
  /** How long a duplicate of something that is running waits. Default 1000. */
  readonly busyDelayMs?: Ms
  /** A store that cannot be asked: run all the same, or deliver again later. Default `'run'`. */
  readonly onStoreError?: 'run' | 'nak'
  /** A message that is terminated: forget the key, so that a replay can run, or remember it. Default `'release'`. */
  readonly onTerm?: 'release' | 'commit'
  /** For renewing leases. Default: the hopper's. */
  readonly clock?: Clock
  /** Called when the store fails. A hopper also logs it, and counts it in `source.idempotency_errors`. */
  readonly onError?: (error: unknown) => void
}

/** The same message is being worked on right now; the first run may still fail. */
export class DuplicateInFlightError extends MillraceError {
  constructor(key: string) {
    super('DUPLICATE_IN_FLIGHT', `"${key}" is being worked on. This delivery waits to see how that ends.`, {
      facts: { key },
    })
  }
}

/**
 * Runs a message once, however often it is delivered. The key is remembered only after success, so that a failure or a
 * crash does not make the redelivery a duplicate; between the success and its memory a crash still runs it twice.
 *
 * @example
 * ```ts
 * const seen = idempotencyStore(memoryStore(), { prefix: 'billing:' })
 * const hopper = new Hopper({ middleware: [dlq(letters), retry(), idempotency({ store: seen })] })
 * ```
 */
export function idempotency(options: IdempotencyOptions): Middleware {
  const { store, keyOf, leaseMs, ttlMs, busyDelayMs, onStoreError, onTerm, ...given } = readOptions(
    'idempotency',
    options,
    {
      store: checkedStore,
      keyOf: callable(defaultKey),
      leaseMs: number({ above: 0, default: 60_000 }),
      ttlMs: number({ above: 0, default: 86_400_000 }),
      busyDelayMs: number({ min: 0, default: 1_000 }),
      onStoreError: oneOf(['run', 'nak'], 'run'),
      onTerm: oneOf(['release', 'commit'], 'release'),
      clock: clock(undefined),
      onError: callable<(error: unknown) => void>(() => undefined),
    },
  )
  const { onError } = given

  /** A failing store is reported, and changes nothing: what was done is done, and a lease ends by itself. */
  const quietly = async (ctx: Context, step: Step, key: string, write: () => Promise<void>) => {
    try {
      await write()
    } catch (error) {
      report(ctx, step, key, error, onError)
    }
  }

  return defineMiddleware<HeldKey | undefined>({
    kind: 'idempotency',
    needsIdentity: options.keyOf === undefined,
    // Neither half is an async function: they run for every message, and each would cost promises of its own.
    before(ctx, message) {
      const key = checkedKey(keyOf(message))
      if (key === undefined) return { state: undefined }
      const failed = (error: unknown): Before<HeldKey | undefined> => {
        report(ctx, 'begin', key, error, onError)
        return onStoreError === 'run'
          ? { state: undefined }
          : { answer: nakAfter(busyDelayMs, error, { noEscalate: true }) }
      }
      const found = (begun: BeginResult): Before<HeldKey | undefined> => {
        switch (begun.state) {
          case 'acquired': {
            const onLost = (error: unknown) => report(ctx, 'renew', key, error, onError)
            const { token } = begun
            const end = keepKeyLease(store, key, token, leaseMs, clockIn(ctx, given.clock), ctx, onLost)
            return { state: { key, token, end } }
          }
          case 'done':
            return { answer: skip() }
          case 'busy': {
            const delayMs = isDelay(begun.retryAfterMs) ? begun.retryAfterMs : busyDelayMs
            return { answer: nakAfter(delayMs, new DuplicateInFlightError(key), { noEscalate: true }) }
          }
          default:
            return unreachable(begun)
        }
      }
      let begun: MaybePromise<BeginResult>
      try {
        begun = store.begin(key, leaseMs)
      } catch (error) {
        return failed(error)
      }
      return isPromise(begun) ? begun.then(found, failed) : found(begun)
    },
    after(ctx, _message, result, held, thrown): MaybePromise<Result> {
      const goOn = (): Result => {
        if (thrown !== undefined) throw thrown.error
        return result
      }
      if (held === undefined) return goOn()
      const { key, token, end } = held
      end()
      const fate = thrown === undefined ? fateOf(result, onTerm) : 'release'
      if (fate === 'keep') return goOn()
      const write = fate === 'commit' ? () => store.commit(key, token, ttlMs) : () => store.release(key, token)
      return quietly(ctx, fate, key, write).then(goOn)
    },
  })
}

/** A key that is held while its message runs; `end` stops renewing its lease. */
interface HeldKey {
  readonly key: string
  readonly token: string
  readonly end: () => void
}

/** What becomes of a key after its message ran. */
function fateOf(result: Result, onTerm: 'release' | 'commit'): 'commit' | 'release' | 'keep' {
  switch (result.action) {
    case 'ack':
    case 'manual':
      return 'commit'
    case 'nak':
      return 'release'
    case 'term':
      return onTerm
    case 'inProgress':
      return 'keep'
    default:
      return unreachable(result)
  }
}

type Step = 'begin' | 'commit' | 'release' | 'renew'

const CONSEQUENCE: Readonly<Record<Step, string>> = {
  begin: 'whether the message was done before is not known',
  commit: 'a redelivery of the message would run it again',
  release: 'a redelivery of the message waits until its lease ends',
  renew: 'a redelivery of the message may run beside it',
}

function report(ctx: Context, step: Step, key: string, error: unknown, onError: (error: unknown) => void): void {
  try {
    const host = ctx.get(hostKey)
    host?.countIdempotencyError()
    host?.logger.error(`An idempotency store failed to ${step}: ${CONSEQUENCE[step]}`, { name: host.name, key, error })
    onError(error)
  } catch {
    // A listener must not turn a message that succeeded into one that failed.
  }
}

function checkedStore(path: string, given: unknown): IdempotencyStore {
  const { begin, commit, release } = Object(given) as Partial<IdempotencyStore>
  if (![begin, commit, release].every((method) => typeof method === 'function'))
    throw new OptionTypeError(path, 'an IdempotencyStore: { begin, commit, release }', given)
  return given as IdempotencyStore
}

/** No text, no key: an empty one would be shared by every message that has none. */
function checkedKey(key: unknown): string | undefined {
  if (key === undefined || key === null || key === '') return undefined
  if (typeof key === 'string') return key
  throw new OptionTypeError('idempotency.keyOf(message)', 'a string, or undefined for no key', key)
}

function isDelay(ms: Ms | undefined): ms is Ms {
  return typeof ms === 'number' && Number.isFinite(ms) && ms >= 0
}

/** A store that only tests and sets, in one step: was the key seen before? */
export interface SeenStore {
  seen(key: string): MaybePromise<boolean>
}

/**
 * Adapts a store that only tests and sets. That makes it **at most once**: the key is taken before the run, so a run that
 * fails or crashes is not run again, and its redelivery is skipped.
 */
export function fromSeenStore(store: SeenStore): IdempotencyStore {
  if (typeof store?.seen !== 'function') {
    throw new OptionTypeError('fromSeenStore(store)', 'a store with seen(key)', store)
  }
  return {
    begin: async (key) => ((await store.seen(key)) ? { state: 'done' } : { state: 'acquired', token: key }),
    commit: async () => undefined,
    release: async () => undefined,
  }
}
