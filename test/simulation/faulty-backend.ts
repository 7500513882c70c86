import { type Backend, type Clock, type Ledger, memoryBackend } from '../../src/index.js'
import { own, ownedBy } from '../../src/ports/native.js'

/** A memory backend whose ledger has a fault: for the simulation to find. */
export function faultyBackend(fault: (ledger: Ledger) => Partial<Ledger>): (clock: Clock) => Backend {
  return (clock) => {
    const { queue, pubsub, store: sound, named } = memoryBackend({ clock })
    const found = ownedBy({ queue, pubsub, store: sound }, [])
    if (!('open' in found)) throw new Error('the memory backend has a ledger of its own')
    const store = { ...sound }
    const open: typeof found.open = (options) => {
      const ledger = found.open(options)
      return { ...ledger, ...fault(ledger) }
    }
    own({ queues: found.queues, pubsub, store, open })
    return { queue, pubsub, store, named }
  }
}
