import { OptionError } from '../../core/options.js'
import { type Owned, own, ownedBy } from '../../ports/native.js'
import type { Backend, Queue } from '../../ports/ports.js'
import { farLedger } from './far-ledger.js'
import { farPubSub, farQueue, farStore, type PortWidth } from './far-ports.js'
import type { History } from './history.js'
import { DEFAULT_QUEUE } from './queue-names.js'
import type { Wire } from './wire.js'

/**
 * How processes stand on the backend: on its own ledger, on its three ports with everything they can do, or on ports
 * that can do no more than they must.
 */
export type Ground = 'native' | 'plain' | 'minimal'

/** One process's own connection to the backend that the whole fleet shares. */
export interface FarBackend {
  readonly backend: Backend
  /** The queue of this name, over this connection. */
  readonly queue: (name: string) => Queue
  /** The name of a queue of this connection. */
  readonly nameOf: (queue: Queue) => string | undefined
}

/** The ledger behind a backend, for those who have one. */
export function ownedOf(near: Backend): Owned {
  const found = ownedBy(near, [])
  if ('open' in found) return found
  throw new OptionError(
    'simulate.backend',
    'a backend with a ledger of its own, unless ground is plain or minimal',
    near,
  )
}

export function farBackend(near: Backend, ground: Ground, wire: Wire, history: History): FarBackend {
  const width: PortWidth = ground === 'minimal' ? 'minimal' : 'full'
  const byName = new Map<string, Queue>()
  const names = new Map<Queue, string>()
  const queue = (name: string): Queue => {
    const known = byName.get(name)
    if (known !== undefined) return known
    const made = farQueue(nearQueue(near, name), name, wire, width)
    byName.set(name, made)
    names.set(made, name)
    return made
  }
  const store = farStore(near.store, wire, width)
  const pubsub = farPubSub(near.pubsub, wire)
  const backend: Backend = { queue: queue(DEFAULT_QUEUE), pubsub, store }
  if (ground === 'native') {
    const owned = ownedOf(near)
    own({ queues: names, pubsub, store, open: (options) => farLedger(owned.open(options), wire, history) })
  }
  return { backend, queue, nameOf: (one) => names.get(one) }
}

export function nearQueue(near: Backend, name: string): Queue {
  if (name === DEFAULT_QUEUE) return near.queue
  if (near.named !== undefined) return near.named(name)
  throw new OptionError('simulate.backend', 'a backend with named queues, because work has queues of its own', near)
}
