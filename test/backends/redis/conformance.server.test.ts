import { afterAll, describe, it } from 'vitest'
import { redisBackend } from '../../../src/backends/redis/index.js'
import type { Backend } from '../../../src/ports/ports.js'
import { describeBackend } from '../../../src/testing/conformance/describe-backend.js'
import { startRedis } from '../../servers/index.js'
import { type WatchedClient, watchedClient } from './watched-client.js'

const server = await startRedis()
afterAll(() => server.stop())

let opened = 0
const clients = new Map<Backend, WatchedClient>()

// Every clause in its own namespace: the server is shared, and nothing has to be flushed.
describeBackend({
  name: 'redis',
  test: { describe, it },
  resting: () => [...clients.values()].every((client) => client.resting()),
  open: (clock) => {
    opened += 1
    const watched = watchedClient(server.url)
    const backend = redisBackend({ client: watched.client, prefix: `clause ${opened}`, clock })
    clients.set(backend, watched)
    return backend
  },
  close: async (backend) => {
    await backend.close?.()
    clients.get(backend)?.close()
    clients.delete(backend)
  },
})
