import type { Clock } from '../core/time/clock.js'
import type { Ms } from '../core/time/time.js'
import type { Ledger } from './ledger.js'
import type { Ports, PubSub, Queue, Store } from './ports.js'

/**
 * Where a backend keeps its native ledger: a non-enumerable symbol on its store. A spread does not copy it, and it names
 * its owner's ports, so that neither a proxy nor an object that inherits from ours can pass for it. `Symbol.for` makes
 * two installed copies of the package agree.
 */
export const NATIVE: unique symbol = Symbol.for('millrace.ledger') as never

/** Waits for what was handed in; settles in bounded time, however the backend fares. */
export type WaitBeforeClose = () => Promise<unknown>

/** What the symbol holds: the very objects that were made together, and how to open their ledger. */
export interface OwnedPorts {
  /** The default queue and every `named()` one, with their names. */
  readonly queues: ReadonlyMap<Queue, string>
  readonly pubsub: PubSub
  readonly store: Store
  /** `prefix` is that of the keys in the store. Backends that keep items in tables do not read it. */
  open(options: { readonly prefix: string }): Ledger
  /** Has a close of the backend wait for this first. Yields what ends that. */
  readonly beforeClose?: (wait: WaitBeforeClose) => () => void
}

/** The ledger a system runs on, and the name each of its queues has there. */
export interface OpenedLedger {
  readonly ledger: Ledger
  readonly names: ReadonlyMap<Queue, string>
  /** Why the plain path is in use: the port that is not the backend's own. Absent on the native path. */
  readonly foreign?: 'queue' | 'pubsub' | 'store' | 'a per-type queue'
  /** Other ports are a backend's own, so that the native path was probably meant. */
  readonly isMixed?: boolean
  /** Has a close of any backend beneath wait for this first. Yields what ends that. */
  readonly beforeClose?: (wait: WaitBeforeClose) => () => void
}

/** What a system passes to the adapter over plain ports. */
export interface PlainPortsOptions {
  readonly prefix: string
  readonly clock: Clock
  /** How long a delivery that must not run now is put back for. */
  readonly putBackMs: Ms
  readonly onError?: (error: unknown, phase: 'queue' | 'commit') => void
  /** Repeats calls that may be repeated. */
  readonly retryPort?: <T>(call: () => Promise<T>) => Promise<T>
}

/** Makes a ledger of three plain ports. The doors hand it to the engines, which import no backend. */
export type OverPlainPorts = (
  ports: Ports,
  perType: readonly Queue[],
  options: PlainPortsOptions,
) => Omit<OpenedLedger, 'foreign'>

/** The capability of a store, if these are its own ports: one foreign port and the whole system is plain. */
export function ownedBy(
  ports: Ports,
  perType: readonly Queue[],
): OwnedPorts | { readonly foreign: OpenedLedger['foreign'] } {
  const own = markOf(ports.store)
  if (own === undefined || own.store !== ports.store) return { foreign: 'store' }
  if (own.pubsub !== ports.pubsub) return { foreign: 'pubsub' }
  if (!own.queues.has(ports.queue)) return { foreign: 'queue' }
  if (!perType.every((q) => own.queues.has(q))) return { foreign: 'a per-type queue' }
  return own
}

/** Marks the ports as made together, and hides that from a spread. The mark on the store opens the ledger. */
export function ownPorts(owned: OwnedPorts): void {
  // Configurable: a caller that wraps a store and keeps the queue marks that queue again.
  for (const port of [owned.store, owned.pubsub, ...owned.queues.keys()])
    Object.defineProperty(port, NATIVE, { value: owned, enumerable: false, configurable: true })
}

const markOf = (port: object): OwnedPorts | undefined => (port as { readonly [NATIVE]?: OwnedPorts })[NATIVE]

/**
 * Finds the ledger for these ports: the backend's own where all of them are its own, otherwise the adapter over plain
 * ports. A group must not live in two books, so one system is native or plain as a whole.
 */
export function findLedger(
  ports: Ports,
  perType: readonly Queue[],
  options: { readonly prefix: string },
  overPlainPorts: (ports: Ports, perType: readonly Queue[]) => Omit<OpenedLedger, 'foreign'>,
): OpenedLedger {
  const found = ownedBy(ports, perType)
  const marks = [ports.queue, ports.pubsub, ports.store, ...perType].map(markOf).filter((mark) => mark !== undefined)
  const beforeClose = allBeforeClose([...new Set(marks)])
  if ('open' in found) return { ledger: found.open(options), names: found.queues, beforeClose }
  const foreign = found.foreign
  const isMixed = marks.length > 0
  return { ...overPlainPorts(ports, perType), ...(foreign === undefined ? {} : { foreign, isMixed }), beforeClose }
}

function allBeforeClose(backends: readonly OwnedPorts[]) {
  return (wait: WaitBeforeClose): (() => void) => {
    const ends = backends.map(({ beforeClose }) => beforeClose?.(wait))
    return () => {
      for (const end of ends) end?.()
    }
  }
}
