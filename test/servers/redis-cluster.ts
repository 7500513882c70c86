import type { PrivateServer } from './private-server.js'
import { redisCommand, startRedis } from './redis.js'

export interface RedisCluster {
  readonly nodes: readonly PrivateServer[]
  stop(): Promise<void>
}

const SLOTS = 16_384

/** Three private masters that share the slots, without replicas. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const nodes = await Promise.all([0, 1, 2].map(() => startRedis({ args: ['--cluster-enabled', 'yes'] })))
  const [first] = nodes
  await Promise.all(
    nodes.map(({ port }, i) => {
      const from = Math.floor((SLOTS * i) / nodes.length)
      const upTo = Math.floor((SLOTS * (i + 1)) / nodes.length)
      const slots = Array.from({ length: upTo - from }, (_, slot) => String(from + slot))
      return redisCommand(port, 'CLUSTER', 'ADDSLOTS', ...slots)
    }),
  )
  for (const { port } of nodes.slice(1)) await redisCommand(port, 'CLUSTER', 'MEET', '127.0.0.1', String(first!.port))
  // The nodes find each other by gossip, which takes real time.
  for (const { port } of nodes) {
    for (let tries = 0; !(await isWhole(port)); tries += 1) {
      if (tries > 300) throw new Error(`The Redis cluster did not form: ${await redisCommand(port, 'CLUSTER', 'INFO')}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  return {
    nodes,
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()))
    },
  }
}

async function isWhole(port: number): Promise<boolean> {
  const info = (await redisCommand(port, 'CLUSTER', 'INFO')) ?? ''
  return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3')
}
