import type { Clock } from '../../core/clock.js'
import { MillraceError } from '../../core/error.js'
import type { At, Ms } from '../../core/time.js'
import type { Envelope } from '../item.js'
import type { Ports } from '../ports.js'
import type { CommitResult } from '../settlement.js'
import { Counters } from './counters.js'
import { HeldTable } from './held.js'
import { Inbox } from './inbox.js'
import { type Keys, keysOf } from './keys.js'
import type { PlainOptions } from './options.js'
import { Outbox } from './outbox.js'
import { PlainQueue } from './plain-queue.js'
import { PlainStore } from './plain-store.js'
import type { Progress } from './progress.js'
import { ReadyBell } from './ready-bell.js'
import { Records } from './records.js'
import { Turns } from './turns.js'

/** Everything the steps of the adapter work with: one for each adapter. */
export interface Desk {
  readonly options: Readonly<Required<PlainOptions>>
  readonly clock: Clock
  readonly keys: Keys
  readonly store: PlainStore
  readonly counters: Counters
  readonly records: Records
  readonly turns: Turns
  readonly queues: ReadonlyMap<string, PlainQueue>
  readonly leases: HeldTable
  readonly bell: ReadyBell
  readonly outbox: Outbox
  readonly inbox: Inbox
  /** Enqueues under way, so that one id enqueued twice at once is one item. */
  readonly submitting: Map<string, Promise<CommitResult>>
  /** How far settlements without a lease have come, while they are not complete. */
  readonly unfinished: Map<string, Unfinished>
  /** A name that no other adapter has: claims that outlive a single settlement carry it. */
  readonly name: string
  report(error: unknown, phase: 'queue' | 'commit'): void
}

export interface Unfinished {
  readonly token: string
  readonly progress: Progress
}

export function openDesk(
  ports: Ports,
  queues: ReadonlyMap<string, Ports['queue']>,
  options: Readonly<Required<PlainOptions>>,
): Desk {
  const { clock, retryPort } = options
  const report: Desk['report'] = (error, phase) => {
    try {
      options.onError(error, phase)
    } catch {
      // An observer must not break what it observes, and there is nobody else to tell.
    }
  }
  const keys = keysOf(options.prefix)
  const store = new PlainStore(ports.store, retryPort)
  const turns = new Turns()
  return {
    options,
    clock,
    keys,
    store,
    turns,
    counters: new Counters(ports.store, store, retryPort, turns, options.newToken, (error) => report(error, 'commit')),
    records: new Records(store, keys, turns, clock, options.newToken),
    queues: new Map([...queues].map(([name, port]) => [name, new PlainQueue(name, port, retryPort)])),
    leases: new HeldTable(),
    bell: new ReadyBell((error) => report(error, 'queue')),
    outbox: new Outbox(ports.pubsub, (error) => report(error, 'commit')),
    inbox: new Inbox(ports.pubsub, (error) => report(error, 'queue')),
    submitting: new Map(),
    unfinished: new Map(),
    name: options.newToken(),
    report,
  }
}

/** How long a record about something that is due in `delayMs` is kept. */
export function keptFor(desk: Desk, delayMs: Ms = 0): Ms {
  return desk.options.retentionMs + (Number.isFinite(delayMs) ? Math.max(0, delayMs) : 0)
}

export function queueNamed(desk: Desk, name: string): PlainQueue {
  const found = desk.queues.get(name)
  if (found !== undefined) return found
  throw new MillraceError(
    'BAD_NAME',
    `There is no queue "${name}" here, only ${[...desk.queues.keys()].map((known) => `"${known}"`).join(', ')}. ` +
      'Give it to the system, as its queue or as the queue of a type.',
    { facts: { queue: name } },
  )
}

/** How a body enters its queue, and whether the loops of this process should hear of it. */
export interface Delivery {
  readonly delayMs: Ms
  /** One copy per key stands in a queue that can tell. Undefined: this copy replaces one that is still there. */
  readonly key: string | undefined
  readonly wake: boolean
}

export async function deliver(
  desk: Desk,
  queue: PlainQueue,
  body: string,
  envelope: Pick<Envelope, 'priority'>,
  { delayMs, key, wake }: Delivery,
): Promise<void> {
  await queue.push(body, {
    delay: delayMs,
    ...(key === undefined ? {} : { dedupeKey: key }),
    ...(envelope.priority === 0 ? {} : { priority: envelope.priority }),
  })
  if (!wake) return
  if (delayMs > 0) desk.bell.ring(queue.name, dueIn(desk, delayMs))
  else desk.bell.ring(queue.name)
}

export const dueIn = (desk: Desk, delayMs: Ms): At => desk.clock.now() + Math.max(0, delayMs)

export function notSupported(what: string, instead: string): MillraceError {
  return new MillraceError('NOT_SUPPORTED', `Plain ports cannot ${what}. ${instead}`, { facts: { what } })
}
