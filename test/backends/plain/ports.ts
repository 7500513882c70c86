import { memoryPubSub, memoryQueue, memoryStore } from '../../../src/backends/memory/index.js'
import type { Clock } from '../../../src/core/time/clock.js'
import type { Ports, Queue, Store } from '../../../src/ports/ports.js'

/** How much a port can do beyond its obligations. */
export type Powers = 'all' | 'documented' | 'minimal'

/** Ports in memory with every optional power, with the documented members only, or with the bare obligations. */
export function portsWith(
  powers: Powers,
  clock: Clock,
): Ports & { readonly dead: readonly { body: string; error: string }[] } {
  const queue = memoryQueue({ clock })
  const store = memoryStore({ clock })
  const ports = { queue: queueWith(queue, powers), store: storeWith(store, powers), pubsub: memoryPubSub() }
  return { ...ports, dead: queue.dead }
}

export function queueWith(queue: Queue, powers: Powers): Queue {
  if (powers === 'all') return queue
  const { push, pop, heartbeat, ack, fail, deadLetter, size } = queue
  if (powers === 'minimal')
    return {
      // A simple queue knows no keys, and cannot say that a lease was lost.
      push: (body, { delay = 0, priority = 0 } = {}) => push(body, { delay, priority }),
      pop,
      heartbeat: async (pulled, visibility) => void (await heartbeat(pulled, visibility)),
      ack,
      fail,
    }
  return { push, pop, heartbeat, ack, fail, deadLetter: deadLetter!, size: size! }
}

export function storeWith(store: Store, powers: Powers): Store {
  if (powers === 'all') return store
  const { get, set, setIfNotExists } = store
  if (powers === 'minimal') return { get, set, setIfNotExists }
  return { get, set, setIfNotExists, delete: store.delete!, increment: store.increment! }
}

/** The same ports, answering later: each call takes a turn of the event loop. */
export function later<T extends object>(port: T): T {
  const answer = async (call: () => unknown) => {
    await new Promise<void>((resolve) => setImmediate(resolve))
    return call()
  }
  const names = Object.getOwnPropertyNames(port) as (keyof T & string)[]
  const entries = names.map((name) => {
    const member: unknown = port[name]
    if (typeof member !== 'function' || name === 'subscribe') return [name, member]
    return [name, (...given: unknown[]) => answer(() => member(...given))]
  })
  return Object.fromEntries(entries) as T
}

export function laterPorts({ queue, pubsub, store }: Ports): Ports {
  return { queue: later(queue), pubsub: later(pubsub), store: later(store) }
}
