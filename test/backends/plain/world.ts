import { overPlainPorts, type PlainOptions } from '../../../src/backends/plain/over-plain-ports.js'
import type { Clock } from '../../../src/core/time/clock.js'
import type { ClaimedItem } from '../../../src/ports/item.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import type { Ports, PubSub, Queue, Store } from '../../../src/ports/ports.js'
import type { CommitResult, Settlement } from '../../../src/ports/settlement.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { type Powers, portsWith } from './ports.js'

/** One call of a port. */
export interface Call {
  readonly port: 'queue' | 'store' | 'pubsub'
  readonly name: string
  readonly given: readonly unknown[]
}

/** `before`: it fails and nothing happened. `after`: it happened, and the reply was lost. */
export type Fault = (call: Call) => 'before' | 'after' | undefined

export interface Watched extends Ports {
  readonly calls: Call[]
  /** Decides which calls fail; a test may change it at any time. */
  fault: Fault
}

/** The same ports, with every call written down, and some of them failing. */
export function watched(ports: Ports): Watched {
  const calls: Call[] = []
  const wrap = <T extends object>(port: T, name: Call['port']): T => {
    const names = Object.getOwnPropertyNames(port) as (keyof T & string)[]
    const members = names.map((member) => {
      const method: unknown = port[member]
      if (typeof method !== 'function' || member === 'subscribe') return [member, method]
      const wrapped = (...given: unknown[]) => {
        const call = { port: name, name: member, given }
        calls.push(call)
        const fate = self.fault(call)
        if (fate === 'before') throw new Error(`${member} failed`)
        const answer: unknown = method(...given)
        if (fate === 'after') throw new Error(`the reply of ${member} was lost`)
        return answer
      }
      return [member, wrapped]
    })
    return Object.fromEntries(members) as T
  }
  const self: Watched = {
    calls,
    fault: () => undefined,
    queue: wrap<Queue>(ports.queue, 'queue'),
    store: wrap<Store>(ports.store, 'store'),
    pubsub: wrap<PubSub>(ports.pubsub, 'pubsub'),
  }
  return self
}

export interface World {
  readonly clock: FakeClock
  readonly ports: Watched
  readonly dead: readonly { readonly body: string; readonly error: string }[]
  readonly ledger: Ledger
  readonly errors: { readonly error: unknown; readonly phase: string }[]
  /** Another process on the same ports. */
  again(options?: PlainOptions): Ledger
  commit(settlement: Settlement): Promise<CommitResult>
  /** Claims as an engine does, and marks the starts. */
  claim(options?: {
    readonly max?: number
    readonly leaseMs?: number
    readonly ledger?: Ledger
  }): Promise<readonly ClaimedItem[]>
  get(key: string): Promise<string | undefined>
  pushRaw(body: string): Promise<void>
}

export function world(powers: Powers = 'documented', options: PlainOptions = {}): World {
  const clock = new FakeClock()
  const { dead, ...plain } = portsWith(powers, clock as Clock)
  const ports = watched(plain)
  const errors: World['errors'] = []
  const onError = (error: unknown, phase: string) => void errors.push({ error, phase })
  const again = (more: PlainOptions = {}) => overPlainPorts(ports, [], { clock, onError, ...options, ...more }).ledger
  const ledger = again()
  return {
    clock,
    ports,
    dead,
    ledger,
    errors,
    again,
    commit: async (settlement) => (await ledger.commit([settlement]))[0]!,
    claim: async ({ max = 10, leaseMs = 30_000, ledger: by = ledger } = {}) => {
      const { items } = await by.claim({ queues: [{ queue: 'default', max }], leaseMs, worker: 'w1' })
      await by.markStarted?.(items.map(({ lease }) => lease))
      return items
    },
    get: async (key) => plain.store.get(`work:${key}`),
    pushRaw: async (body) => plain.queue.push(body),
  }
}

/** Waits for work that itself waits on the clock (a lock that has to expire): time moves on until it is done. */
export async function through<T>({ clock }: World, work: Promise<T>): Promise<T> {
  let isOver = false
  const over = () => {
    isOver = true
  }
  work.then(over, over)
  await clock.settle()
  while (!isOver) await clock.advance(5)
  return work
}

/** The keys that writing calls of the store named, in order. */
export function written(calls: readonly Call[]): string[] {
  return calls.flatMap(({ port, name, given }) => {
    if (port !== 'store' || name.startsWith('get')) return []
    if (name === 'setMany') return (given[0] as readonly { key: string }[]).map(({ key }) => key)
    if (name === 'incrementOnce') return [String(given[0]), String(given[1])]
    return [String(given[0])]
  })
}
