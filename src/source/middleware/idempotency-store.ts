import { MillraceError } from '../../core/error.js'
import { newToken } from '../../core/ids.js'
import { OptionTypeError, optionsObject } from '../../core/options.js'
import type { Ms } from '../../core/time/time.js'
import type { Store } from '../../ports/ports.js'
import type { BeginResult, IdempotencyStore } from './idempotency.js'

// Tokens are never empty and never this word, so one value distinguishes a lease from what it became.
const DONE = 'done'
const FREE = ''

/** Each round means that another consumer got in between; after so many the key is theirs. */
const MAX_ROUNDS = 8

/** Options of {@link idempotencyStore}. */
export interface IdempotencyStoreOptions {
  /** Before every key. Each consumer needs its own, or one makes the other skip. Default `'idem:'`. */
  readonly prefix?: string
}

/**
 * An idempotency store over any `Store` port. Needs `compareAndSet`: without it a stale holder could undo what another one
 * did, so a store that lacks it is refused.
 *
 * @example
 * ```ts
 * const seen = idempotencyStore(memoryStore(), { prefix: 'billing:' })
 * ```
 */
export function idempotencyStore(store: Store, options?: IdempotencyStoreOptions): IdempotencyStore {
  if (typeof store?.setIfNotExists !== 'function') {
    throw new OptionTypeError('idempotencyStore(store)', 'a Store port', store)
  }
  const given = optionsObject('idempotencyStore', options, ['prefix'])
  const prefix = given.prefix ?? 'idem:'
  if (typeof prefix !== 'string') throw new OptionTypeError('idempotencyStore.prefix', 'a string', prefix)
  const { get, setIfNotExists, compareAndSet } = store
  if (compareAndSet === undefined) {
    throw new MillraceError(
      'NOT_SUPPORTED',
      'idempotencyStore(store) needs a store with compareAndSet. Use the store of a Millrace backend as it is (a spread ' +
        'loses it), or write an IdempotencyStore of your own.',
    )
  }

  return {
    async begin(name: string, leaseMs: Ms): Promise<BeginResult> {
      const key = prefix + name
      const token = newToken()
      let found: string | undefined
      for (let round = 0; round < MAX_ROUNDS; round += 1) {
        let failure: { readonly error: unknown } | undefined
        try {
          const isTaken =
            found === undefined
              ? await setIfNotExists(key, token, leaseMs)
              : await compareAndSet(key, found, token, leaseMs)
          if (isTaken) return { state: 'acquired', token }
        } catch (error) {
          failure = { error }
        }
        // Also after a failure, and after a "no": a reply can get lost, and a client that repeats a request by itself gets
        // "no" for its own first try. Only the value shows whether the token got in.
        found = await get(key)
        if (found === token) return { state: 'acquired', token }
        if (found === DONE) return { state: 'done' }
        if (found !== undefined && found !== FREE) return { state: 'busy' }
        if (failure !== undefined) throw failure.error
      }
      return { state: 'busy' }
    },
    async commit(name, token, ttlMs) {
      const key = prefix + name
      if (await compareAndSet(key, token, DONE, ttlMs)) return
      // The lease has lapsed, and no other consumer has taken the key since: it is done all the same.
      await compareAndSet(key, undefined, DONE, ttlMs)
    },
    async release(name, token) {
      // There is no compare-and-delete: the key is marked as free, and the mark soon goes by itself.
      await compareAndSet(prefix + name, token, FREE, 1)
    },
    async renew(name, token, leaseMs) {
      return compareAndSet(prefix + name, token, token, leaseMs)
    },
  }
}
