import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type PrivateServer, startServer } from './private-server.js'
import { programPath } from './program.js'
import { redisCommand, startRedis } from './redis.js'

export interface RedisBehindSentinel {
  /** The name under which Sentinel knows the master. */
  readonly name: string
  readonly sentinel: PrivateServer
  readonly master: PrivateServer
  readonly replica: PrivateServer
  stop(): Promise<void>
}

const NAME = 'mill'

/** A private master with one replica, and one Sentinel that decides by itself and soon. */
export async function startRedisBehindSentinel(): Promise<RedisBehindSentinel> {
  const file = programPath('redis-server')
  const master = await startRedis()
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(master.port)] })
  const sentinel = await startServer({
    kind: 'redis',
    endBy: 'SIGTERM',
    url: (port) => `redis://127.0.0.1:${port}`,
    command: (port, dataDir) => {
      const config = join(dataDir, 'sentinel.conf')
      // Sentinel rewrites this file, and keeps what it has learnt in it.
      writeFileSync(
        config,
        [
          `port ${port}`,
          'bind 127.0.0.1',
          `dir ${dataDir}`,
          `sentinel monitor ${NAME} 127.0.0.1 ${master.port} 1`,
          `sentinel down-after-milliseconds ${NAME} 500`,
          `sentinel failover-timeout ${NAME} 2000`,
          '',
        ].join('\n'),
      )
      return { file, args: [config, '--sentinel'] }
    },
    ping: async (port) => (await redisCommand(port, 'PING')) === 'PONG',
    flush: async () => undefined,
  })
  // It learns of the replica from the master, which takes real time.
  for (let tries = 0; !(await knowsReplica(sentinel.port)); tries += 1) {
    if (tries > 300) throw new Error('Sentinel did not learn of the replica')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return {
    name: NAME,
    sentinel,
    master,
    replica,
    async stop() {
      for (const server of [sentinel, replica, master]) await server.stop()
    },
  }
}

async function knowsReplica(port: number): Promise<boolean> {
  return ((await redisCommand(port, 'INFO', 'sentinel')) ?? '').includes('slaves=1')
}
