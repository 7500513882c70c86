import type { Backend } from '../../src/index.js'
import { ownedBy, ownPorts } from '../../src/ports/find-ledger.js'
import type { Ledger } from '../../src/ports/ledger.js'
import type { Queue } from '../../src/ports/ports.js'

/** The same backend, natively, with another ledger in front of its own: `change` says which of its functions differ. */
export function wrapLedger(sound: Backend, change: (ledger: Ledger) => Partial<Ledger>): Backend {
  const found = ownedBy(sound, [])
  if (!('open' in found)) throw new Error(`this backend has no ledger: its ${found.foreign} is foreign`)
  // Objects of their own, since a capability belongs to the very objects that carry it.
  const [pubsub, store, queue] = [{ ...sound.pubsub }, { ...sound.store }, { ...sound.queue }]
  const queues = new Map<Queue, string>([[queue, found.queues.get(sound.queue)!]])
  const byName = new Map<string, Queue>()
  const named = (name: string): Queue => {
    const made = byName.get(name) ?? { ...sound.named!(name) }
    byName.set(name, made)
    queues.set(made, name)
    return made
  }
  const open: typeof found.open = (options) => {
    const ledger = found.open(options)
    return { ...ledger, ...change(ledger) }
  }
  ownPorts({ queues, pubsub, store, open })
  return { queue, pubsub, store, named }
}
