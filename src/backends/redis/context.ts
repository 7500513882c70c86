import type { RedisConnection, RedisSubscriptions } from '../../drivers/redis/index.js'
import { type ScriptName, script } from './scripts.js'
import type { Now } from './time.js'

/** The working context of a backend: one namespace on one connection. */
export interface RedisContext {
  /** Begins every key. */
  readonly tag: string
  readonly now: Now
  readonly connection: RedisConnection
  readonly subscriptions: RedisSubscriptions
  readonly maxItemBytes: number
  /** Runs a script of ours; the time comes first. */
  run(name: ScriptName, words: readonly (string | number)[]): Promise<unknown>
}

export function redisContext(parts: Omit<RedisContext, 'run'>): RedisContext {
  const { tag, now, connection, subscriptions } = parts
  return {
    ...parts,
    async run(name, words) {
      // Listeners that registered before the call get its notifications.
      const listening = subscriptions.settled()
      if (listening !== undefined) await listening
      const first: readonly (string | number)[] = [now()]
      return connection.run(script(name), tag, first.concat(words))
    },
  }
}
