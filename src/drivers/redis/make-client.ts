import { MillraceError } from '../../core/error.js'
import { doublingDelay } from '../../core/retry/backoff.js'
import type { RedisAddress, RedisClientLike } from './client.js'
import { clusterLine, type NodeAddress, type NodeClient } from './cluster-line.js'

/**
 * How our connections behave. The client sends nothing twice: the caller learns that the outcome is unknown, and decides.
 * Nothing waits in the client while it is not connected: calls wait in `RedisConnection`, and no longer than their timeout.
 */
const BEHAVIOUR = Object.freeze({
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  retryStrategy: (times: number) => doublingDelay(times - 1, { baseMs: 50, maxMs: 2_000 }),
  // After a fail-over the old address may answer as a replica: connect anew, which asks where the master is. A script wraps
  // that answer in its own words.
  reconnectOnError: (error: Error) => error.message.includes('READONLY'),
})

/** A listener may wait: its subscriptions are made again after each connect. */
const LISTENING = Object.freeze({ enableOfflineQueue: true, maxRetriesPerRequest: null, autoResubscribe: true })

/** The one place that knows the driver. It is loaded when the first connection is made. */
async function loadDriver() {
  try {
    return await import('ioredis')
  } catch (error) {
    throw new MillraceError(
      'DRIVER_MISSING',
      'Redis needs the package ioredis, which could not be loaded. Install it: npm install ioredis',
      { cause: error },
    )
  }
}

/** Makes a client that is not connected yet. */
export async function makeClient(address: RedisAddress, isListening: boolean): Promise<RedisClientLike> {
  if (address.client !== undefined) return isListening ? lineBeside(address.client) : address.client
  if (address.cluster !== undefined && isListening) return lineInto(address.cluster)
  const { Redis, Cluster } = await loadDriver()
  const behaviour = isListening ? { ...BEHAVIOUR, ...LISTENING } : BEHAVIOUR
  if (address.cluster !== undefined) {
    const { nodes, options = {} } = address.cluster
    const { redisOptions, ...others } = options as { readonly redisOptions?: object }
    const cluster = new Cluster([...nodes], {
      clusterRetryStrategy: behaviour.retryStrategy,
      ...others,
      lazyConnect: true,
      // Otherwise it sends again what a node may have done before its line was cut.
      retryDelayOnFailover: 0,
      // Its nodes are connected to when they are first needed: what is asked of one waits there, unsent, and is sent once.
      enableOfflineQueue: true,
      redisOptions: { ...redisOptions, maxRetriesPerRequest: behaviour.maxRetriesPerRequest },
    })
    return cluster
  }
  const options = { ...address.options, ...behaviour }
  const client = address.url === undefined ? new Redis(options) : new Redis(address.url, options)
  return client
}

type ClusterAddress = NonNullable<RedisAddress['cluster']>

/** A connection to listen on beside the user's own client. */
async function lineBeside(client: RedisClientLike): Promise<RedisClientLike> {
  const { startupNodes, options } = client as { startupNodes?: ClusterAddress['nodes']; options?: object }
  if (!Array.isArray(startupNodes) || startupNodes.length === 0) return client.duplicate()
  // It is a cluster. Without our driver (it may be another one with the same methods) its own way has to do.
  return lineInto({ nodes: startupNodes, options: { ...options } }).catch(() => client.duplicate())
}

async function lineInto({ nodes, options = {} }: ClusterAddress): Promise<RedisClientLike> {
  const { Redis } = await loadDriver()
  const { redisOptions, natMap } = options as { readonly redisOptions?: object; readonly natMap?: unknown }
  // The driver reads addresses; nothing is connected to by that.
  const seeds = nodes.map((node): NodeAddress & object => {
    const read =
      typeof node === 'object' ? new Redis({ ...node, lazyConnect: true }) : new Redis(node, { lazyConnect: true })
    const { host = '127.0.0.1', port = 6379, username, password, tls } = read.options
    const rest = Object.entries({ username, password, tls }).filter(
      ([, value]) => value !== undefined && value !== null,
    )
    return { host, port, ...Object.fromEntries(rest) }
  })
  return clusterLine(
    seeds,
    natMap === undefined || natMap === null,
    BEHAVIOUR.retryStrategy,
    (first, retryStrategy) => {
      // The listener subscribes again itself, once the nodes are known.
      const behaviour = { ...BEHAVIOUR, ...LISTENING, autoResubscribe: false, retryStrategy }
      return new Redis({ ...redisOptions, ...first, ...behaviour }) as unknown as NodeClient
    },
  )
}

/** Whether a user's own client sends again what was not answered, as far as its options show. */
export function sendsTwice(client: RedisClientLike): boolean {
  const { autoResendUnfulfilledCommands, maxRetriesPerRequest, retryDelayOnFailover } = (client.options ?? {}) as {
    readonly autoResendUnfulfilledCommands?: boolean
    readonly maxRetriesPerRequest?: number | null
    readonly retryDelayOnFailover?: number
  }
  if (retryDelayOnFailover !== undefined) return retryDelayOnFailover > 0
  // Without another try nothing is kept to be sent again.
  return autoResendUnfulfilledCommands === true && maxRetriesPerRequest !== 0
}
