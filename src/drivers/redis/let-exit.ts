import type { RedisClientLike } from './client.js'

/** What holds a process open in a client of ioredis, as far as it can be seen from outside. */
interface Holding {
  readonly stream?: { unref?(): unknown }
  readonly reconnectTimeout?: { unref?(): unknown } | null
  /** A cluster's own line to listen on; we use another, but it is always made. */
  readonly subscriber?: { getInstance?(): RedisClientLike | null | undefined }
}

/**
 * Lets a program end while this client is idle, as our timers do: neither its socket nor the pause before its next try to connect
 * holds the process. A call that waits for its answer does (`RedisConnection`).
 */
export function letProcessExit(client: RedisClientLike): void {
  const seen = new WeakSet<object>()
  const letGo = (one: RedisClientLike): void => {
    if (seen.has(one)) return
    seen.add(one)
    const holding = one as Holding
    const unref = () => {
      holding.stream?.unref?.()
      // In a cluster it is made with the first connection, and may be made anew.
      const own = holding.subscriber?.getInstance?.()
      if (own !== undefined && own !== null) letGo(own)
    }
    unref()
    for (const event of ['connect', 'ready', '+subscriber'] as const) one.on(event, unref)
    one.on('reconnecting', () => holding.reconnectTimeout?.unref?.())
    one.on('+node', letGo)
  }
  letGo(client)
}
