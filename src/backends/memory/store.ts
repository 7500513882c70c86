import { optionsObject } from '../../core/options.js'
import type { Ms } from '../../core/time/time.js'
import type { Store } from '../../ports/ports.js'
import { withHidden } from '../shared/hidden.js'
import { checkEntry, KeySpace } from './key-space.js'
import { type MemoryOptions, timeOf } from './time.js'

/** A store in memory: every method is synchronous. */
export interface MemoryStore extends Store {
  get(key: string): string | undefined
  set(key: string, value: string, ttl?: Ms): void
  delete(key: string): void
  setIfNotExists(key: string, value: string, ttl?: Ms): boolean
  increment(key: string, by: number, ttl?: Ms): number
  incrementOnce(
    counter: string,
    marker: string,
    by: number,
    ttl?: Ms,
  ): { readonly value: number; readonly applied: boolean }
  compareAndSet(key: string, expected: string | undefined, next: string, ttl?: Ms): boolean
  getMany(keys: readonly string[]): readonly (string | undefined)[]
  setMany(entries: readonly { readonly key: string; readonly value: string; readonly ttl?: Ms }[]): void
}

/**
 * Keys and values in this process. Every operation is atomic, because none of them waits. Expired keys are really removed,
 * by the writes that come after.
 *
 * @example
 * ```ts
 * const store = memoryStore()
 * store.setIfNotExists('lock', 'me', 30_000) // true, once
 * ```
 */
export function memoryStore(options?: MemoryOptions): MemoryStore {
  const given = optionsObject('memoryStore', options, ['now', 'clock'])
  return storePort(new KeySpace(timeOf(given, 'memoryStore')))
}

/** The plain port of a key space. What the three-port contract does not know is hidden from a spread. */
export function storePort(keys: KeySpace): MemoryStore {
  const port = {
    get: (key: string) => keys.get(key),
    set: (key: string, value: string, ttl?: Ms) => keys.set(key, value, ttl),
    delete: (key: string) => keys.delete(key),
    setIfNotExists: (key: string, value: string, ttl?: Ms) => keys.setIfNotExists(key, value, ttl),
    increment: (key: string, by: number, ttl?: Ms) => keys.increment(key, by, ttl),
  }
  const beyond = {
    incrementOnce(counter: string, marker: string, by: number, ttl?: Ms) {
      if (keys.get(marker) !== undefined) return { value: Number(keys.get(counter) ?? 0), applied: false }
      // The counter first: if it holds no number this throws, and then the marker must not be there.
      const value = keys.increment(counter, by, ttl)
      keys.set(marker, '1', ttl)
      return { value, applied: true }
    },
    compareAndSet(key: string, expected: string | undefined, next: string, ttl?: Ms) {
      if (keys.get(key) !== expected) return false
      keys.set(key, next, ttl)
      return true
    },
    getMany: (wanted: readonly string[]) => wanted.map((key) => keys.get(key)),
    setMany(entries: readonly { readonly key: string; readonly value: string; readonly ttl?: Ms }[]) {
      // All or none: a bad one in the middle must not leave half of them behind.
      for (const { value, ttl } of entries) checkEntry(value, ttl)
      for (const { key, value, ttl } of entries) keys.set(key, value, ttl)
    },
  }
  return withHidden(port, beyond)
}
