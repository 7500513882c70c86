import { AsyncLocalStorage } from 'node:async_hooks'

interface Entry {
  readonly owner: object
  readonly value: unknown
  readonly outer: Entry | undefined
}

/**
 * A value that travels with the calls of one object. An `AsyncLocalStorage` stays enabled once it was used, and before Node 24
 * each one is visited for every promise of the process: an object that is opened often must not have one of its own. All of
 * these share one.
 */
export class AsyncContext<T> {
  /** Calls `fn`, and gives it and all that it starts this value. */
  run<R>(value: T, fn: () => R): R {
    return storage.run({ owner: this, value, outer: without(storage.getStore(), this) }, fn)
  }

  getStore(): T | undefined {
    for (let entry = storage.getStore(); entry !== undefined; entry = entry.outer) {
      if (entry.owner === this) return entry.value as T
    }
    return undefined
  }
}

const storage = new AsyncLocalStorage<Entry>()

/** What the other objects set. A chain of calls that goes on forever must not gather an entry per call. */
function without(entry: Entry | undefined, owner: object): Entry | undefined {
  if (entry === undefined) return undefined
  if (entry.owner === owner) return entry.outer
  const outer = without(entry.outer, owner)
  return outer === entry.outer ? entry : { ...entry, outer }
}
