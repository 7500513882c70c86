import { OptionError } from '../../core/options.js'
import { type OwnedPorts, ownedBy, ownPorts } from '../../ports/find-ledger.js'
import type { Backend, Queue } from '../../ports/ports.js'
import type { History } from './history.js'
import { DEFAULT_QUEUE } from './queue-names.js'
import { remoteLedger } from './remote-ledger.js'
import { type PortWidth, remotePubSub, remoteQueue, remoteStore } from './remote-ports.js'
import type { Wire } from './wire.js'

/**
 * How processes stand on the backend: on its own ledger, on its three ports with everything they can do, or on ports
 * that can do no more than they must.
 */
export type Ground = 'native' | 'plain' | 'minimal'

/** One process's own connection to the backend that the whole fleet shares. */
export interface RemoteBackend {
  readonly backend: Backend
  /** The queue of this name, over this connection. */
  readonly queue: (name: string) => Queue
  /** The name of a queue of this connection. */
  readonly nameOf: (queue: Queue) => string | undefined
}

/** The ledger behind a backend that has one. */
export function ownedOf(shared: Backend): OwnedPorts {
  const found = ownedBy(shared, [])
  if ('open' in found) return found
  throw new OptionError('simulate.backend', 'a backend with its own ledger, unless ground is plain or minimal', shared)
}

export function remoteBackend(shared: Backend, ground: Ground, wire: Wire, history: History): RemoteBackend {
  const width: PortWidth = ground === 'minimal' ? 'minimal' : 'full'
  const byName = new Map<string, Queue>()
  const names = new Map<Queue, string>()
  const queue = (name: string): Queue => {
    const known = byName.get(name)
    if (known !== undefined) return known
    const made = remoteQueue(sharedQueue(shared, name), name, wire, width)
    byName.set(name, made)
    names.set(made, name)
    return made
  }
  const store = remoteStore(shared.store, wire, width)
  const pubsub = remotePubSub(shared.pubsub, wire)
  const backend: Backend = { queue: queue(DEFAULT_QUEUE), pubsub, store }
  if (ground === 'native') {
    const owned = ownedOf(shared)
    ownPorts({ queues: names, pubsub, store, open: (options) => remoteLedger(owned.open(options), wire, history) })
  }
  return { backend, queue, nameOf: (one) => names.get(one) }
}

export function sharedQueue(shared: Backend, name: string): Queue {
  if (name === DEFAULT_QUEUE) return shared.queue
  if (shared.named !== undefined) return shared.named(name)
  throw new OptionError(
    'simulate.backend',
    'a backend with named queues, because work types have their own queues',
    shared,
  )
}
