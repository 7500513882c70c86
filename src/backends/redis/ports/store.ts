import { MillraceError } from '../../../core/error.js'
import { GroupCommit } from '../../../core/group-commit.js'
import { numberOption } from '../../../core/options.js'
import { describeValue } from '../../../core/text/describe-value.js'
import { isWellFormed } from '../../../core/text/well-formed.js'
import type { Ms } from '../../../core/time/time.js'
import type { FullStore } from '../../../ports/full-ports.js'
import { finiteStep, notANumber } from '../../shared/counter-value.js'
import { withHidden } from '../../shared/hidden.js'
import type { RedisContext } from '../context.js'
import { msWord } from '../time.js'

/** The words of one compareAndSet: when it ends, its key, the new value, the one that is expected. */
type Try = readonly [ttl: string, key: string, next: string, expected: string]

/** Most tries of one call: this process goes on with the first answers while the server is at the next call. */
const MOST_PER_CALL = 100

/** Keys and values on Redis. */
export type RedisStore = FullStore

/** The plain port of the keys of a namespace. What the three-port contract does not know is hidden from a spread. */
export function storePort(context: RedisContext): RedisStore {
  const run = (verb: string, ...words: (string | number)[]) =>
    // With a test's clock the server does not know when a key ends: then only comparisons decide.
    context.run('store', [context.now() === '' ? 1 : 0, verb, ...words])
  const read = async (keys: readonly string[]): Promise<(string | undefined)[]> => {
    if (keys.length === 0) return []
    const values = (await run('get', ...keys.map(keyWord))) as readonly (string | null)[]
    return keys.map((_, i) => values[i] ?? undefined)
  }
  // Thousands of keys are tried in one moment where each message of a stream has one: neighbours share a call.
  const tries = new GroupCommit<Try, number>({
    maxBatch: MOST_PER_CALL,
    maxUnsent: Infinity,
    maxUnsentBytes: Infinity,
    maxUnderWay: Infinity,
    flush: async (batch) => (await run('compareAndSet', ...batch.flat())) as readonly number[],
  })
  const compareAndSet = async (key: string, expected: string | undefined, next: string, ttl?: Ms): Promise<boolean> => {
    const was = expected === undefined ? '' : `=${expected}`
    return (await tries.add([ttlWord(ttl), keyWord(key), valueWord(next), was])) === 1
  }
  const port = {
    get: async (key: string) => (await read([key]))[0],
    async set(key: string, value: string, ttl?: Ms): Promise<void> {
      await run('set', ttlWord(ttl), keyWord(key), valueWord(value))
    },
    async delete(key: string): Promise<void> {
      await run('delete', keyWord(key))
    },
    setIfNotExists: (key: string, value: string, ttl?: Ms) => compareAndSet(key, undefined, value, ttl),
    async increment(key: string, by: number, ttl?: Ms): Promise<number> {
      const value = (await run('increment', ttlWord(ttl), keyWord(key), String(finiteStep(key, by)))) as string | null
      if (value === null) throw notANumber(key, 'its value')
      return Number(value)
    },
  }
  return withHidden(port, {
    async incrementOnce(counter: string, marker: string, by: number, ttl?: Ms) {
      const words = [ttlWord(ttl), keyWord(counter), String(finiteStep(counter, by)), keyWord(marker)]
      const reply = (await run('incrementOnce', ...words)) as [string, number] | null
      if (reply === null) throw notANumber(counter, 'its value')
      return { value: Number(reply[0]), applied: reply[1] === 1 }
    },
    compareAndSet,
    getMany: (keys: readonly string[]) => read(keys),
    async setMany(entries: readonly { readonly key: string; readonly value: string; readonly ttl?: Ms }[]) {
      // All are checked before one is sent.
      const words = entries.flatMap(({ key, value, ttl }) => [ttlWord(ttl), keyWord(key), valueWord(value)])
      if (words.length > 0) await run('set', ...words)
    },
  })
}

function keyWord(key: unknown): string {
  if (typeof key === 'string' && isWellFormed(key)) return key
  throw new MillraceError(
    'BAD_KEY',
    `A key must be a text without half of a surrogate pair, got ${describeValue(key)}.`,
  )
}

function valueWord(value: unknown): string {
  if (typeof value === 'string' && isWellFormed(value)) return value
  throw new MillraceError(
    'BAD_VALUE',
    `set(key, value): value must be a text, got ${describeValue(value)}. Encode it first.`,
  )
}

function ttlWord(ttl: Ms | undefined): string {
  const given = numberOption('set.ttl', ttl, { min: 0, default: 0, infinite: true })
  return given === 0 ? '' : msWord(given)
}
