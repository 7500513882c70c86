import { type Backend, type Clock, type Ledger, memoryBackend, type Queue } from '../../src/index.js'
import { own, ownedBy } from '../../src/ports/native.js'

/** A memory backend whose ledger has a fault: for the simulation to find. */
export function faultyBackend(fault: (ledger: Ledger) => Partial<Ledger>): (clock: Clock) => Backend {
  return (clock) => {
    const sound = memoryBackend({ clock })
    const found = ownedBy(sound, [])
    if (!('open' in found)) throw new Error('the memory backend has a ledger of its own')
    // Objects of their own, since a capability belongs to the very objects that carry it.
    const [pubsub, store, queue] = [{ ...sound.pubsub }, { ...sound.store }, { ...sound.queue }]
    const queues = new Map<Queue, string>([[queue, 'default']])
    const byName = new Map<string, Queue>()
    const named = (name: string): Queue => {
      const made = byName.get(name) ?? { ...sound.named!(name) }
      byName.set(name, made)
      queues.set(made, name)
      return made
    }
    const open: typeof found.open = (options) => {
      const ledger = found.open(options)
      return { ...ledger, ...fault(ledger) }
    }
    own({ queues, pubsub, store, open })
    return { queue, pubsub, store, named }
  }
}
