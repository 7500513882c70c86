import { MillraceError } from '../../core/error.js'
import type { Clock } from '../../core/time/clock.js'
import type { MaybePromise } from '../../core/time/time.js'
import { ownedBy } from '../../ports/find-ledger.js'
import type { Ledger } from '../../ports/ledger.js'
import type { Backend } from '../../ports/ports.js'
import { backendClauses } from './backend-clauses.js'
import type { Capability } from './capability.js'
import { checkStanding } from './clause.js'
import { type ClauseName, conformanceClauses, type LedgerClauseName } from './clauses.js'
import { describeLedger } from './describe-ledger.js'
import { describePubSub, describeQueue, describeStore } from './describe-ports.js'
import type { LedgerUnderTest } from './ledger/under-test.js'
import { overPorts } from './plain-subject.js'
import { describeClauses, type SuiteOptions, standingOf, using } from './suite.js'

/** What a ledger over plain ports can never have, whatever the ports. */
export const WEAKER_OVER_PLAIN_PORTS: readonly Capability[] = Object.freeze([
  'native ledger',
  'size limit',
  'holds',
  'lapses',
  'rooms',
  'due times',
  'born leased',
  'own inboxes',
  'redrive and delete',
  'inspect',
])

/** What the conformance suite of a whole backend needs to know. */
export interface BackendSuite extends SuiteOptions<ClauseName> {
  /** Called for every clause, and more than once by some; must return an empty backend that lives by this clock. */
  readonly open: (clock: Clock) => MaybePromise<Backend>
  /** Ends what `open` began. Default: the backend's own `close`. */
  readonly close?: (backend: Backend) => MaybePromise<void>
  /** What holds only for the ledger over this backend's plain ports. */
  readonly plain?: {
    readonly waived?: Readonly<Partial<Record<LedgerClauseName, string>>>
    /** Default: `counts once`, which a store has that spreads with an `incrementOnce`. */
    readonly without?: readonly Capability[]
  }
}

/**
 * Describes one suite for a whole backend: its three plain ports, its named queues, its native ledger where it has one, and
 * the ledger over its plain ports, which is what you get when you wrap a port.
 *
 * A clause that the backend cannot keep is waived by name, with a reason; an optional capability that it does not have is
 * named in `without`. Both stay visible as skipped tests, and `conformanceClauses()` lists what there is.
 *
 * @example
 * ```ts
 * import { describe, it } from 'vitest'
 * import { describeBackend } from 'millrace/testing'
 *
 * describeBackend({
 *   name: 'mine',
 *   test: { describe, it },
 *   open: (clock) => openMyBackend({ clock }),
 *   without: ['native ledger', 'inspect', 'named queues', 'priority'],
 *   waived: { 'queue: a heartbeat may shorten the lease': 'the server has one lease length for all' },
 * })
 * ```
 */
export function describeBackend(options: BackendSuite): void {
  const { open, close = (backend: Backend) => backend.close?.(), plain = {} } = options
  const { without = [] } = options
  checkStanding(
    'describeBackend',
    options,
    conformanceClauses().map(({ name }) => name),
  )
  const part = <Name extends ClauseName>(about: string) => ({
    ...options,
    waived: waiversOf<Name>(options, about),
  })
  const port = <Port>(of: (backend: Backend) => Port) => {
    const owners = new Map<Port, Backend>()
    return {
      open: async (clock: Clock) => {
        const backend = await open(clock)
        const opened = of(backend)
        owners.set(opened, backend)
        return opened
      },
      close: async (opened: Port) => {
        const backend = owners.get(opened)
        owners.delete(opened)
        if (backend !== undefined) await close(backend)
      },
    }
  }

  describeQueue({ ...part('queue'), ...port(({ queue }) => queue) })
  if (!without.includes('named queues'))
    describeQueue({
      ...part('queue'),
      ...port((backend) => backend.named?.('conformance') ?? backend.queue),
      name: `${options.name} (named)`,
    })
  describeStore({ ...part('store'), ...port(({ store }) => store) })
  describePubSub({ ...part('pubsub'), ...port(({ pubsub }) => pubsub) })
  describeClauses('describeBackend', 'backend', part('backend'), backendClauses, (time, use) =>
    using(
      () => open(time.clock),
      close,
      (backend) => use({ backend, time, without: standingOf(options).without ?? [] }),
    ),
  )
  if (!without.includes('native ledger'))
    describeLedger({
      ...part<LedgerClauseName>('ledger'),
      name: `${options.name} (native)`,
      without: [...without, 'crash points'],
      open: async (clock) => nativeSubject(await open(clock), close),
    })
  describeLedger({
    ...part<LedgerClauseName>('ledger'),
    name: `${options.name} (over plain ports)`,
    waived: { ...waiversOf<LedgerClauseName>(options, 'ledger'), ...plain.waived },
    without: [...without, ...WEAKER_OVER_PLAIN_PORTS, ...(plain.without ?? ['counts once'])],
    stallMs: options.stallMs ?? 0,
    open: async (clock) => {
      const backend = await open(clock)
      const second = backend.named?.('conformance')
      const { queue, pubsub, store } = backend
      // As a spread makes them: what does not survive it is not theirs.
      const ports = { queue: { ...queue }, pubsub: { ...pubsub }, store: { ...store } }
      if ('open' in ownedBy(ports, []))
        throw new MillraceError(
          'SUITE_INCOMPLETE',
          'A spread of the ports still leads to the native ledger: define it on the store as a non-enumerable member.',
        )
      return {
        ...overPorts(ports, clock, second === undefined ? undefined : { ...second }),
        close: () => close(backend),
      }
    },
  })
}

/** The native ledger of a backend, as the ledger suite needs it. */
function nativeSubject(backend: Backend, close: (backend: Backend) => MaybePromise<void> | undefined): LedgerUnderTest {
  const owned = ownedBy(backend, [])
  if (!('open' in owned))
    throw new MillraceError(
      'SUITE_INCOMPLETE',
      `The backend has no native ledger: its ${owned.foreign} is not its own. If it is meant to have none, ` +
        "say so: without: ['native ledger'].",
    )
  const ledger = (): Ledger => owned.open({ prefix: 'work:' })
  const second = backend.named?.('conformance')
  const other = second === undefined ? undefined : owned.queues.get(second)
  return {
    ledger: ledger(),
    queue: owned.queues.get(backend.queue) ?? 'default',
    ...(other === undefined ? {} : { other }),
    again: ledger,
    pushRaw: (body) => backend.queue.push(body),
    close: async () => {
      await close(backend)
    },
  }
}

/** The waivers that concern clauses about one thing: each part of the suite checks its own. */
function waiversOf<Name extends string>(
  { waived = {} }: BackendSuite,
  about: string,
): Readonly<Partial<Record<Name, string>>> {
  const names = new Set<string>(
    conformanceClauses()
      .filter((clause) => clause.about === about)
      .map(({ name }) => name),
  )
  const own = Object.entries(waived).filter(([name]) => names.has(name))
  // The filter above is what the type says.
  return Object.fromEntries(own) as Partial<Record<Name, string>>
}
