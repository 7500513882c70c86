import { startRedis } from '../../servers/index.js'
import type { TracerStore } from '../tracer.js'
import { RedisTracer } from './ledger.js'

/** A private Redis. */
export async function redisStore(): Promise<TracerStore & { readonly url: string }> {
  const server = await startRedis()
  return {
    name: 'redis',
    url: server.url,
    open: async (now) => new RedisTracer({ url: server.url, prefix: 'tracer', ...(now && { now }) }),
    reset: () => server.flush(),
    close: () => server.stop(),
  }
}
