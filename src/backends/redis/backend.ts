import { RedisConnection, RedisSubscriptions } from '../../drivers/redis/index.js'
import { ownPorts } from '../../ports/find-ledger.js'
import type { Backend, Queue } from '../../ports/ports.js'
import { BeforeClose } from '../shared/before-close.js'
import { withHidden } from '../shared/hidden.js'
import { redisContext } from './context.js'
import { evictionCheck } from './eviction.js'
import { checkName, tagOf } from './keys.js'
import { redisLedger } from './ledger.js'
import { modeGuard } from './mode.js'
import { Notifier } from './notify.js'
import { type RedisBackendOptions, resolveOptions } from './options.js'
import { pubsubPort, type RedisPubSub } from './ports/pubsub.js'
import { queuePort, type RedisQueue } from './ports/queue.js'
import { type RedisStore, storePort } from './ports/store.js'

const DEFAULT_QUEUE = 'default'

/** Three ports on Redis, made together, and a native ledger behind them. */
export interface RedisBackend extends Backend {
  readonly queue: RedisQueue
  readonly pubsub: RedisPubSub
  readonly store: RedisStore
  named(queue: string): RedisQueue
  /**
   * Waits for enqueues that were handed in before, at most 5 s or `stopDrain` of their system, then ends the connections that this
   * backend opened. A client that was given is left as it is.
   */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Work on Redis 6.2 or newer, on one server, behind Sentinel or in a Cluster. Every settlement is one atomic script; accepted
 * work is as durable as that server is configured to be. It connects when it is first used, and needs the package `ioredis`.
 *
 * @example
 * ```ts
 * const backend = redisBackend({ url: 'redis://127.0.0.1:6379', prefix: 'shop' })
 * const work = createWork({ backend, work: [sendInvoice] as const })
 * ```
 */
export function redisBackend(options: RedisBackendOptions): RedisBackend {
  const { address, prefix, maxItemBytes, commandTimeoutMs, onError, now } = resolveOptions(options)
  const connection = new RedisConnection({ address, commandTimeoutMs, onError, onConnect: evictionCheck(onError) })
  const subscriptions = new RedisSubscriptions({
    address,
    commandTimeoutMs,
    onError,
    onMissed: () => notifier.missed(),
  })
  const context = redisContext({ tag: tagOf(prefix), now, connection, subscriptions, maxItemBytes })
  const notifier = new Notifier(context)
  const plain = modeGuard(context, 'plain')

  const ports = new Map<string, RedisQueue>()
  const names = new Map<Queue, string>()
  const named = (name: string): RedisQueue => {
    checkName('named(queue)', name)
    let port = ports.get(name)
    if (port === undefined) {
      port = queuePort(context, name, plain)
      ports.set(name, port)
      names.set(port, name)
    }
    return port
  }
  const queue = named(DEFAULT_QUEUE)
  const pubsub = pubsubPort(context)
  const store = storePort(context)
  const beforeClose = new BeforeClose()
  ownPorts({
    queues: names,
    pubsub,
    store,
    open: () => redisLedger(context, notifier),
    beforeClose: beforeClose.add,
  })
  let closing: Promise<void> | undefined
  const end = async (): Promise<void> => {
    await beforeClose.settled()
    await Promise.all([subscriptions.close(), connection.close()])
  }
  const close = (): Promise<void> => {
    closing ??= end()
    return closing
  }
  return withHidden({ queue, pubsub, store }, { named, close, [Symbol.asyncDispose]: close })
}
