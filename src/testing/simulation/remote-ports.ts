import type { PubSub, Queue, Store } from '../../ports/ports.js'
import { copied } from './copied.js'
import type { Wire } from './wire.js'

/** How much of its ports a backend shows: all they can do, or only what every port has to. */
export type PortWidth = 'full' | 'minimal'

const QUEUE = ['push', 'pop', 'heartbeat', 'ack', 'fail'] as const satisfies readonly (keyof Queue)[]
const QUEUE_BEYOND = ['deadLetter', 'pushMany', 'ackMany', 'heartbeatMany'] as const satisfies readonly (keyof Queue)[]
const STORE = ['get', 'set', 'setIfNotExists'] as const satisfies readonly (keyof Store)[]
const STORE_BEYOND = [
  'delete',
  'increment',
  'incrementOnce',
  'compareAndSet',
  'getMany',
  'setMany',
] as const satisfies readonly (keyof Store)[]

/** A queue as one process sees it over its wire. */
export function remoteQueue(shared: Queue, name: string, wire: Wire, width: PortWidth): Queue {
  return remote(shared, name, wire, width === 'full' ? [...QUEUE, ...QUEUE_BEYOND] : QUEUE) as unknown as Queue
}

/** A store as one process sees it over its wire. */
export function remoteStore(shared: Store, wire: Wire, width: PortWidth): Store {
  return remote(shared, 'store', wire, width === 'full' ? [...STORE, ...STORE_BEYOND] : STORE) as unknown as Store
}

export function remotePubSub(shared: PubSub, wire: Wire): PubSub {
  return {
    publish: (message) => wire.call('publish', () => shared.publish(message)),
    subscribe: (listener) =>
      wire.listen(() => shared.subscribe((message) => wire.notify('message', () => listener(message)))),
  }
}

/** Every function of the port that is there, each a call over the wire. Object by object the same shape. */
function remote(shared: object, port: string, wire: Wire, names: readonly string[]): Record<string, unknown> {
  const wrapped: Record<string, unknown> = {}
  for (const name of names) {
    const method: unknown = (shared as Record<string, unknown>)[name]
    if (typeof method !== 'function') continue
    wrapped[name] = (...given: unknown[]) => {
      const sent = copied(given)
      return wire.call(`${port}.${name}`, () => method(...sent) as unknown, { asked: noteOf(name, sent) })
    }
  }
  return wrapped
}

/** Keys, and whose body it is: enough to follow an item. Values would fill the page. */
function noteOf(name: string, [first, second, third]: readonly unknown[]): string {
  if (name === 'incrementOnce') return `${first} ${second} ${third}`
  if (name === 'increment') return `${first} ${second}`
  const all = Array.isArray(first) ? first : [first]
  return all.map(subjectOf).join(' ')
}

function subjectOf(subject: unknown): string {
  if (typeof subject === 'object' && subject !== null) {
    const { key, body } = subject as { readonly key?: unknown; readonly body?: unknown }
    return subjectOf(key ?? body)
  }
  if (typeof subject !== 'string' || !subject.startsWith('{')) return String(subject)
  return /"id":"([^"]*)"/.exec(subject)?.[1] ?? 'a body'
}
