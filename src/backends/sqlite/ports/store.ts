import { numberOption } from '../../../core/options.js'
import type { At, Ms } from '../../../core/time/time.js'
import type { FullStore } from '../../../ports/full-ports.js'
import { counterValue, finiteStep } from '../../shared/counter-value.js'
import { withHidden } from '../../shared/hidden.js'
import { type SqliteContext, writeAndNotify } from '../context.js'
import type { Statements } from '../sql.js'
import { checkText } from '../text.js'

/** The store of the SQLite backend. Members beyond the documented ones are not enumerable. */
export type SqliteStore = FullStore

/** Keys and values with expiry, in one table. Expired keys are really removed, by the writes that come after. */
export function storePort(context: SqliteContext): SqliteStore {
  const { connection } = context
  const write = <T>(run: (sql: Statements, now: At) => T): Promise<T> => writeAndNotify(context, run)
  const port = {
    async get(key: string): Promise<string | undefined> {
      checkText('get(key)', key)
      return connection.read((sql, now) => sql.get.get(key, now)?.[0])
    },
    async set(key: string, value: string, ttl?: Ms): Promise<void> {
      checkEntry('set', key, value, ttl)
      await write((sql, now) => sql.set.run(key, value, endOf(ttl, now)))
    },
    async delete(key: string): Promise<void> {
      checkText('delete(key)', key)
      await write((sql) => sql.remove.run(key))
    },
    async setIfNotExists(key: string, value: string, ttl?: Ms): Promise<boolean> {
      checkEntry('setIfNotExists', key, value, ttl)
      return write((sql, now) => {
        if (sql.get.get(key, now) !== undefined) return false
        sql.set.run(key, value, endOf(ttl, now))
        return true
      })
    },
    async increment(key: string, by: number, ttl?: Ms): Promise<number> {
      checkText('increment(key)', key)
      finiteStep(key, by)
      checkTtl('increment', ttl)
      return write((sql, now) => increment(sql, key, by, ttl, now))
    },
  }
  const beyond = {
    async incrementOnce(counter: string, marker: string, by: number, ttl?: Ms) {
      checkText('incrementOnce(counter)', counter)
      checkText('incrementOnce(marker)', marker)
      finiteStep(counter, by)
      checkTtl('incrementOnce', ttl)
      return write((sql, now) => {
        if (sql.get.get(marker, now) !== undefined)
          return { value: counterValue(counter, sql.get.get(counter, now)?.[0]), applied: false }
        const value = increment(sql, counter, by, ttl, now)
        sql.set.run(marker, '1', endOf(ttl, now))
        return { value, applied: true }
      })
    },
    async compareAndSet(key: string, expected: string | undefined, next: string, ttl?: Ms) {
      checkEntry('compareAndSet', key, next, ttl)
      return write((sql, now) => {
        if (sql.get.get(key, now)?.[0] !== expected) return false
        sql.set.run(key, next, endOf(ttl, now))
        return true
      })
    },
    async getMany(keys: readonly string[]) {
      for (const key of keys) checkText('getMany(key)', key)
      return connection.readTogether((sql, now) => keys.map((key) => sql.get.get(key, now)?.[0]))
    },
    async setMany(entries: readonly { readonly key: string; readonly value: string; readonly ttl?: Ms }[]) {
      // All or none: a bad one in the middle must not leave half of them behind.
      for (const { key, value, ttl } of entries) checkEntry('setMany', key, value, ttl)
      await write((sql, now) => {
        for (const { key, value, ttl } of entries) sql.set.run(key, value, endOf(ttl, now))
      })
    },
  }
  return withHidden(port, beyond)
}

function increment(sql: Statements, key: string, by: number, ttl: Ms | undefined, now: At): number {
  const found = sql.get.get(key, now)
  const value = counterValue(key, found?.[0]) + by
  // The expiry is refreshed only when it is given.
  sql.set.run(key, String(value), endOf(ttl, now) ?? found?.[1] ?? null)
  return value
}

function checkEntry(call: string, key: unknown, value: unknown, ttl: Ms | undefined): void {
  checkText(`${call}(key)`, key)
  checkText(`${call}(value)`, value)
  checkTtl(call, ttl)
}

function checkTtl(call: string, ttl: unknown): void {
  numberOption(`${call}.ttl`, ttl, { min: 0, default: 0, infinite: true })
}

/** No ttl, and a ttl of 0, mean forever. */
function endOf(ttl: Ms | undefined, now: At): At | null {
  return ttl === undefined || ttl === 0 || ttl === Number.POSITIVE_INFINITY ? null : now + ttl
}
