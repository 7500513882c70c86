import { ownedBy, ownPorts } from '../../../src/ports/find-ledger.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import type { Ports } from '../../../src/ports/ports.js'
import type { Ground } from '../support.js'

/** Ports whose native ledger is changed by `change`; those that have none are changed by `plain`. */
export function tapped(
  change: (ledger: Ledger) => Partial<Ledger>,
  plain: (ports: Ports) => Ports = (ports) => ports,
): (ports: Ports) => Ports {
  return (ports) => {
    const found = ownedBy(ports, [])
    if (!('open' in found)) return plain(ports)
    // New objects, since a capability belongs to the very objects that carry it.
    const store = { ...ports.store }
    const pubsub = { ...ports.pubsub }
    const queue = { ...ports.queue }
    ownPorts({
      queues: new Map([[queue, found.queues.get(ports.queue) ?? 'default']]),
      pubsub,
      store,
      open: (options) => {
        const ledger = found.open(options)
        return Object.assign(Object.create(ledger) as Ledger, { ...ledger, ...change(ledger) })
      },
    })
    return { queue, pubsub, store }
  }
}

/** Drops every notification: only heartbeats, claims and polls are left. */
export const deafInbox = tapped(
  () => ({ onInbox: () => () => undefined }),
  (ports) => ({ ...ports, pubsub: { publish: () => undefined, subscribe: () => () => undefined } }),
)

/** Counts the calls of a native ledger, by verb. */
export function counted(): { readonly ports: (ports: Ports) => Ports; readonly calls: Map<string, number> } {
  const calls = new Map<string, number>()
  const ports = tapped((ledger) => {
    const verbs = ['claim', 'markStarted', 'extend', 'commit', 'read', 'groups', 'watch', 'paused'] as const
    return Object.fromEntries(
      verbs.flatMap((verb) => {
        const call = ledger[verb] as ((...args: unknown[]) => unknown) | undefined
        if (call === undefined) return []
        const counting = (...args: unknown[]) => {
          calls.set(verb, (calls.get(verb) ?? 0) + 1)
          return call.apply(ledger, args)
        }
        return [[verb, counting]]
      }),
    )
  })
  return { ports, calls }
}

export const isNativeGround = (ground: Ground): boolean => ground === 'native' || ground === 'real'
